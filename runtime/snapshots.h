// The snapshots that a task takes on its way.
#ifndef HALATION_RUNTIME_SNAPSHOTS_H
#define HALATION_RUNTIME_SNAPSHOTS_H

#include "task.h"

#include <algorithm>

namespace halation::runtime {

// Those of one sequence, in the order in which they are taken.
class Snapshots {
public:
    explicit Snapshots(const Task &task)
        : sequence_(task.sequence_index), arguments_(task.run.arguments), order_(task.plan().snapshot_order) {
        const auto earlier = [&](int64_t snapshot, int64_t sequence) {
            return arguments_.snapshot_sequences[snapshot] < sequence;
        };
        next_ = std::lower_bound(order_.begin(), order_.end(), sequence_, earlier);
    }
    bool any() const { return next_ != order_.end() && arguments_.snapshot_sequences[*next_] == sequence_; }
    int64_t tokens() const { return arguments_.snapshot_tokens[*next_]; }
    int64_t slot() const { return arguments_.snapshot_slots[*next_]; }
    void next() { next_++; }

private:
    const int64_t sequence_;
    const Arguments &arguments_;
    const std::vector<int64_t> &order_;
    std::vector<int64_t>::const_iterator next_;
};

}  // namespace halation::runtime
#endif
