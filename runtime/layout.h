// How tensors lie in memory, and whether two of them meet.
#ifndef HALATION_RUNTIME_LAYOUT_H
#define HALATION_RUNTIME_LAYOUT_H

#include "rows.h"

namespace halation::runtime {

// A tensor with its byte offset applied and a stride, in elements, for every axis. An axis of one element has
// stride 0, since nothing ever steps along it.
struct TensorView {
    char *data;  // NULL: not given, or without elements
    bool given;
    int64_t extent[most_axes], stride[most_axes];
    // On a device, see Location: which memory `data` is an address in, and how far it goes on from there.
    const void *memory = nullptr;
    uint64_t memory_bytes = UINT64_MAX;
};

// Taken by rising stride, an axis must step over all that those before it span, or elements of a tensor may meet. The first
// that does not, and that span in elements; -1 if all do.
int first_axis_that_meets(const TensorView &view, int rank, int64_t *span);

// What may share memory: elements of a tensor.
struct Placed {
    const TensorView &view;
    int rank, element_bytes;
};

// True if no element of one is an element of the other. Exact where the two have the same outer strides, as parts of one
// buffer do; otherwise tensors whose hulls meet count as meeting.
bool apart(const Placed &a, const Placed &b);

}  // namespace halation::runtime
#endif
