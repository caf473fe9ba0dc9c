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
};

// Axes as the caller sees them, without B or N.
struct Slice {
    char *data;
    int rank, bytes;
    int token_axis;  // -1: none
    int64_t extent[most_axes], stride[most_axes];
};

// `row` is the index along B or N.
Slice slice_of(const TensorSpec &spec, const TensorView &view, int64_t row, const Region &region);

// A compact slice of the same shape in other memory.
Slice compact_like(const Slice &shape, void *memory);

void set_zero(const Slice &slice);

// Bit for bit; nothing to do where the two are the same memory.
void copy(const Slice &from, const Slice &to);

}  // namespace halation::runtime
#endif
