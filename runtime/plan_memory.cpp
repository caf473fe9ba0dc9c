#include "plan_memory.h"
#include "status.h"

#include <algorithm>

namespace halation::runtime {

PlanMemory::~PlanMemory() {
    for (const Block &block : blocks_) device_.let_go(block.handle);
    for (void *data : all_) device_.release(data);
}

halation_status PlanMemory::allocate(size_t bytes, void **data) {
    if (device_.capturing())
        return fail(
            HALATION_INVALID_ARGUMENT,
            "plan: needs %zu more bytes on the device, which cannot be allocated while its stream is captured; run it once "
            "with arguments of these shapes before",
            bytes);
    all_.reserve(all_.size() + 1);
    HALATION_TRY(device_.allocate(bytes, data));
    all_.push_back(*data);
    return HALATION_OK;
}

halation_status PlanMemory::get(Purpose purpose, size_t bytes, void **data) {
    if (bytes > bytes_[purpose]) {
        const size_t grown = std::max({bytes, bytes_[purpose] + bytes_[purpose] / 2, size_t(4096)});
        HALATION_TRY(allocate(grown, &data_[purpose]));
        bytes_[purpose] = grown;
    }
    *data = data_[purpose];
    return HALATION_OK;
}

halation_status PlanMemory::take(size_t bytes, uint64_t *handle) {
    Block *best = nullptr;
    size_t largest = 0;
    for (Block &block : blocks_) {
        largest = std::max(largest, block.bytes);
        if (!block.taken && block.bytes >= bytes && (!best || block.bytes < best->bytes)) best = &block;
    }
    if (!best) {
        Block block{nullptr, bytes, 0, false};
        if (bytes > largest) block.bytes = std::max(bytes, std::min(largest + largest / 2, 2 * bytes));
        HALATION_TRY(allocate(block.bytes, &block.data));
        Location location;
        HALATION_TRY(device_.locate("workspace", block.data, &location));
        HALATION_TRY(device_.point_to("workspace", location, block.bytes, &block.handle));
        best = &blocks_.emplace_back(block);
    }
    best->taken = true;
    *handle = best->handle;
    return HALATION_OK;
}

halation_status PlanMemory::give_back(uint64_t handle) {
    for (Block &block : blocks_) {
        if (block.handle != handle || !block.taken) continue;
        block.taken = false;
        return HALATION_OK;
    }
    return fail(HALATION_INTERNAL_ERROR, "workspace: a kernel releases memory that it has not taken");
}

void PlanMemory::give_back_all() {
    for (Block &block : blocks_) block.taken = false;
}

}  // namespace halation::runtime
