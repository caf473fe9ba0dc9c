#include "assembly.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>

namespace halation::lab {
namespace {

bool starts(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}

// A run of lines without a label in it.
struct Block {
    std::string label, name;  // either may be missing
    std::string loop;         // label of the innermost loop it is in, as comments say; empty: none
    bool header = false, inner_header = false;
    int depth = 0;
    std::vector<std::string> lines;
};

// LLVM's comments leave out what makes a label local: .LBB0_3, or LBB0_3 on Apple's systems.
std::string without_prefix(const std::string &label) {
    const size_t at = label.find("BB");
    return at == std::string::npos || at > 2 ? label : label.substr(at);
}

bool local(const std::string &label) {
    if (label.empty() || label[0] == '.') return true;
    for (const char *start : {"LBB", "LCPI", "Lfunc", "Ltmp", "Lloh", "ltmp"})
        if (starts(label, start)) return true;
    return false;
}

int depth_in(const std::string &comment) {
    const size_t at = comment.find("Depth=");
    return at == std::string::npos ? 0 : static_cast<int>(std::strtol(comment.c_str() + at + 6, nullptr, 10));
}

// What LLVM says beside and below a label.
void read_comment(Block &block, const std::string &comment) {
    const size_t loop = comment.find("Loop Header:");
    const size_t member = comment.find("in Loop: Header=");
    if (loop != std::string::npos) {
        block.header = true;
        block.inner_header = comment.find("Inner Loop Header:") != std::string::npos;
        block.depth = depth_in(comment);
    } else if (member != std::string::npos) {
        const size_t first = member + std::string("in Loop: Header=").size();
        block.loop = comment.substr(first, comment.find(' ', first) - first);
        block.depth = depth_in(comment);
    } else if (comment[0] == '%') {
        block.name = comment;
    }
}

std::vector<std::vector<Block>> functions_of(const std::string &assembly, Syntax syntax) {
    std::vector<std::vector<Block>> functions(1, std::vector<Block>(1));
    std::istringstream in(assembly);
    for (std::string text; std::getline(in, text);) {
        if (!text.empty() && text.back() == '\r') text.pop_back();
        const Line line = line_of(text, syntax);
        const bool labelled = !line.code.empty() && line.code.back() == ':' && line.code.find(' ') == std::string::npos;
        if (labelled) {
            const std::string label = line.code.substr(0, line.code.size() - 1);
            if (!local(label)) functions.emplace_back();
            functions.back().emplace_back();
            functions.back().back().label = label;
        } else if (starts(line.comment, "%bb.")) {  // one that nothing jumps to
            functions.back().emplace_back();
            const size_t name = line.comment.find('%', 1);
            if (name != std::string::npos) functions.back().back().name = line.comment.substr(name);
        }
        Block &block = functions.back().back();
        const bool about_block = !line.comment.empty() && !starts(line.comment, "%bb.");
        if (about_block && (labelled || line.code.empty())) read_comment(block, line.comment);
        block.lines.push_back(text);
        // What follows a jump is a block of its own, of the same loop unless something else is said of it.
        const auto instruction = instruction_of(text, syntax);
        if (instruction && instruction->branch) {
            Block next;
            next.loop = block.header ? without_prefix(block.label) : block.loop;
            functions.back().push_back(next);
        }
    }
    return functions;
}

size_t instructions_in(const std::vector<Block> &blocks, Syntax syntax) {
    size_t count = 0;
    for (const Block &block : blocks)
        for (const std::string &line : block.lines) count += instruction_of(line, syntax).has_value();
    return count;
}

Loop loop_at(const Block &header, int depth, bool innermost) {
    Loop loop;
    loop.label = header.label;
    loop.name = loop_name(header.name);
    if (loop.name.empty()) loop.name = header.label;
    loop.depth = depth;
    loop.innermost = innermost;
    return loop;
}

void append(Loop &loop, const Block &block) {
    loop.lines.insert(loop.lines.end(), block.lines.begin(), block.lines.end());
}

std::vector<Loop> loops_by_comments(const std::vector<Block> &blocks) {
    std::vector<Loop> loops;
    std::map<std::string, size_t> index;
    for (const Block &block : blocks)
        if (block.header && !block.label.empty()) {
            index[without_prefix(block.label)] = loops.size();
            loops.push_back(loop_at(block, block.depth, block.inner_header));
        }
    for (const Block &block : blocks) {
        const auto found = index.find(block.header ? without_prefix(block.label) : block.loop);
        if (found != index.end()) append(loops[found->second], block);
    }
    return loops;
}

// From a label to the last jump back to it.
std::vector<Loop> loops_by_branches(const std::vector<Block> &blocks, Syntax syntax) {
    std::map<std::string, size_t> position;
    std::map<size_t, size_t> ends;  // first block to last block
    for (size_t at = 0; at < blocks.size(); at++) {
        if (!blocks[at].label.empty()) position[blocks[at].label] = at;
        for (const std::string &line : blocks[at].lines) {
            const auto instruction = instruction_of(line, syntax);
            if (!instruction || !instruction->branch) continue;
            const auto found = position.find(instruction->target);
            if (found != position.end()) ends[found->second] = at;
        }
    }
    std::vector<Loop> loops;
    for (const auto &[first, last] : ends) {
        int depth = 0;
        std::vector<bool> inside(blocks.size(), false);
        for (const auto &[other_first, other_last] : ends) {
            depth += other_first <= first && last <= other_last;
            const bool other = other_first != first && first <= other_first && other_last <= last;
            for (size_t at = other_first; other && at <= other_last; at++) inside[at] = true;
        }
        const bool innermost = std::none_of(inside.begin(), inside.end(), [](bool is) { return is; });
        loops.push_back(loop_at(blocks[first], depth, innermost));
        for (size_t at = first; at <= last; at++)
            if (!inside[at]) append(loops.back(), blocks[at]);
    }
    return loops;
}

void add_memory(Loop &loop, const Instruction &i) {
    loop.loads += i.load, loop.stores += i.store, loop.broadcasts += i.broadcast;
    loop.stack_loads += i.load && i.stack, loop.stack_stores += i.store && i.stack;
    if (i.spilled_bytes == 0) return;
    const bool of_vector = i.spilled_bytes >= 16 && !i.vector_registers.empty();
    if (i.comment.find("Reload") != std::string::npos)
        (of_vector ? loop.vector_reloads : loop.scalar_reloads)++;
    else
        (of_vector ? loop.vector_spills : loop.scalar_spills)++;
}

void count(Loop &loop, Syntax syntax) {
    loop.syntax = syntax;
    std::set<int> registers;
    int multiply_lanes = 0, add_lanes = 0;
    for (const std::string &line : loop.lines) {
        const auto i = instruction_of(line, syntax);
        if (!i) continue;
        loop.instructions++;
        loop.branches += i->branch;
        loop.multiply_adds += i->work == Work::multiply_add, loop.multiplies += i->work == Work::multiply;
        loop.adds += i->work == Work::add, loop.divides += i->work == Work::divide;
        loop.lanes = std::max(loop.lanes, i->lanes);
        loop.operations += i->lanes * (i->work == Work::multiply_add ? 2 : 1);
        if (i->work == Work::multiply_add) loop.multiply_add_lanes += i->lanes;
        if (i->work == Work::multiply) multiply_lanes += i->lanes;
        if (i->work == Work::add) add_lanes += i->lanes;
        add_memory(loop, *i);
        registers.insert(i->vector_registers.begin(), i->vector_registers.end());
        if (i->call && std::find(loop.calls.begin(), loop.calls.end(), i->target) == loop.calls.end())
            loop.calls.push_back(i->target);
    }
    if (loop.multiply_adds == 0) loop.multiply_add_lanes = std::min(multiply_lanes, add_lanes);
    loop.vector_registers = static_cast<int>(registers.size());
}

bool has_registers_of_avx512(const std::vector<Block> &blocks) {
    for (const Block &block : blocks)
        for (const std::string &line : block.lines) {
            const auto i = instruction_of(line, Syntax::x86);
            if (i && i->beyond_avx2) return true;
        }
    return false;
}

void replace_all(std::string &text, const std::string &what, const std::string &by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
}

// What LLVM appends to the names of blocks that it copies: .us, .us312, .rebased, .r353.
bool appended(const std::string &part) {
    for (const std::string suffix : {"us", "rebased", "r", "preheader", "split", "lr", "ph", "prol", "epil", "unr-lcssa", ""})
        if (starts(part, suffix) &&
            std::all_of(part.begin() + static_cast<std::ptrdiff_t>(suffix.size()), part.end(),
                        [](unsigned char c) { return std::isdigit(c); }) &&
            (suffix != "r" || part.size() > 1))
            return true;
    return false;
}

}  // namespace

std::string loop_name(const std::string &block) {
    std::string name;
    std::copy_if(block.begin(), block.end(), std::back_inserter(name), [](char c) { return c != '%' && c != '"'; });
    const size_t number = name.find_first_not_of("0123456789");
    if (number != std::string::npos && number > 0 && name[number] == '_') name.erase(0, number + 1);
    const bool loop = starts(name, "for_") || starts(name, "for ");
    if (loop) name.erase(0, 4);
    replace_all(name, "$x", "");
    replace_all(name, "$", ".");

    std::vector<std::string> parts;
    std::istringstream in(name);
    for (std::string part; std::getline(in, part, '.');)
        if (parts.empty() || part != parts.back()) parts.push_back(part);
    while (parts.size() > 1 && appended(parts.back())) parts.pop_back();
    std::string func, var, stage;
    for (const std::string &part : parts) {
        const bool is_stage = stage.empty() && part.size() > 1 && part[0] == 's' &&
                              std::all_of(part.begin() + 1, part.end(), [](unsigned char c) { return std::isdigit(c); });
        if (is_stage) {
            stage = part.substr(1);
            continue;
        }
        std::string &to = stage.empty() ? func : var;
        to += (to.empty() ? "" : ".") + part;
    }
    if (!loop || stage.empty() || var.empty()) return name;
    return func + " over " + var + (stage == "0" ? "" : stage == "1" ? ", update" : ", update " + stage);
}

std::vector<Loop> loops_of(const std::string &assembly) {
    const Syntax syntax = syntax_of(assembly);
    const std::vector<std::vector<Block>> functions = functions_of(assembly, syntax);
    size_t largest = 0, most = 0;
    for (size_t at = 0; at < functions.size(); at++) {
        const size_t count = instructions_in(functions[at], syntax);
        if (count > most) largest = at, most = count;
    }
    const std::vector<Block> &kernel = functions[largest];
    const bool commented = std::any_of(kernel.begin(), kernel.end(), [](const Block &block) { return block.header; });
    std::vector<Loop> loops = commented ? loops_by_comments(kernel) : loops_by_branches(kernel, syntax);
    const int registers = syntax == Syntax::arm || has_registers_of_avx512(kernel) ? 32 : 16;
    for (Loop &loop : loops) {
        count(loop, syntax);
        loop.registers_there_are = registers;
    }
    loops.erase(std::remove_if(loops.begin(), loops.end(),
                               [](const Loop &loop) {
                                   return loop.instructions == 0 || (!loop.innermost && loop.vector_arithmetic() == 0);
                               }),
                loops.end());
    std::stable_sort(loops.begin(), loops.end(), [](const Loop &a, const Loop &b) { return a.operations > b.operations; });
    return loops;
}

}  // namespace halation::lab
