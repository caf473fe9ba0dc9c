#include "layout.h"

#include <cstdlib>

namespace halation::runtime {
namespace {

// The axes of a tensor with more than one element, strides in bytes and positive, and the address of its lowest element.
struct Lattice {
    int64_t low;
    int count = 0;
    int64_t extent[most_axes], stride[most_axes];

    int64_t span() const {  // bytes from the lowest element's first to the highest element's first
        int64_t bytes = 0;
        for (int i = 0; i < count; i++) bytes += (extent[i] - 1) * stride[i];
        return bytes;
    }
    // The axis of the widest stride, taken out.
    int64_t take_widest() {
        int widest = 0;
        for (int i = 1; i < count; i++)
            if (stride[i] > stride[widest]) widest = i;
        const int64_t step = stride[widest];
        count--;
        extent[widest] = extent[count];
        stride[widest] = stride[count];
        return step;
    }
};

Lattice lattice_of(const Placed &placed) {
    const TensorView &view = placed.view;
    Lattice lattice;
    lattice.low = static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.data));
    for (int axis = 0; axis < placed.rank; axis++) {
        if (view.extent[axis] <= 1 || view.stride[axis] == 0) continue;
        const int64_t step = view.stride[axis] * placed.element_bytes;
        if (step < 0) lattice.low += (view.extent[axis] - 1) * step;
        lattice.extent[lattice.count] = view.extent[axis];
        lattice.stride[lattice.count++] = std::abs(step);
    }
    return lattice;
}

bool apart(Lattice a, Lattice b, int64_t a_bytes, int64_t b_bytes) {
    const int64_t a_end = a.low + a.span() + a_bytes, b_end = b.low + b.span() + b_bytes;
    if (a_end <= b.low || b_end <= a.low) return true;
    if (a.count == 0 || b.count == 0) return false;
    const int64_t step = a.take_widest();
    if (step != b.take_widest()) return false;
    // Both repeat every `step` bytes: they meet if what is repeated meets at some distance in whole steps.
    const int64_t a_span = a.span() + a_bytes, b_span = b.span() + b_bytes;
    if (a_span > step || b_span > step) return false;
    const int64_t steps = (a.low - b.low) / step;
    for (int64_t more = -2; more <= 2; more++) {
        Lattice shifted = b;
        shifted.low += (steps + more) * step;
        if (!apart(a, shifted, a_bytes, b_bytes)) return false;
    }
    return true;
}

}  // namespace

int first_axis_that_meets(const TensorView &view, int rank, int64_t *span) {
    int order[most_axes], count = 0;
    for (int axis = rank - 1; axis >= 0; axis--) {
        if (view.extent[axis] == 0) return -1;
        if (view.extent[axis] == 1) continue;
        int at = count++;
        for (; at > 0 && std::abs(view.stride[order[at - 1]]) > std::abs(view.stride[axis]); at--) order[at] = order[at - 1];
        order[at] = axis;
    }
    *span = 1;
    for (int i = 0; i < count; i++) {
        const int axis = order[i];
        const int64_t stride = std::abs(view.stride[axis]);
        if (stride < *span) return axis;
        *span += (view.extent[axis] - 1) * stride;
    }
    return -1;
}

bool apart(const Placed &a, const Placed &b) {
    if (!a.view.data || !b.view.data) return true;  // not given, or empty
    if (a.view.memory != b.view.memory) return true;
    return apart(lattice_of(a), lattice_of(b), a.element_bytes, b.element_bytes);
}

}  // namespace halation::runtime
