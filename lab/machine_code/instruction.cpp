#include "instruction.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace halation::lab {
namespace {

bool starts(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}
bool ends(const std::string &text, const std::string &end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}
bool has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}
bool starts_with_one_of(const std::string &text, std::initializer_list<const char *> words) {
    return std::any_of(words.begin(), words.end(), [&](const char *word) { return starts(text, word); });
}

std::string trimmed(const std::string &text) {
    const char *const blank = " \t\r\n";
    const size_t first = text.find_first_not_of(blank);
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// At commas that are in no brackets.
std::vector<std::string> operands_of(const std::string &text) {
    std::vector<std::string> operands;
    std::string operand;
    int depth = 0;
    for (const char c : text) {
        depth += c == '(' || c == '[' || c == '{';
        depth -= c == ')' || c == ']' || c == '}';
        if (c == ',' && depth == 0) {
            operands.push_back(trimmed(operand));
            operand.clear();
        } else {
            operand += c;
        }
    }
    if (!trimmed(operand).empty()) operands.push_back(trimmed(operand));
    return operands;
}

int digits_at(const std::string &text, size_t at) {
    if (at >= text.size() || !std::isdigit(static_cast<unsigned char>(text[at]))) return -1;
    return static_cast<int>(std::strtol(text.c_str() + at, nullptr, 10));
}

// "64-byte Folded Reload": LLVM's word for what it keeps on the stack for want of registers.
int spilled_bytes_in(const std::string &comment) {
    if (!has(comment, "Spill") && !has(comment, "Reload")) return 0;
    const size_t at = comment.find("-byte");
    if (at == std::string::npos) return 0;
    size_t first = at;
    while (first > 0 && std::isdigit(static_cast<unsigned char>(comment[first - 1]))) first--;
    return std::max(0, digits_at(comment, first));
}

// ---- x86

bool in_memory(const std::string &operand) {
    return operand.find('(') != std::string::npos || (!operand.empty() && !has("%$*{", operand.substr(0, 1)));
}

void read_x86_registers(Instruction &i) {
    for (const std::string &operand : i.operands)
        for (size_t at = operand.find("mm"); at != std::string::npos; at = operand.find("mm", at + 2)) {
            if (at < 2 || operand[at - 2] != '%') continue;
            const int number = digits_at(operand, at + 2);
            if (number < 0) continue;
            i.vector_registers.insert(number);
            i.beyond_avx2 |= operand[at - 1] == 'z' || number > 15;
        }
}

void read_x86_work(Instruction &i) {
    const std::string &m = i.mnemonic;
    const bool doubles = ends(m, "pd");
    if (!doubles && !ends(m, "ps")) return;
    const std::string name = m[0] == 'v' ? m.substr(1) : m;
    if (starts_with_one_of(name, {"fmadd", "fmsub", "fnmadd", "fnmsub"}))
        i.work = Work::multiply_add;
    else if (starts(name, "mulp"))
        i.work = Work::multiply;
    else if (starts_with_one_of(name, {"addp", "subp"}))
        i.work = Work::add;
    else if (starts_with_one_of(name, {"divp", "sqrtp"}))
        i.work = Work::divide;
    if (i.work == Work::other || i.operands.empty()) return;
    const std::string &to = i.operands.back();
    i.lanes = (has(to, "%zmm") ? 16 : has(to, "%ymm") ? 8 : 4) / (doubles ? 2 : 1);
}

void read_x86_memory(Instruction &i) {
    const std::string &m = i.mnemonic;
    if (i.branch || i.call || starts_with_one_of(m, {"lea", "nop", "prefetch"})) return;
    for (size_t at = 0; at < i.operands.size(); at++) {
        const std::string &operand = i.operands[at];
        if (!in_memory(operand)) continue;
        i.stack |= has(operand, "(%rsp");
        i.broadcast |= has(operand, "{1to");
        const bool last = at + 1 == i.operands.size();
        const bool only_read = starts_with_one_of(m, {"cmp", "test", "bt", "push", "vucomis", "ucomis", "vcomis", "comis"}) ||
                               (i.operands.size() == 1 && starts_with_one_of(m, {"mul", "imul", "div", "idiv"}));
        const bool only_written = (starts_with_one_of(m, {"mov", "pop", "set", "extract", "pextr"}) || m[0] == 'v');
        if (!last || only_read || !only_written) i.load = true;
        if (last && !only_read) i.store = true;
    }
    i.load |= starts(m, "vgather");
    i.broadcast |= starts_with_one_of(m, {"vbroadcast", "vpbroadcast", "vmovddup", "movddup"}) ||
                   (starts_with_one_of(m, {"shufps", "vshufps"}) && !i.operands.empty() && i.operands[0] == "$0");
}

void read_x86(Instruction &i) {
    const std::string &m = i.mnemonic;
    i.call = starts(m, "call");
    i.branch = m[0] == 'j';
    if ((i.call || i.branch) && !i.operands.empty()) i.target = i.operands[0].substr(0, i.operands[0].find('@'));
    read_x86_registers(i);
    read_x86_work(i);
    read_x86_memory(i);
}

// ---- Arm

// v3.4s, q3, d3, s3 are one register; x3 and w3 are none of them.
void read_arm_registers(Instruction &i) {
    for (const std::string &operand : i.operands)
        for (size_t at = 0; at < operand.size(); at++) {
            const bool begins = at == 0 || !std::isalnum(static_cast<unsigned char>(operand[at - 1]));
            if (!begins || !has("vqdshbz", operand.substr(at, 1))) continue;
            const bool in_address = has(operand.substr(0, at), "[");
            const int number = digits_at(operand, at + 1);
            if (number >= 0 && number < 32 && !in_address) i.vector_registers.insert(number);
        }
}

// Apple's systems write fmla.4s v0, v1, v2 for fmla v0.4s, v1.4s, v2.4s.
void read_arm_work(Instruction &i) {
    if (i.operands.empty() || i.operands[0][0] != 'v') return;
    const std::string m = i.mnemonic.substr(0, i.mnemonic.find('.'));
    const std::string &arranged = m.size() < i.mnemonic.size() ? i.mnemonic : i.operands[0];
    const size_t dot = arranged.find('.');
    if (dot == std::string::npos) return;
    if (m == "fmla" || m == "fmls" || m == "fmlal" || m == "fmlal2")
        i.work = Work::multiply_add;
    else if (m == "fmul" || m == "fmulx")
        i.work = Work::multiply;
    else if (m == "fadd" || m == "fsub")
        i.work = Work::add;
    else if (m == "fdiv" || m == "fsqrt")
        i.work = Work::divide;
    if (i.work != Work::other) i.lanes = std::max(0, digits_at(arranged, dot + 1));
}

void read_arm(Instruction &i) {
    const std::string &m = i.mnemonic;
    i.call = m == "bl" || m == "blr";
    i.branch = m == "b" || m == "br" || starts_with_one_of(m, {"b.", "cbz", "cbnz", "tbz", "tbnz"});
    if ((i.call || i.branch) && !i.operands.empty()) i.target = i.operands.back();
    if (i.branch || i.call) return;
    i.load = starts(m, "ld");
    i.store = starts(m, "st");
    for (const std::string &operand : i.operands) i.stack |= (i.load || i.store) && starts(operand, "[sp");
    i.broadcast = starts(m, "dup") || starts_with_one_of(m, {"ld1r", "ld2r", "ld3r", "ld4r"});
    read_arm_registers(i);
    read_arm_work(i);
}

}  // namespace

// By registers: a % alone is in LLVM's comments on Arm, too.
Syntax syntax_of(const std::string &assembly) {
    for (const char *name : {"%rsp", "%rdi", "%rsi", "%rax", "%rcx", "%rdx", "%eax", "%ecx", "%edi", "%xmm", "%ymm", "%zmm"})
        if (has(assembly, name)) return Syntax::x86;
    return Syntax::arm;
}

// A number on Arm begins with #, so comments there begin otherwise: // on Linux, ; on Apple's systems.
Line line_of(const std::string &text, Syntax syntax) {
    bool quoted = false;
    size_t at = 0;
    for (; at < text.size(); at++) {
        if (text[at] == '"') quoted = !quoted;
        if (quoted) continue;
        if (syntax == Syntax::x86 ? text[at] == '#' : text[at] == ';' || text.compare(at, 2, "//") == 0) break;
    }
    const size_t comment = std::min(text.find_first_not_of("#/;", at), text.size());
    return {trimmed(text.substr(0, at)), trimmed(text.substr(comment))};
}

std::string Instruction::text() const {
    std::string line = mnemonic;
    for (size_t at = 0; at < operands.size(); at++) line += (at ? ", " : "\t") + operands[at];
    return line;
}

std::optional<Instruction> instruction_of(const std::string &text, Syntax syntax) {
    const Line line = line_of(text, syntax);
    if (line.code.empty() || line.code.back() == ':' || !std::isalpha(static_cast<unsigned char>(line.code[0]))) return {};
    const size_t blank = line.code.find_first_of(" \t");
    Instruction i;
    i.mnemonic = line.code.substr(0, blank);
    i.comment = line.comment;
    if (!std::all_of(i.mnemonic.begin(), i.mnemonic.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_'; }))
        return {};
    if (blank != std::string::npos) i.operands = operands_of(line.code.substr(blank));
    i.spilled_bytes = spilled_bytes_in(i.comment);
    syntax == Syntax::x86 ? read_x86(i) : read_arm(i);
    return i;
}

}  // namespace halation::lab
