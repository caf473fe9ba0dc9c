#include "machines.h"

#include <cstdlib>
#include <sstream>

namespace halation {
namespace {

// The tiles of avx512 and avx2 were tried on Zen 5 (K = V = 128, one thread); those of x86_64 and neon follow from the
// width of their vectors and were never tuned.
const CpuMachine machines[] = {
    // isa, target, lanes, readers_together
    {"x86_64", "sse41", 4, false},
    {"avx2", "sse41-avx-avx2-fma-f16c", 8, false},
    {"avx512", "sse41-avx-avx2-fma-f16c-avx512-avx512_skylake", 16, true},
    {"neon", "", 4, true},
};

// What may be replaced: the tiles, not what the machine is.
struct Parameter {
    const char *name;
    int CpuMachine::*value;
    int least, most;
};
const Parameter parameters_of_schedules[] = {
    {"chunk", &CpuMachine::chunk, 2, 64},
    {"value_vectors", &CpuMachine::value_vectors, 1, 16},
    {"key_unroll", &CpuMachine::key_unroll, 1, 64},
    {"segment", &CpuMachine::segment, 2, 65536},
    {"decode_value_vectors", &CpuMachine::decode_value_vectors, 1, 16},
    {"decode_key_unroll", &CpuMachine::decode_key_unroll, 1, 64},
    {"parallel_block", &CpuMachine::parallel_block, 4, 64},
    {"parallel_rows", &CpuMachine::parallel_rows, 1, 16},
    {"scan_value_vectors", &CpuMachine::scan_value_vectors, 1, 16},
    {"scan_segment", &CpuMachine::scan_segment, 1, 65536},
    {"key_rows", &CpuMachine::key_rows, 1, 32},
};

}  // namespace

CpuMachine machine_with(const CpuMachine &machine, const std::string &parameters) {
    CpuMachine changed = machine;
    std::istringstream items(parameters);
    for (std::string item; std::getline(items, item, ',');) {
        const size_t equals = item.find_first_of("=:");
        const std::string name = item.substr(0, equals), value = equals == std::string::npos ? "" : item.substr(equals + 1);
        std::string known;
        bool found = false;
        for (const Parameter &parameter : parameters_of_schedules) {
            known += (known.empty() ? "" : ", ") + std::string(parameter.name);
            if (name != parameter.name) continue;
            found = true;
            char *end = nullptr;
            const long number = std::strtol(value.c_str(), &end, 10);
            if (value.empty() || *end || number < parameter.least || number > parameter.most)
                throw Halide::CompileError("schedule parameter " + name + ": got '" + value + "'; may be " +
                                           std::to_string(parameter.least) + " to " + std::to_string(parameter.most));
            changed.*parameter.value = static_cast<int>(number);
        }
        if (!found) throw Halide::CompileError("no schedule parameter '" + name + "'; there are: " + known);
    }
    if (changed.segment % changed.chunk != 0)
        throw Halide::CompileError("schedule parameter segment: got " + std::to_string(changed.segment) +
                                   "; must be a multiple of chunk, " + std::to_string(changed.chunk));
    return changed;
}

const CpuMachine &cpu_machine(const std::string &isa) {
    std::string known;
    for (const CpuMachine &machine : machines) {
        if (machine.isa == isa) return machine;
        known += (known.empty() ? "" : ", ") + machine.isa;
    }
    throw Halide::CompileError("no machine facts for ISA '" + isa + "'; there are: " + known);
}

const CpuMachine &cpu_machine(const Halide::Target &target) {
    using Halide::Target;
    if (target.arch == Target::ARM) return cpu_machine("neon");
    if (target.has_feature(Target::AVX512_Skylake)) return cpu_machine("avx512");
    if (target.has_feature(Target::AVX2)) return cpu_machine("avx2");
    return cpu_machine("x86_64");
}

}  // namespace halation
