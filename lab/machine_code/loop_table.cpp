#include "loop_table.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace halation::lab {
namespace {

constexpr size_t name_columns = 37, columns = 110;

// Loops that LLVM copied, for a condition that does not change in them, are one line.
struct Row {
    size_t loop;  // the first of them
    int copies = 1;
};

bool alike(const Loop &a, const Loop &b) {
    const auto key = [](const Loop &l) {
        return std::make_tuple(l.name, l.innermost, l.instructions, l.multiply_adds, l.multiplies, l.adds, l.divides, l.loads,
                               l.stores, l.vector_reloads, l.vector_spills, l.vector_registers);
    };
    return key(a) == key(b);
}

std::vector<Row> rows_of(const std::vector<Loop> &loops) {
    std::vector<Row> rows;
    for (size_t at = 0; at < loops.size(); at++) {
        if (loops[at].vector_arithmetic() == 0) continue;
        const auto found =
            std::find_if(rows.begin(), rows.end(), [&](const Row &row) { return alike(loops[row.loop], loops[at]); });
        if (found != rows.end())
            found->copies++;
        else
            rows.push_back({at});
    }
    return rows;
}

std::string cut(const std::string &text, size_t most) {
    return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

std::string name_in(const Loop &loop, int copies) {
    const std::string after = copies > 1 ? fmt::format(" (x{})", copies) : "";
    return cut((loop.innermost ? "" : "around: ") + loop.name, name_columns - after.size()) + after;
}

std::string memory_counts(int all, int stack) {
    return stack ? fmt::format("{} ({})", all, stack) : std::to_string(all);
}

std::string counted(int count, const std::string &what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// One paragraph: words go to the next line, indented, before they would go beyond the last column.
std::string wrapped(const std::string &text) {
    std::string out, line;
    size_t first = 0;
    while (first < text.size()) {
        const size_t end = std::min(text.find(' ', first), text.size());
        const std::string word = text.substr(first, end - first);
        if (line.size() + 1 + word.size() > columns) {
            out += line + "\n";
            line = "    " + word;
        } else {
            line += (line.empty() ? "" : " ") + word;
        }
        first = end + 1;
    }
    return out + line + "\n";
}

std::string counted_both(int spills, int reloads) {
    if (spills == 0) return counted(reloads, "reload");
    return counted(spills, "spill") + (reloads ? " and " + counted(reloads, "reload") : "");
}

std::string notes_on(const Loop &loop, size_t number) {
    const std::string of = fmt::format("loop {}: ", number);
    std::string notes;
    if (loop.vector_reloads + loop.vector_spills > 0)
        notes += wrapped(fmt::format("{}{} of vector registers a turn; it uses {} of {} registers.", of,
                                     counted_both(loop.vector_spills, loop.vector_reloads), loop.vector_registers,
                                     loop.registers_there_are));
    if (loop.scalar_reloads + loop.scalar_spills > 0 && loop.innermost)
        notes += wrapped(
            fmt::format("{}{} of addresses and counters a turn.", of, counted_both(loop.scalar_spills, loop.scalar_reloads)));
    if (!loop.calls.empty()) {
        std::string names;
        for (const std::string &call : loop.calls) names += (names.empty() ? "" : ", ") + call;
        notes += wrapped(fmt::format("{}calls {}; the time that takes is not in its figures.", of, names));
    }
    if (loop.branches > 1 && loop.innermost)
        notes += wrapped(fmt::format("{}jumps elsewhere than to its start, {}; its figures are those of all its paths together.",
                                     of, loop.branches == 2 ? "once" : fmt::format("{} times", loop.branches - 1)));
    return notes;
}

std::string counts_table(const std::vector<Loop> &loops, const std::vector<Row> &rows) {
    std::string out = fmt::format("{:>2} {:<{}} {:>6} {:>6} {:>7} {:>7} {:>9} {:>9} {:>7}\n", "", "", name_columns, "instr.",
                                  "mult.-", "mult.,", "numbers", "loads", "stores", "vector");
    out += fmt::format("{:>2} {:<{}} {:>6} {:>6} {:>7} {:>7} {:>9} {:>9} {:>7}\n", "", "loop", name_columns, "", "adds", "adds",
                       "a vector", "(stack)", "(stack)", "regs");
    for (size_t at = 0; at < rows.size(); at++) {
        const Loop &l = loops[rows[at].loop];
        out += fmt::format("{:>2} {:<{}} {:>6} {:>6} {:>7} {:>7} {:>9} {:>9} {:>7}\n", at + 1, name_in(l, rows[at].copies),
                           name_columns, l.instructions, l.multiply_adds, l.multiplies + l.adds + l.divides, l.lanes,
                           memory_counts(l.loads, l.stack_loads), memory_counts(l.stores, l.stack_stores),
                           fmt::format("{}/{}", l.vector_registers, l.registers_there_are));
    }
    return out;
}

std::string analysis_table(const std::vector<Loop> &loops, const std::vector<Analysis> &analyses, const std::vector<Row> &rows) {
    const auto known = std::find_if(analyses.begin(), analyses.end(), [](const Analysis &a) { return a.known; });
    if (known == analyses.end()) {
        const auto told = std::find_if(analyses.begin(), analyses.end(), [](const Analysis &a) { return !a.reason.empty(); });
        return told == analyses.end() ? "" : wrapped("Not analyzed: " + told->reason + ".");
    }
    const std::string model = known->model.empty() ? "" : fmt::format(" (LLVM's model of {})", known->model);
    std::string out = wrapped(fmt::format(
        "As llvm-mca models {}{}, with all loads from the first-level cache. This machine may differ.", known->processor, model));
    out += fmt::format("\n{:>2} {:<{}} {:>7} {:>7} {:>10}\n", "", "", name_columns, "cycles", "instr.", "mult.-adds");
    out +=
        fmt::format("{:>2} {:<{}} {:>7} {:>7} {:>10}  {}\n", "", "loop", name_columns, "a turn", "/cycle", "/cycle", "bound by");
    const size_t before = 3 + name_columns + 8 + 8 + 11 + 2;
    for (size_t at = 0; at < rows.size(); at++) {
        const Loop &loop = loops[rows[at].loop];
        const Analysis &a = analyses[rows[at].loop];
        const std::string name = name_in(loop, rows[at].copies);
        if (!a.known) {
            out += wrapped(fmt::format("{:>2} {} not analyzed: {}", at + 1, name, a.reason));
            continue;
        }
        const size_t semicolon = a.bound.size() > columns - before ? a.bound.find("; ") : std::string::npos;
        out +=
            fmt::format("{:>2} {:<{}} {:>7.1f} {:>7.2f} {:>10.1f}  {}\n", at + 1, name, name_columns, a.cycles,
                        a.instructions_per_cycle, a.multiply_adds_per_cycle, cut(a.bound.substr(0, semicolon), columns - before));
        if (semicolon != std::string::npos)
            out += std::string(before, ' ') + cut(a.bound.substr(semicolon + 2), columns - before) + "\n";
    }
    return out;
}

}  // namespace

std::string describe(const std::vector<Loop> &loops, const std::vector<Analysis> &analyses) {
    if (loops.empty()) return "No loops.\n";
    const std::vector<Row> rows = rows_of(loops);
    const auto with_arithmetic =
        std::count_if(loops.begin(), loops.end(), [](const Loop &loop) { return loop.vector_arithmetic() > 0; });
    const int others = static_cast<int>(loops.size()) - static_cast<int>(with_arithmetic);
    if (rows.empty()) return fmt::format("{}, none with arithmetic of vectors.\n", counted(others, "loop"));
    std::string out = counts_table(loops, rows);
    if (others) out += fmt::format("   and {} without arithmetic of vectors\n", counted(others, "innermost loop"));
    if (std::any_of(rows.begin(), rows.end(), [&](const Row &row) { return !loops[row.loop].innermost; }))
        out += "   around: what a loop has besides those inside it, once for each of its turns\n";
    const std::string analysis = analyses.size() == loops.size() ? analysis_table(loops, analyses, rows) : "";
    if (!analysis.empty()) out += "\n" + analysis;
    std::string notes;
    for (size_t at = 0; at < rows.size(); at++) notes += notes_on(loops[rows[at].loop], at + 1);
    if (!notes.empty()) out += "\n" + notes;
    return out;
}

}  // namespace halation::lab
