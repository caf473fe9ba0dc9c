// Numbers drawn from a seed, the same everywhere.
#ifndef HALATION_TESTS_DRAW_H
#define HALATION_TESTS_DRAW_H

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

class Draw {
public:
    explicit Draw(unsigned seed) : generator_(seed) {}
    int64_t number(int64_t low, int64_t high) { return low + generator_() % (high - low + 1); }
    // Small ones more often.
    int64_t size(int64_t most) { return number(1, number(1, most)); }
    bool chance(int percent) { return number(1, 100) <= percent; }
    bool once_in(int64_t times) { return number(1, times) == 1; }
    template<typename T> const T &one_of(const std::vector<T> &all) { return all[number(0, all.size() - 1)]; }
    template<typename T> void shuffle(std::vector<T> &all) { std::shuffle(all.begin(), all.end(), generator_); }

private:
    std::mt19937 generator_;
};

#endif
