#include "parameters.h"

#include "schedules.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace halation {
namespace {

// The tiles of a machine that may be replaced, not what the machine is.
struct Fact {
    const char *name;
    int CpuMachine::*value;
    int least, most;
    std::vector<int> worthwhile;
    std::vector<Scheduled> readers;
};

const std::vector<Fact> &facts() {
    using S = Scheduled;
    static const std::vector<Fact> all = {
        {"chunk", &CpuMachine::chunk, 2, 64, {2, 4, 8, 16}, {S::chunkwise}},
        {"value_vectors",
         &CpuMachine::value_vectors,
         1,
         16,
         {1, 2, 3, 4, 8},
         {S::chunkwise, S::parallel, S::softmax, S::bidirectional}},
        {"key_unroll", &CpuMachine::key_unroll, 1, 64, {1, 2, 4, 8}, {S::chunkwise}},
        {"segment", &CpuMachine::segment, 2, 65536, {32, 64, 128, 256, 512}, {S::chunkwise}},
        {"readers_together", &CpuMachine::readers_together, 0, 1, {0, 1}, {S::chunkwise}},
        {"decode_value_vectors", &CpuMachine::decode_value_vectors, 1, 16, {1, 2, 4, 8}, {S::recurrent}},
        {"decode_key_unroll", &CpuMachine::decode_key_unroll, 1, 64, {1, 2, 4, 8}, {S::recurrent}},
        {"parallel_block", &CpuMachine::parallel_block, 4, 64, {8, 16, 32, 64}, {S::parallel}},
        {"parallel_rows", &CpuMachine::parallel_rows, 1, 16, {1, 2, 4, 8}, {S::parallel, S::softmax, S::bidirectional}},
        {"scan_value_vectors", &CpuMachine::scan_value_vectors, 1, 16, {1, 2, 4, 8}, {S::scan}},
        {"scan_segment", &CpuMachine::scan_segment, 1, 65536, {64, 128, 256, 512, 1024}, {S::scan}},
        {"key_rows", &CpuMachine::key_rows, 1, 32, {2, 4, 8, 16}, {S::softmax}},
    };
    return all;
}

int value_of(const std::string &name, const std::string &text, int least, int most) {
    char *end = nullptr;
    const long number = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end || number < least || number > most)
        throw Halide::CompileError("schedule parameter " + name + ": got '" + text + "'; may be " + std::to_string(least) +
                                   " to " + std::to_string(most));
    return static_cast<int>(number);
}

}  // namespace

bool is_identifier(const std::string &text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto part = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
    return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), part);
}

std::vector<std::string> names_of_facts() {
    std::vector<std::string> names;
    for (const Fact &fact : facts()) names.push_back(fact.name);
    return names;
}

std::vector<ScheduleParameter> schedule_parameters(Scheduled scheduled, const CpuMachine &machine, const std::string &schedule) {
    std::vector<ScheduleParameter> parameters;
    for (const Fact &fact : facts()) {
        if (std::find(fact.readers.begin(), fact.readers.end(), scheduled) == fact.readers.end()) continue;
        parameters.push_back({fact.name, machine.*fact.value, fact.least, fact.most, fact.worthwhile});
    }
    if (!schedule.empty())
        for (const ScheduleParameter &own : schedule_named(schedule).parameters) parameters.push_back(own);
    return parameters;
}

CpuMachine machine_with(const CpuMachine &machine, const std::string &parameters, const std::string &schedule) {
    CpuMachine changed = machine;
    std::vector<ScheduleParameter> own;
    if (!schedule.empty()) own = schedule_named(schedule).parameters;
    for (const ScheduleParameter &parameter : own) changed.own[parameter.name] = parameter.value;
    std::istringstream items(parameters);
    for (std::string item; std::getline(items, item, ',');) {
        const size_t equals = item.find_first_of("=:");
        const std::string name = item.substr(0, equals), value = equals == std::string::npos ? "" : item.substr(equals + 1);
        std::string known;
        bool found = false;
        const auto is_named = [&](const std::string &other) {
            known += (known.empty() ? "" : ", ") + other;
            found = found || name == other;
            return name == other;
        };
        for (const Fact &fact : facts())
            if (is_named(fact.name)) changed.*fact.value = value_of(name, value, fact.least, fact.most);
        for (const ScheduleParameter &parameter : own)
            if (is_named(parameter.name)) changed.own[name] = value_of(name, value, parameter.least, parameter.most);
        if (!found) throw Halide::CompileError("no schedule parameter '" + name + "'; there are: " + known);
    }
    if (changed.segment % changed.chunk != 0)
        throw Halide::CompileError("schedule parameter segment: got " + std::to_string(changed.segment) +
                                   "; must be a multiple of chunk, " + std::to_string(changed.chunk));
    return changed;
}

}  // namespace halation
