#include "limits.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

namespace bench {
namespace {

volatile float sink;

// More sums than are under way at once: the latency of a multiply-add times the units for it is 8 to 10 today. They are named
// one by one because a compiler keeps an array of vectors in memory.
#define HALATION_MULTIPLY_ADDS(name, target, bytes)                                                                  \
    target void name(long rounds) {                                                                                  \
        typedef float vector __attribute__((vector_size(bytes)));                                                    \
        const vector factor = vector{} + 0.999f, term = vector{} + 0.001f;                                           \
        vector a = term, b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a, k = a, l = a;                \
        for (long round = 0; round < rounds; round++) {                                                              \
            a = a * factor + term, b = b * factor + term, c = c * factor + term, d = d * factor + term;              \
            e = e * factor + term, f = f * factor + term, g = g * factor + term, h = h * factor + term;              \
            i = i * factor + term, j = j * factor + term, k = k * factor + term, l = l * factor + term;              \
            /* Twelve equal sums would be made one. */                                                               \
            asm volatile(""                                                                                          \
                         : HALATION_KEPT(a), HALATION_KEPT(b), HALATION_KEPT(c), HALATION_KEPT(d), HALATION_KEPT(e), \
                           HALATION_KEPT(f), HALATION_KEPT(g), HALATION_KEPT(h), HALATION_KEPT(i), HALATION_KEPT(j), \
                           HALATION_KEPT(k), HALATION_KEPT(l));                                                      \
        }                                                                                                            \
        const vector sum = a + b + c + d + e + f + g + h + i + j + k + l;                                            \
        sink = sum[0];                                                                                               \
    }
constexpr double sums = 12;

#if defined(__x86_64__)
#define HALATION_KEPT(x) "+x"(x)
HALATION_MULTIPLY_ADDS(multiply_adds_x86_64, , 16)
HALATION_MULTIPLY_ADDS(multiply_adds_avx2, __attribute__((target("avx2,fma"))), 32)
#undef HALATION_KEPT
#define HALATION_KEPT(x) "+v"(x)
HALATION_MULTIPLY_ADDS(multiply_adds_avx512, __attribute__((target("avx512f"))), 64)
#else
#define HALATION_KEPT(x) "+w"(x)
HALATION_MULTIPLY_ADDS(multiply_adds_neon, , 16)
#endif

struct Probe {
    void (*run)(long rounds);
    double lanes;
};

Probe probe_for(const std::string &isa) {
#if defined(__x86_64__)
    if (isa == "avx512") return {multiply_adds_avx512, 16};
    if (isa == "avx2") return {multiply_adds_avx2, 8};
    return {multiply_adds_x86_64, 4};
#else
    (void)isa;
    return {multiply_adds_neon, 4};
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

}  // namespace

int thread_count(int threads) {
    return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
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
    const int count = thread_count(threads);
    const Probe probe = probe_for(isa);
    const long rounds = 4000000;
    const double arithmetic = least_seconds(7, count, [&](int) { probe.run(rounds); });

    const size_t floats = size_t(1) << 24;  // 64 MB an array
    std::vector<std::vector<float>> arrays(3 * static_cast<size_t>(count),
                                           std::vector<float>(floats / static_cast<size_t>(count), 1));
    const double memory = least_seconds(5, count, [&](int thread) {
        const float *a = arrays[3 * static_cast<size_t>(thread)].data(), *b = arrays[3 * static_cast<size_t>(thread) + 1].data();
        float *c = arrays[3 * static_cast<size_t>(thread) + 2].data();
        for (size_t i = 0, n = arrays[3 * static_cast<size_t>(thread)].size(); i < n; i++) c[i] = a[i] + 0.5f * b[i];
    });
    return {count * static_cast<double>(rounds) * sums * probe.lanes / arithmetic,
            3.0 * sizeof(float) * static_cast<double>(floats) / memory};
}

}  // namespace bench
