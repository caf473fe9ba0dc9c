// What a plan keeps on its device: memory that grows from call to call and is given back with the plan.
#ifndef HALATION_RUNTIME_PLAN_MEMORY_H
#define HALATION_RUNTIME_PLAN_MEMORY_H

#include "device.h"

#include <vector>

namespace halation::runtime {

// Nothing is released before the plan goes, even what is too small by now: graphs that were captured have its addresses. So that
// this does no harm, what grows does so by half at least.
class PlanMemory {
public:
    enum Purpose { table, filler, kept_state, kept_normalizer, purpose_count };

    explicit PlanMemory(Device &device) : device_(device) {}
    ~PlanMemory();
    PlanMemory(const PlanMemory &) = delete;
    PlanMemory &operator=(const PlanMemory &) = delete;

    // Memory of at least so many bytes for one purpose, the same for the same purpose as long as that is enough.
    halation_status get(Purpose purpose, size_t bytes, void **data);

    // What a kernel keeps from launch to launch: a block is taken by one until it is given back. The queue is in order, so the
    // next may have it at once.
    halation_status take(size_t bytes, uint64_t *handle);
    halation_status give_back(uint64_t handle);

    // After a call that failed on the way.
    void give_back_all();

private:
    struct Block {
        void *data;
        size_t bytes;
        uint64_t handle;
        bool taken;
    };

    halation_status allocate(size_t bytes, void **data);

    Device &device_;
    void *data_[purpose_count] = {};
    size_t bytes_[purpose_count] = {};
    std::vector<Block> blocks_;
    std::vector<void *> all_;
};

}  // namespace halation::runtime
#endif
