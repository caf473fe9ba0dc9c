#include "memory.h"
#include "text.h"

#include <cstdlib>

namespace halation::runtime {

Allocator default_allocator() {
    return {[](void *, size_t bytes, size_t alignment) -> void * {
                const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
                return rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded ? rounded : alignment);
            },
            [](void *, void *memory, size_t) { std::free(memory); }, nullptr};
}

// Stands in the 64 bytes before a block's memory.
struct Scratch::Block {
    Block *next_in_bin;
    Block *previous, *next;  // among all blocks, used or kept
    size_t capacity;
    int bin;
};

Scratch::Scratch() {
    interface_.owner = this;
    interface_.kernel.allocate = [](halation_kernel_context *kernel, size_t bytes) { return of(kernel).allocate(bytes); };
    interface_.kernel.release = [](halation_kernel_context *kernel, void *memory) { of(kernel).release(memory); };
    interface_.kernel.error = [](halation_kernel_context *kernel, const char *message) {
        Scratch &scratch = of(kernel);
        if (!scratch.message_[0] && message) copy_text(scratch.message_, message);  // the first is the cause
    };
}

Scratch::~Scratch() {
    while (all_) destroy(all_);
}

// Four sizes to each power of two: at most a quarter is wasted, and equal requests meet in one bin.
int Scratch::bin_of(size_t bytes, size_t *capacity) {
    if (bytes <= 256) {
        const size_t quarters = bytes ? (bytes + 63) / 64 : 1;
        *capacity = quarters * 64;
        return static_cast<int>(quarters - 1);
    }
    const int power = 63 - __builtin_clzll(bytes - 1);  // 2^power < bytes <= 2^(power + 1)
    const size_t step = size_t(1) << (power - 2);
    const size_t steps = (bytes + step - 1) / step;  // 5 .. 8
    *capacity = steps * step;
    return (power - 7) * 4 + static_cast<int>(steps - 5);
}

void *Scratch::allocate(size_t bytes) {
    if (bytes > (size_t(1) << 46)) {
        out_of_memory_ = true;
        return nullptr;
    }
    size_t capacity;
    const int bin = bin_of(bytes, &capacity);
    Block *block = bins_[bin];
    if (block) {
        bins_[bin] = block->next_in_bin;
        kept_ -= capacity;
        return reinterpret_cast<char *>(block) + memory_alignment;
    }
    static_assert(sizeof(Block) <= memory_alignment, "the header must fit before aligned memory");
    const size_t total = capacity + memory_alignment;
    void *memory = allocator_->allocate(allocator_->user, total, memory_alignment);
    if (!memory) {
        drop_cached();  // other sizes kept here may be what is missing
        memory = allocator_->allocate(allocator_->user, total, memory_alignment);
    }
    if (!memory) {
        out_of_memory_ = true;
        return nullptr;
    }
    block = static_cast<Block *>(memory);
    *block = {nullptr, nullptr, all_, capacity, bin};
    if (all_) all_->previous = block;
    all_ = block;
    return static_cast<char *>(memory) + memory_alignment;
}

void Scratch::release(void *memory) {
    if (!memory) return;
    Block *block = reinterpret_cast<Block *>(static_cast<char *>(memory) - memory_alignment);
    // Starting afresh rather than refusing the newcomer: sizes of a problem no longer run must not stay for ever.
    if (kept_ + block->capacity > keep_at_most) drop_cached();
    if (block->capacity > keep_at_most) {
        destroy(block);
        return;
    }
    block->next_in_bin = bins_[block->bin];
    bins_[block->bin] = block;
    kept_ += block->capacity;
}

void Scratch::destroy(Block *block) {
    (block->previous ? block->previous->next : all_) = block->next;
    if (block->next) block->next->previous = block->previous;
    allocator_->release(allocator_->user, block, block->capacity + memory_alignment);
}

void Scratch::drop_cached() {
    for (Block *&bin : bins_)
        while (bin) {
            Block *block = bin;
            bin = block->next_in_bin;
            destroy(block);
        }
    kept_ = 0;
}

}  // namespace halation::runtime
