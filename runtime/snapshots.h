// The snapshots that are taken on the way along a sequence.
#ifndef HALATION_RUNTIME_SNAPSHOTS_H
#define HALATION_RUNTIME_SNAPSHOTS_H

#include "arguments.h"

#include <algorithm>

namespace halation::runtime {

// Those of one sequence, in the order in which they are taken.
class Snapshots {
public:
    Snapshots(const halation_plan &plan, const Arguments &arguments, int64_t sequence)
        : sequence_(sequence), arguments_(arguments), order_(plan.snapshot_order) {
        const auto earlier = [&](int64_t snapshot, int64_t sequence) {
            return arguments_.snapshot_sequences[snapshot] < sequence;
        };
        next_ = std::lower_bound(order_.begin(), order_.end(), sequence_, earlier);
    }
    bool any() const { return next_ != order_.end() && arguments_.snapshot_sequences[*next_] == sequence_; }
    int64_t tokens() const { return arguments_.snapshot_tokens[*next_]; }
    int64_t slot() const { return arguments_.snapshot_slots[*next_]; }
    void next() { next_++; }

    // Where the way, of `length` tokens, is broken off for this one: at the last whole chunk, from where the tokens that are left
    // are computed twice, lest outputs change.
    int64_t stop(const BoundKernel &bound, int64_t length) const {
        if (tokens() == length) return length;
        return bound.cut > 0 ? tokens() / bound.cut * bound.cut : 0;
    }

private:
    const int64_t sequence_;
    const Arguments &arguments_;
    const std::vector<int64_t> &order_;
    std::vector<int64_t>::const_iterator next_;
};

}  // namespace halation::runtime
#endif
