// Rows over several factors such that any two levels of any two factors meet in some row: far fewer than the full
// product, and nearly as good at finding what two things do to each other.
#ifndef HALATION_TESTS_PAIRWISE_H
#define HALATION_TESTS_PAIRWISE_H

#include <functional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

// `levels` is how many levels each factor has. `allowed` judges rows, -1 standing for a level not yet chosen; it must
// allow some completion of whatever it allows, and pairs that it forbids are left out. The same rows for the same seed.
inline std::vector<std::vector<int>> pairwise(const std::vector<int> &levels,
                                              const std::function<bool(const std::vector<int> &)> &allowed, unsigned seed = 1) {
    using Pair = std::tuple<int, int, int, int>;  // factor, level, later factor, its level
    const int factors = static_cast<int>(levels.size());
    std::mt19937 generator(seed);
    const std::vector<int> none(levels.size(), -1);
    std::set<Pair> open;
    for (int f = 0; f < factors; f++)
        for (int g = f + 1; g < factors; g++)
            for (int a = 0; a < levels[f]; a++)
                for (int b = 0; b < levels[g]; b++) {
                    std::vector<int> row = none;
                    row[f] = a, row[g] = b;
                    if (allowed(row)) open.insert({f, a, g, b});
                }
    const auto gain = [&](const std::vector<int> &row, int f, int level) {
        int pairs = 0;
        for (int g = 0; g < factors; g++)
            if (row[g] >= 0) pairs += g < f ? open.count({g, row[g], f, level}) : open.count({f, level, g, row[g]});
        return pairs;
    };

    std::vector<std::vector<int>> rows;
    while (!open.empty()) {
        std::vector<int> row = none;
        const auto [first, a, second, b] = *open.begin();
        row[first] = a, row[second] = b;
        std::vector<int> order;
        for (int f = 0; f < factors; f++)
            if (row[f] < 0) order.insert(order.begin() + generator() % (order.size() + 1), f);
        for (int f : order) {
            int best = -1, best_gain = -1;
            const int start = static_cast<int>(generator() % levels[f]);
            for (int i = 0; i < levels[f]; i++) {
                const int level = (start + i) % levels[f];
                row[f] = level;
                const bool fits = allowed(row);
                row[f] = -1;
                const int found = fits ? gain(row, f, level) : -1;
                if (found > best_gain) best = level, best_gain = found;
            }
            row[f] = best;
        }
        for (int f = 0; f < factors; f++)
            for (int g = f + 1; g < factors; g++) open.erase({f, row[f], g, row[g]});
        rows.push_back(row);
    }
    return rows;
}

#endif
