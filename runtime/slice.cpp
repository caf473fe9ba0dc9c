#include "slice.h"

#include <cstring>

namespace halation::runtime {
namespace {

// Calls line(a, b, bytes) for every run of adjacent elements. `b` moves with b_stride where a moves with its own.
template<typename Line> void each_line(const Slice &a, char *b, const int64_t *b_stride, Line line) {
    int64_t index[most_axes] = {};
    const int inner = a.rank - 1;
    const bool adjacent = a.extent[inner] == 1 || (a.stride[inner] == 1 && b_stride[inner] == 1);
    const int outer = adjacent ? inner : a.rank;
    const size_t bytes = static_cast<size_t>(a.bytes) * static_cast<size_t>(adjacent ? a.extent[inner] : 1);
    for (int axis = 0; axis < a.rank; axis++)
        if (a.extent[axis] == 0) return;
    for (;;) {
        int64_t at = 0, b_at = 0;
        for (int axis = 0; axis < outer; axis++) {
            at += index[axis] * a.stride[axis];
            b_at += index[axis] * b_stride[axis];
        }
        line(a.data + at * a.bytes, b + b_at * a.bytes, bytes);
        int axis = outer - 1;
        while (axis >= 0 && ++index[axis] == a.extent[axis]) index[axis--] = 0;
        if (axis < 0) return;
    }
}

}  // namespace

Slice slice_of(const TensorSpec &spec, const TensorView &view, int64_t row, const Region &region) {
    Slice slice;
    slice.rank = 0;
    slice.bytes = spec.bytes;
    slice.token_axis = -1;
    int64_t offset = 0;
    for (int axis = 0; axis < spec.rank; axis++) {
        const int64_t stride = view.stride[axis];
        int64_t first = 0, extent = view.extent[axis], step = stride;
        if (axis == spec.row_axis) {
            offset += row * stride;
            continue;
        }
        if (axis == spec.token_axis) {
            first = region.token;
            extent = region.tokens;
            slice.token_axis = slice.rank;
        } else if (axis == spec.head_axis) {
            first = spec.key_head ? region.key_head : region.head;
            step = spec.key_head ? stride * region.key_step : stride;
            extent = region.heads;
        } else if (axis == spec.value_axis) {
            first = region.value;
            extent = region.values;
        }
        offset += first * stride;
        slice.extent[slice.rank] = extent;
        slice.stride[slice.rank++] = step;
    }
    slice.data = view.data ? view.data + offset * spec.bytes : nullptr;
    return slice;
}

Slice compact_like(const Slice &shape, void *memory) {
    Slice slice = shape;
    slice.data = static_cast<char *>(memory);
    int64_t stride = 1;
    for (int axis = slice.rank - 1; axis >= 0; axis--) {
        slice.stride[axis] = stride;
        stride *= slice.extent[axis];
    }
    return slice;
}

void set_zero(const Slice &slice) {
    each_line(slice, slice.data, slice.stride, [](char *at, char *, size_t bytes) { memset(at, 0, bytes); });
}

void copy(const Slice &from, const Slice &to) {
    if (from.data == to.data) return;  // arguments that share memory were seen to share strides
    each_line(from, to.data, to.stride, [](char *at, char *other, size_t bytes) { memcpy(other, at, bytes); });
}

}  // namespace halation::runtime
