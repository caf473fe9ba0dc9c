// Tensors that kernels cannot take as they lie, because of their strides or the type they are stored in, go through scratch
// memory: inputs are copied there before a call of the kernel, outputs from there after it, a few tokens at a time.
#ifndef HALATION_RUNTIME_STAGE_H
#define HALATION_RUNTIME_STAGE_H

#include "kernel_call.h"
#include "memory.h"

namespace halation::runtime {

// Scratch memory that goes back when its borrower is done.
class Borrowed {
public:
    explicit Borrowed(Scratch &scratch) : scratch_(scratch) {}
    ~Borrowed() {
        for (int i = 0; i < count_; i++) scratch_.release(memory_[i]);
    }
    Borrowed(const Borrowed &) = delete;
    Borrowed &operator=(const Borrowed &) = delete;

    // nullptr: there is none, and the Scratch says so.
    void *take(int64_t bytes) {
        void *memory = scratch_.allocate(static_cast<size_t>(bytes));
        if (memory) memory_[count_++] = memory;
        return memory;
    }
    // A compact slice of the same shape, of elements of so many bytes; its data is nullptr if there is no memory.
    Slice take_like(const Slice &shape, int bytes) { return compact_like(shape, take(elements_of(shape) * bytes), bytes); }

private:
    Scratch &scratch_;
    void *memory_[most_tensors + 4];
    int count_ = 0;
};

// The staged inputs and the staged output of one call of a kernel after the other.
class Stage {
public:
    // Gives `buffer` scratch memory in place of `slice`, for at most `tokens` tokens. False: there is no memory.
    bool add(const TensorSpec &spec, const Slice &slice, int64_t tokens, KernelBuffer *buffer, Borrowed *memory);

    // Before and after the kernel works on `tokens` tokens from `token` on.
    void bring(int64_t token, int64_t tokens);
    void take_back(int64_t token, int64_t tokens);

private:
    struct Staged {
        Slice theirs, ours;
        bool output;
    };
    Staged staged_[most_tensors];
    int count_ = 0;
};

}  // namespace halation::runtime
#endif
