#include "bfloat16.h"
#include "cpu_features.h"

#include <cstring>

namespace halation::runtime {
namespace {

// Element by element through memcpy, which compilers turn into vectors; compiled again for the wider ones below.
__attribute__((always_inline)) inline void widen_all(const char *from, char *to, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, 2);
        const uint32_t bits = static_cast<uint32_t>(half) << 16;
        memcpy(to + 4 * i, &bits, 4);
    }
}

__attribute__((always_inline)) inline void narrow_all(const char *from, char *to, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + 4 * i, 4);
        const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
        const uint16_t half = static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
        memcpy(to + 2 * i, &half, 2);
    }
}

using Convert = void (*)(const char *, char *, int64_t);
struct Conversions {
    Convert widen, narrow;
};

#if defined(__x86_64__)

__attribute__((target("avx2"))) void widen_avx2(const char *from, char *to, int64_t count) {
    widen_all(from, to, count);
}
__attribute__((target("avx2"))) void narrow_avx2(const char *from, char *to, int64_t count) {
    narrow_all(from, to, count);
}
__attribute__((target("avx512f,avx512bw,avx512vl"))) void widen_avx512(const char *from, char *to, int64_t count) {
    widen_all(from, to, count);
}
__attribute__((target("avx512f,avx512bw,avx512vl"))) void narrow_avx512(const char *from, char *to, int64_t count) {
    narrow_all(from, to, count);
}

Conversions best() {
    if (!missing_feature(isa_rank("avx512"))) return {widen_avx512, narrow_avx512};
    if (!missing_feature(isa_rank("avx2"))) return {widen_avx2, narrow_avx2};
    return {widen_all, narrow_all};
}

#else

Conversions best() {
    return {widen_all, narrow_all};
}

#endif

const Conversions &conversions() {
    static const Conversions chosen = best();
    return chosen;
}

}  // namespace

void widen(const char *bfloat16, char *floats, int64_t count) {
    conversions().widen(bfloat16, floats, count);
}

void narrow(const char *floats, char *bfloat16, int64_t count) {
    conversions().narrow(floats, bfloat16, count);
}

}  // namespace halation::runtime
