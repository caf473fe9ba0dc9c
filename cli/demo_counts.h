// Counting what came before: the prior of every memory, and the exact table that memories are compared with.
#ifndef HALATION_CLI_DEMO_COUNTS_H
#define HALATION_CLI_DEMO_COUNTS_H

#include "demo_task.h"

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

namespace halation::demo {

// How often each byte came so far, every byte counted as 1/256 at the start.
class ByteCounts {
public:
    ByteCounts() { counts_.fill(1.0 / alphabet); }
    void see(uint8_t byte) {
        counts_[byte]++;
        total_++;
    }
    double share(int byte) const { return counts_[byte] / total_; }

private:
    std::array<double, alphabet> counts_;
    double total_ = 1;
};

// Everything that followed each context of no to three bytes.
class ContextTable {
public:
    explicit ContextTable(const Task &task) : task_(task) {}

    void see(int64_t t);  // tokens in order

    // Of the byte after those seen. An order's counts are mixed with the next lower order's, which weighs as much as
    // the context had different followers (Witten and Bell 1991).
    std::array<double, alphabet> probabilities() const;

private:
    struct Followers {
        std::vector<std::pair<uint8_t, int>> counts;
        double total = 0;
    };
    uint64_t label(int64_t end, int order) const;  // of the `order` bytes before `end`

    const Task &task_;
    std::unordered_map<uint64_t, Followers> table_;
    int64_t end_ = 0;
};

}  // namespace halation::demo
#endif
