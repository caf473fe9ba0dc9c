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

inline double quantile(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    const double at = part * static_cast<double>(values.size() - 1);
    const size_t below = static_cast<size_t>(at), above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

// Seconds of a call, and the ratios second / first: their median and quartiles.
struct Paired {
    double first, second;  // medians
    double least_second;
    double ratio, ratio_low, ratio_high;
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
        // Each comes first every other time.
        if (i % 2 == 0) a.push_back(several(first));
        b.push_back(several(second));
        if (i % 2 != 0) a.push_back(several(first));
        ratios.push_back(b.back() / a.back());
    }
    return {quantile(a, 0.5),      quantile(b, 0.5),       *std::min_element(b.begin(), b.end()),
            quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75)};
}

}  // namespace bench
#endif
