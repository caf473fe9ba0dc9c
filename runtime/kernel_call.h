// The arguments of a generated kernel as it takes them.
#ifndef HALATION_RUNTIME_KERNEL_CALL_H
#define HALATION_RUNTIME_KERNEL_CALL_H

#include "slice.h"

#include <HalideRuntime.h>

#include <algorithm>

namespace halation::runtime {

struct KernelBuffer {
    halide_buffer_t buffer;
    halide_dimension_t dim[most_axes];
    int64_t token_bytes;  // from one token to the next; 0: the buffer stays where it is
    int token_dim;        // -1: none

    // A copy is a view of the same memory, with dimensions of its own.
    KernelBuffer() = default;
    KernelBuffer(const KernelBuffer &from) { *this = from; }
    KernelBuffer &operator=(const KernelBuffer &from) {
        buffer = from.buffer;
        buffer.dim = dim;
        std::copy_n(from.dim, most_axes, dim);
        token_bytes = from.token_bytes;
        token_dim = from.token_dim;
        return *this;
    }

    void fill(const Slice &slice, DLDataType type);
    void set_tokens(int64_t tokens) {
        if (token_dim >= 0) dim[token_dim].extent = static_cast<int32_t>(tokens);
    }
};

struct KernelCall {
    KernelBuffer buffers[most_tensors];
    void *argv[most_arguments];
    void *user_context;
    KernelBuffer sequences;                 // of a kernel that sees the whole batch
    KernelBuffer initial_bits, final_bits;  // likewise: the states, of bfloat16
    float scale;
    int32_t causal, present, absent, most_tokens, most_cached, key_head_step, key_heads, reads_bits, writes_bits;

    // Points argv at the scalars, and at the buffers, which are filled by the caller.
    void bind(const BoundKernel &bound, const Problem &problem, const Arguments &arguments, void *context);
};

}  // namespace halation::runtime
#endif
