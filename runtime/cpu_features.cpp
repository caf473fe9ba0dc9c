#include "cpu_features.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halation::runtime {

int isa_rank(const char *isa) {
    for (int i = 0; i < known_isa_count; i++)
        if (isa && !strcmp(isa, known_isas[i])) return i;
    return -1;
}

#if defined(__x86_64__)

namespace {

bool has_f16c() {
    // __builtin_cpu_supports knows f16c only in recent compilers. That the system saves the wide registers
    // is already implied by avx2.
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

const char *missing_for_avx2() {
    if (!__builtin_cpu_supports("avx2")) return "avx2";
    if (!__builtin_cpu_supports("fma")) return "fma";
    if (!has_f16c()) return "f16c";
    return nullptr;
}

const char *missing_for_avx512() {
    if (const char *missing = missing_for_avx2()) return missing;
    if (!__builtin_cpu_supports("avx512f")) return "avx512f";
    if (!__builtin_cpu_supports("avx512dq")) return "avx512dq";
    if (!__builtin_cpu_supports("avx512bw")) return "avx512bw";
    if (!__builtin_cpu_supports("avx512vl")) return "avx512vl";
    if (!__builtin_cpu_supports("avx512cd")) return "avx512cd";
    return nullptr;
}

}  // namespace

// The builtins look at xgetbv too: a register set that the system does not save counts as missing.
const char *missing_feature(int rank) {
    __builtin_cpu_init();
    if (rank == 0) return missing_for_avx512();
    if (rank == 1) return missing_for_avx2();
    if (rank == 2) return nullptr;
    return "an arm64 processor";
}

bool isa_of_this_architecture(int rank) {
    return rank >= 0 && rank <= 2;
}

#elif defined(__aarch64__)

const char *missing_feature(int rank) {
    return rank == 3 ? nullptr : "an x86-64 processor";
}
bool isa_of_this_architecture(int rank) {
    return rank == 3;
}

#else

const char *missing_feature(int rank) {
    return rank == 3 ? "an arm64 processor" : "an x86-64 processor";
}
bool isa_of_this_architecture(int) {
    return false;
}

#endif

}  // namespace halation::runtime
