#include "slice.h"
#include "bfloat16.h"

#include <cstring>

namespace halation::runtime {
namespace {

// One innermost line of two slices of the same shape.
struct Line {
    char *a, *b;
    int64_t count, a_stride, b_stride;  // in elements
};

template<typename Visit> void each_line(const Slice &a, const Slice &b, Visit visit) {
    int64_t index[most_axes] = {};
    const int inner = a.rank - 1;
    for (int axis = 0; axis < a.rank; axis++)
        if (a.extent[axis] == 0) return;
    for (;;) {
        int64_t at = 0, b_at = 0;
        for (int axis = 0; axis < inner; axis++) {
            at += index[axis] * a.stride[axis];
            b_at += index[axis] * b.stride[axis];
        }
        visit(Line{a.data + at * a.bytes, b.data + b_at * b.bytes, a.extent[inner], a.stride[inner], b.stride[inner]});
        int axis = inner - 1;
        while (axis >= 0 && ++index[axis] == a.extent[axis]) index[axis--] = 0;
        if (axis < 0) return;
    }
}

template<typename Element> void copy_elements(const Slice &from, const Slice &to) {
    each_line(from, to, [](const Line &line) {
        constexpr int64_t bytes = sizeof(Element);
        if (line.count == 1 || (line.a_stride == 1 && line.b_stride == 1)) {
            memcpy(line.b, line.a, static_cast<size_t>(line.count * bytes));
            return;
        }
        for (int64_t i = 0; i < line.count; i++)
            memcpy(line.b + i * line.b_stride * bytes, line.a + i * line.a_stride * bytes, bytes);
    });
}

void convert(const Slice &from, const Slice &to, void (*line_of)(const char *, char *, int64_t)) {
    each_line(from, to, [&](const Line &line) {
        if (line.count == 1 || (line.a_stride == 1 && line.b_stride == 1)) return line_of(line.a, line.b, line.count);
        for (int64_t i = 0; i < line.count; i++)
            line_of(line.a + i * line.a_stride * from.bytes, line.b + i * line.b_stride * to.bytes, 1);
    });
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
        } else if (axis == spec.cache_axis) {
            first = region.cache_begin;
            extent = region.cached;
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

int64_t elements_of(const Slice &slice) {
    int64_t elements = 1;
    for (int axis = 0; axis < slice.rank; axis++) elements *= slice.extent[axis];
    return elements;
}

Slice compact_like(const Slice &shape, void *memory, int bytes) {
    Slice slice = shape;
    slice.data = static_cast<char *>(memory);
    slice.bytes = bytes;
    int64_t stride = 1;
    for (int axis = slice.rank - 1; axis >= 0; axis--) {
        slice.stride[axis] = stride;
        stride *= slice.extent[axis];
    }
    return slice;
}

Slice tokens_of(const Slice &slice, int64_t first, int64_t tokens) {
    Slice some = slice;
    some.data += first * slice.stride[slice.token_axis] * slice.bytes;
    some.extent[slice.token_axis] = tokens;
    return some;
}

void set_zero(const Slice &slice) {
    each_line(slice, slice, [&](const Line &line) {
        if (line.a_stride == 1 || line.count == 1) {
            memset(line.a, 0, static_cast<size_t>(line.count * slice.bytes));
        } else {
            for (int64_t i = 0; i < line.count; i++)
                memset(line.a + i * line.a_stride * slice.bytes, 0, static_cast<size_t>(slice.bytes));
        }
    });
}

void copy(const Slice &from, const Slice &to) {
    if (from.data == to.data) return;  // arguments that share memory were seen to share strides
    if (from.bytes == to.bytes) return from.bytes == 4 ? copy_elements<uint32_t>(from, to) : copy_elements<uint16_t>(from, to);
    convert(from, to, from.bytes == 2 ? widen : narrow);
}

}  // namespace halation::runtime
