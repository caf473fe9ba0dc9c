#include "limits.h"

#include "runtime/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

namespace bench {
namespace {

thread_local volatile float sink;  // so that what is computed is used

// One probe of each for an ISA: `target` is what the compiler has to be told, `bytes` the width of a vector, HALATION_KEPT(x)
// says that a vector is used, so that nothing is left out or made one.
//
// Twelve sums, more than are under way at once: the latency of a multiply-add times the units for it is 8 to 10 today. They are
// named one by one because a compiler keeps an array of vectors in memory.
//
// exp(x) = 2^n exp(r), n the nearest integer to x log2(e): exp(r) is the series to r^6, 2^n is added to the exponent.
#define HALATION_PROBES(isa, target, bytes)                                                                          \
    target void multiply_adds_##isa(long rounds) {                                                                   \
        typedef float vector __attribute__((vector_size(bytes)));                                                    \
        const vector factor = vector{} + 0.999f, term = vector{} + 0.001f;                                           \
        vector a = term, b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a, k = a, l = a;                \
        for (long round = 0; round < rounds; round++) {                                                              \
            a = a * factor + term, b = b * factor + term, c = c * factor + term, d = d * factor + term;              \
            e = e * factor + term, f = f * factor + term, g = g * factor + term, h = h * factor + term;              \
            i = i * factor + term, j = j * factor + term, k = k * factor + term, l = l * factor + term;              \
            asm volatile(""                                                                                          \
                         : HALATION_KEPT(a), HALATION_KEPT(b), HALATION_KEPT(c), HALATION_KEPT(d), HALATION_KEPT(e), \
                           HALATION_KEPT(f), HALATION_KEPT(g), HALATION_KEPT(h), HALATION_KEPT(i), HALATION_KEPT(j), \
                           HALATION_KEPT(k), HALATION_KEPT(l));                                                      \
        }                                                                                                            \
        const vector sum = a + b + c + d + e + f + g + h + i + j + k + l;                                            \
        sink = sum[0];                                                                                               \
    }                                                                                                                \
    target void exps_##isa(long rounds) {                                                                            \
        typedef float vector __attribute__((vector_size(bytes)));                                                    \
        typedef int integers __attribute__((vector_size(bytes)));                                                    \
        const vector nearest = vector{} + 12582912.0f; /* 1.5 2^23: what is added to it is rounded */                \
        vector x = vector{} - 0.1f;                                                                                  \
        for (long round = 0; round < rounds; round++) {                                                              \
            asm volatile("" : HALATION_KEPT(x));                                                                     \
            const vector shifted = x * 1.44269504f + nearest, n = shifted - nearest;                                 \
            const vector r = (x - n * 0.693359375f) + n * 2.12194440e-4f;                                            \
            vector p = r * (1.0f / 720) + 1.0f / 120;                                                                \
            p = p * r + 1.0f / 24, p = p * r + 1.0f / 6, p = p * r + 0.5f, p = p * r + 1.0f, p = p * r + 1.0f;       \
            vector result = (vector)((integers)p + ((integers)shifted << 23));                                       \
            asm volatile("" : HALATION_KEPT(result));                                                                \
        }                                                                                                            \
        sink = x[0];                                                                                                 \
    }
constexpr double sums = 12;

#if defined(__x86_64__)
#define HALATION_KEPT(x) "+x"(x)
HALATION_PROBES(x86_64, , 16)
HALATION_PROBES(avx2, __attribute__((target("avx2,fma"))), 32)
#undef HALATION_KEPT
#define HALATION_KEPT(x) "+v"(x)
HALATION_PROBES(avx512, __attribute__((target("avx512f"))), 64)
#else
#define HALATION_KEPT(x) "+w"(x)
HALATION_PROBES(neon, , 16)
#endif

struct Probe {
    void (*multiply_adds)(long rounds), (*exps)(long rounds);
    double lanes;
};

Probe probe_for(const std::string &isa) {
#if defined(__x86_64__)
    if (isa == "avx512") return {multiply_adds_avx512, exps_avx512, 16};
    if (isa == "avx2") return {multiply_adds_avx2, exps_avx2, 8};
    return {multiply_adds_x86_64, exps_x86_64, 4};
#else
    (void)isa;
    return {multiply_adds_neon, exps_neon, 4};
#endif
}

double seconds_on_threads(int threads, const std::function<void(int)> &work) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; thread++) others.emplace_back(work, thread);
    work(0);
    for (std::thread &other : others) other.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double least_seconds(int repetitions, int threads, const std::function<void(int)> &work) {
    double least = seconds_on_threads(threads, work);
    for (int i = 1; i < repetitions; i++) least = std::min(least, seconds_on_threads(threads, work));
    return least;
}

// Of all threads together.
double rounds_per_second(void (*probe)(long rounds), int threads) {
    // Long enough for the clock, and for threads to start in: but processors differ, and some are emulated.
    long rounds = 1000;
    while (seconds_on_threads(1, [&](int) { probe(rounds); }) < 5e-3) rounds *= 2;
    return threads * static_cast<double>(rounds) / least_seconds(7, threads, [&](int) { probe(rounds); });
}

}  // namespace

int thread_count(int threads) {
    return threads > 0 ? threads : halation::runtime::processor_count();
}

std::string processor_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        const size_t colon = line.find(": ");
        if (colon != std::string::npos && line.rfind("model name", 0) == 0) return line.substr(colon + 2);
    }
    return "unknown processor";
}

Limits measure_limits(const std::string &isa, int threads) {
    // More threads than processors compute nothing faster.
    const int count = std::min(thread_count(threads), thread_count(0));
    const Probe probe = probe_for(isa);
    const double multiply_adds = sums * probe.lanes * rounds_per_second(probe.multiply_adds, count);
    const double exps = probe.lanes * rounds_per_second(probe.exps, count);

    const size_t floats = size_t(1) << 24;  // 64 MB an array
    std::vector<std::vector<float>> arrays(3 * static_cast<size_t>(count),
                                           std::vector<float>(floats / static_cast<size_t>(count), 1));
    const double memory = least_seconds(3, count, [&](int thread) {
        const float *a = arrays[3 * static_cast<size_t>(thread)].data(), *b = arrays[3 * static_cast<size_t>(thread) + 1].data();
        float *c = arrays[3 * static_cast<size_t>(thread) + 2].data();
        for (size_t i = 0, n = arrays[3 * static_cast<size_t>(thread)].size(); i < n; i++) c[i] = a[i] + 0.5f * b[i];
    });
    return {multiply_adds, exps, 3.0 * sizeof(float) * static_cast<double>(floats) / memory};
}

}  // namespace bench
