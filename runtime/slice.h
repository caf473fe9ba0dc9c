// The part of a tensor that one task sees: one sequence, a range of tokens, heads and value channels.
#ifndef HALATION_RUNTIME_SLICE_H
#define HALATION_RUNTIME_SLICE_H

#include "arguments.h"

namespace halation::runtime {

struct Region {
    int64_t token, tokens;
    int64_t head, heads;         // value heads
    int64_t key_head, key_step;  // key head of the first value head, and the step from one value head to the next
    int64_t value, values;
    int64_t cache_begin, cached;
};

// Axes as the caller sees them, without B or N.
struct Slice {
    char *data = nullptr;
    int rank, bytes;
    int token_axis;  // -1: none
    int64_t extent[most_axes], stride[most_axes];
};

// `row` is the index along B or N.
Slice slice_of(const TensorSpec &spec, const TensorView &view, int64_t row, const Region &region);

int64_t elements_of(const Slice &slice);

// A compact slice of the same shape in other memory, of elements of so many bytes.
Slice compact_like(const Slice &shape, void *memory, int bytes);

void set_zero(const Slice &slice);

// `tokens` of them from `first` on.
Slice tokens_of(const Slice &slice, int64_t first, int64_t tokens);

// Bit for bit; between elements of 4 and of 2 bytes, float32 and bfloat16. Nothing to do where the two are the same memory.
void copy(const Slice &from, const Slice &to);

}  // namespace halation::runtime
#endif
