// One tensor of a call, checked against what the plan says of it.
#ifndef HALATION_RUNTIME_TENSORS_H
#define HALATION_RUNTIME_TENSORS_H

#include "layout.h"
#include "plan.h"
#include "text.h"

namespace halation::runtime {

// Extents by letter as far as they are known, and the argument that set them.
struct Extents {
    int64_t value[letter_count];
    const char *origin[letter_count];
};

Text<160> shape_text(const int64_t *shape, int rank);
// "[B, T, H, K] = [2, 5, 4, 64]", with a letter where nothing is known yet.
Text<160> wanted_text(const TensorSpec &spec, const Extents &extents);

// On the device, which is the host if it is NULL, with a shape.
halation_status check_place(const char *name, const DLTensor &tensor, const Device *device);

// Type, shape, strides, memory. What its shape says of letters unknown so far goes into `extents`. With `shapes_only`, data
// may be NULL and is not looked at.
halation_status check_tensor(const TensorSpec &spec, const DLTensor &tensor, Device *device, bool shapes_only, Extents *extents,
                             TensorView *view);

}  // namespace halation::runtime
#endif
