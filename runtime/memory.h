// The context's allocator, and the scratch memory one thread serves kernels from.
#ifndef HALATION_RUNTIME_MEMORY_H
#define HALATION_RUNTIME_MEMORY_H

#include "halation_kernels.h"

#include <cstddef>

namespace halation::runtime {

constexpr size_t memory_alignment = 64;

struct Allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
};

// The system's aligned allocation.
Allocator default_allocator();

// What the user context of a kernel points to: scratch for one thread, and the error of the task it runs.
// A kernel asks for a few dozen blocks of the same sizes in every call, so released blocks are kept in bins by
// size and handed out again: no lock, no system call, no page fault after the first call. What is kept is
// bounded; everything goes back to the allocator with the Scratch.
class alignas(128) Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;

    void set_allocator(const Allocator *allocator) { allocator_ = allocator; }

    // 64-byte aligned, or nullptr.
    void *allocate(size_t bytes);
    void release(void *memory);

    halation_kernel_context *kernel_context() { return &interface_.kernel; }

    // The error state of one task.
    void clear_error() {
        out_of_memory_ = false;
        message_[0] = 0;
    }
    bool out_of_memory() const { return out_of_memory_; }
    const char *message() const { return message_; }

private:
    struct Block;
    // Standard layout, so that a kernel's halation_kernel_context pointer leads back to its Scratch.
    struct Interface {
        halation_kernel_context kernel;
        Scratch *owner;
    };

    static Scratch &of(halation_kernel_context *kernel) { return *reinterpret_cast<Interface *>(kernel)->owner; }
    static int bin_of(size_t bytes, size_t *capacity);
    void destroy(Block *block);
    void drop_cached();

    static constexpr size_t keep_at_most = size_t(64) << 20;
    static constexpr int bin_count = 4 * 48;

    Interface interface_;
    const Allocator *allocator_ = nullptr;
    Block *bins_[bin_count] = {};
    Block *all_ = nullptr;
    size_t kept_ = 0;
    bool out_of_memory_ = false;
    char message_[400] = {};
};

}  // namespace halation::runtime
#endif
