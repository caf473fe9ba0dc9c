#include "machines.h"

namespace halation {
namespace {

// The tiles of avx512 and avx2 were tried on Zen 5 (K = V = 128, one thread); those of x86_64 and neon follow from the
// width of their vectors and were never tuned.
const CpuMachine machines[] = {
    // isa, target, lanes, readers_together
    {"x86_64", "sse41", 4, 0},
    {"avx2", "sse41-avx-avx2-fma-f16c", 8, 0},
    {"avx512", "sse41-avx-avx2-fma-f16c-avx512-avx512_skylake", 16, 1},
    {"neon", "", 4, 1},
};

const GpuMachine gpu_machines[] = {
    // backend, target, has_double, one_shared_array, chunk
    {"cuda", "cuda-cuda_capability_80", true, true},
    {"opencl", "opencl-cl_doubles", true, false},
    // A block has 32 KB of shared memory on any Apple GPU, in which chunks of 4 leave every recurrence 320 key channels or more,
    // and ssm's of 8 leave it 108 elements a channel.
    {"metal", "metal", false, false, 4},
};

}  // namespace

const GpuMachine &gpu_machine(const std::string &backend) {
    std::string known;
    for (const GpuMachine &machine : gpu_machines) {
        if (machine.backend == backend) return machine;
        known += (known.empty() ? "" : ", ") + machine.backend;
    }
    throw Halide::CompileError("no machine facts for backend '" + backend + "'; there are: " + known);
}

const GpuMachine &gpu_machine(const Halide::Target &target) {
    using Halide::Target;
    if (target.has_feature(Target::CUDA)) return gpu_machine("cuda");
    return gpu_machine(target.has_feature(Target::Metal) ? "metal" : "opencl");
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
