// Reads what llvm-mca writes. Its text, not its JSON: only the text has the analysis of bottlenecks.
#include "machine_code_analyzer.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace halation::lab {
namespace {

const std::string multiply_add_units = "multiply-add units";

bool starts(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}

// The number after a word that begins a line, or after the bracket that follows it: "Data Dependencies:      [ 7.42% ]".
bool number_after(const std::string &line, const std::string &word, double &number) {
    const size_t first = line.find_first_not_of(" -");
    if (first == std::string::npos || line.compare(first, word.size(), word) != 0) return false;
    const size_t digit = line.find_first_of("0123456789", first + word.size());
    if (digit == std::string::npos) return false;
    number = std::strtod(line.c_str() + digit, nullptr);
    return true;
}

struct Report {
    double turns = 0, instructions = 0, cycles = 0, micro_operations = 0, width = 0, per_cycle = 0, throughput = 0;
    double resource = 0, dependencies = 0;
    std::vector<std::string> units;
    std::vector<double> busy;               // cycles of one turn, unit by unit
    std::map<std::string, double> by_kind;  // those of the busiest unit, by the kind of instruction

    size_t busiest() const { return static_cast<size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin()); }
};

// The units that multiply also do much else.
std::string kind_of(const Instruction &i) {
    const std::string &m = i.mnemonic;
    const auto named = [&](std::initializer_list<const char *> parts) {
        return std::any_of(parts.begin(), parts.end(), [&](const char *part) { return m.find(part) != std::string::npos; });
    };
    if (i.work != Work::other) return "arithmetic";
    if (m[0] == 'k') return "masks";
    if (i.vector_registers.empty()) return "addresses and counters";
    if (named({"cvt"})) return "conversions";
    if (i.broadcast) return "broadcasts";
    if (named({"cmp", "mask", "blend", "and", "cmgt", "cmge", "cmlt", "bsl", "bic"}) || starts(m, "vpor") || m == "orr")
        return "masks";
    return "moves and shuffles";
}

// A line of "Resource pressure by instruction": a number or - for each unit, then the instruction.
void add_instruction(Report &r, const std::string &line, Syntax syntax) {
    std::istringstream words(line);
    std::string word, cycles;
    for (size_t unit = 0; unit < r.units.size() && words >> word; unit++)
        if (unit == r.busiest()) cycles = word;
    std::getline(words, word);
    const auto instruction = instruction_of(word, syntax);
    if (instruction && cycles != "-") r.by_kind[kind_of(*instruction)] += std::strtod(cycles.c_str(), nullptr);
}

Report read(const std::string &text, Syntax syntax) {
    Report r;
    std::istringstream in(text);
    bool units = false, busy = false, instructions = false;
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        number_after(line, "Iterations:", r.turns), number_after(line, "Instructions:", r.instructions);
        number_after(line, "Total Cycles:", r.cycles), number_after(line, "Total uOps:", r.micro_operations);
        number_after(line, "Dispatch Width:", r.width), number_after(line, "IPC:", r.per_cycle);
        number_after(line, "Block RThroughput:", r.throughput);
        number_after(line, "Resource Pressure ", r.resource), number_after(line, "Data Dependencies:", r.dependencies);
        const bool bracket = starts(line, "[");
        if (starts(line, "Resources:")) units = true;
        if (line.empty()) units = instructions = false;
        if (units && bracket && line.find(" - ") != std::string::npos) r.units.push_back(line.substr(line.find(" - ") + 3));
        if (busy && !bracket) {
            std::istringstream words(line);
            for (std::string word; words >> word;) r.busy.push_back(word == "-" ? 0 : std::strtod(word.c_str(), nullptr));
            busy = false;
        }
        if (instructions && !bracket && !r.busy.empty()) add_instruction(r, line, syntax);
        if (starts(line, "Resource pressure per iteration:")) busy = true;
        if (starts(line, "Resource pressure by instruction:")) instructions = true;
    }
    return r;
}

std::string busiest_in_words(const Report &r) {
    const std::string unit = words_for_unit(r.units[r.busiest()]);
    if (unit != multiply_add_units || r.by_kind.empty()) return unit;
    const auto most =
        std::max_element(r.by_kind.begin(), r.by_kind.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    if (most->first == "arithmetic") return unit;
    return most->first == "addresses and counters" ? "integer units" : most->first + " in vector units";
}

std::string bound_of(const Analysis &a, const Report &r) {
    const double front_end = r.width > 0 ? a.micro_operations / r.width : 0;
    const std::string most = front_end > a.busiest_cycles ? "front end" : busiest_in_words(r);
    const int percent = static_cast<int>(std::min(100.0, 100 * std::max(a.busiest_cycles, front_end) / a.cycles + 0.5));
    if (a.alone) return fmt::format("latency of one pass; {} {} %", most, percent);
    if (percent < 80 && a.dependency_pressure >= a.resource_pressure)
        return fmt::format("dependency chain of {:.0f} cycles; {} {} %", a.cycles, most, percent);
    return fmt::format("{}, {} %", most, percent);
}

}  // namespace

std::string words_for_unit(const std::string &unit) {
    const auto after = [&](const char *prefix) {
        const size_t at = unit.find(prefix);
        return at == std::string::npos ? "" : unit.substr(at + std::string(prefix).size());
    };
    const auto one_of = [](const std::string &text, std::initializer_list<const char *> words) {
        return std::any_of(words.begin(), words.end(), [&](const char *word) { return text == word; });
    };
    const std::string loads = "loads", stores = "stores", integers = "integer units";
    if (unit.find("Div") != std::string::npos) return "divider";
    if (starts(unit, "Zn")) {
        const std::string part = unit.size() > 3 ? unit.substr(3) : "";
        if (one_of(part, {"FPP0", "FPP1", "FP0", "FP1", "FPU0", "FPU1"})) return multiply_add_units;
        if (one_of(part, {"FPP2", "FPP3", "FP2", "FP3", "FPU2", "FPU3"})) return "vector adds and shuffles";
        if (one_of(part, {"FPP45", "FP45"})) return "vector loads and stores";
        if (part == "Load") return loads;
        if (part == "Store" || part == "FPSt") return stores;
        if (part == "LSU" || starts(part, "AGU")) return "loads and stores";
        return starts(part, "ALU") || starts(part, "BRU") ? integers : unit;
    }
    const std::string port = after("Port");  // Intel's
    if (one_of(port, {"0", "1", "5", "00", "01", "05"})) return multiply_add_units;
    if (one_of(port, {"2", "3", "02", "03", "11"})) return loads;
    if (one_of(port, {"4", "7", "8", "9"})) return stores;
    if (!port.empty()) return integers;
    if (one_of(unit, {"A57UnitW", "A57UnitX", "CyUnitV", "CyUnitVM", "CortexA55UnitFPMAC"})) return multiply_add_units;
    const std::string kind = after("Unit").substr(0, 1);  // N1UnitV0, A57UnitL, V1UnitL01
    if (kind == "V") return multiply_add_units;
    if (kind == "L") return loads;
    if (one_of(kind, {"S", "D"})) return stores;
    return one_of(kind, {"I", "M", "B"}) ? integers : unit;
}

Analysis parse_analysis(const std::string &text, const Loop &loop) {
    Analysis a;
    const Report r = read(text, loop.syntax);
    if (r.turns <= 0 || r.cycles <= 0 || r.instructions <= 0 || r.busy.empty() || r.busy.size() != r.units.size()) {
        a.reason = "the report of llvm-mca cannot be read";
        return a;
    }
    a.known = true;
    a.cycles = r.cycles / r.turns;
    a.throughput = r.throughput;
    a.micro_operations = r.micro_operations / r.turns;
    a.instructions_per_cycle = r.per_cycle;
    a.dispatch_width = static_cast<int>(r.width);
    a.busiest = r.units[r.busiest()];
    a.busiest_cycles = r.busy[r.busiest()];
    a.resource_pressure = r.resource, a.dependency_pressure = r.dependencies;
    a.multiply_adds_per_cycle = loop.multiply_add_lanes / a.cycles;
    a.has_calls = !loop.calls.empty();
    a.alone = !loop.innermost;
    a.bound = bound_of(a, r);
    return a;
}

}  // namespace halation::lab
