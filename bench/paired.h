// Two calls timed in turn, so that a machine that slows down slows both.
#ifndef HALATION_BENCH_PAIRED_H
#define HALATION_BENCH_PAIRED_H

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace bench {

inline double seconds_of(const std::function<void()> &call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// Medians in seconds, and the median of the ratios second / first.
struct Paired {
    double first, second, ratio;
};

inline Paired time_in_turn(int pairs, const std::function<void()> &first, const std::function<void()> &second) {
    std::vector<double> a, b, ratios;
    for (int i = 0; i < 3; i++) first(), second();
    // Several calls a time where one is short.
    const double once = std::max(seconds_of(first), 1e-7);
    const int calls = std::clamp(static_cast<int>(2e-3 / once), 1, 100);
    const auto several = [&](const std::function<void()> &call) {
        return seconds_of([&] {
                   for (int i = 0; i < calls; i++) call();
               }) /
               calls;
    };
    for (int i = 0; i < pairs; i++) {
        a.push_back(several(first));
        b.push_back(several(second));
        ratios.push_back(b.back() / a.back());
    }
    return {median(a), median(b), median(ratios)};
}

}  // namespace bench
#endif
