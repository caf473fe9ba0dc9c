// Which instruction sets this machine and its operating system can run.
#ifndef HALATION_RUNTIME_CPU_FEATURES_H
#define HALATION_RUNTIME_CPU_FEATURES_H

namespace halation::runtime {

// The ISA names kernels are compiled for, best first; the order in which kernels are preferred.
constexpr const char *known_isas[] = {"avx512", "avx2", "x86_64", "neon"};
constexpr int known_isa_count = 4;

// What kernels of any backend but "cpu" have in its place.
constexpr const char *gpu_isa = "gpu";

// Place in known_isas, or -1 for an unknown name.
int isa_rank(const char *isa);

// NULL if this machine can run kernels of known_isas[rank], else the first feature it lacks.
const char *missing_feature(int rank);

// Whether the ISA belongs to this machine's architecture, though the machine may lack it.
bool isa_of_this_architecture(int rank);

}  // namespace halation::runtime
#endif
