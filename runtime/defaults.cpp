// Values of optional inputs that a caller leaves out. They depend on the problem alone, so a plan makes them once.
#include "plan.h"
#include "status.h"
#include "types.h"

#include <cmath>
#include <vector>

namespace halation::runtime {
namespace {

void store(void *memory, int64_t index, DLDataType type, double value) {
    if (same_type(type, float32))
        static_cast<float *>(memory)[index] = static_cast<float>(value);
    else  // 0 or 1: the default of retention is not to be had in 16 bits, see check_arguments
        static_cast<uint16_t *>(memory)[index] = value == 0 ? 0 : same_type(type, float16) ? 0x3C00 : 0x3F80;
}

double value_of(halation_default kind, int64_t index) {
    if (kind == HALATION_DEFAULT_RETENTION) return 1 - std::ldexp(1.0, static_cast<int>(-5 - index));
    return kind == HALATION_DEFAULT_ONE ? 1 : 0;
}

int64_t extent_of(const Problem &problem, Letter letter) {
    switch (letter) {
    case letter_H:
        return problem.heads;
    case letter_G:
        return problem.value_heads;
    case letter_K:
        return problem.key_dim;
    case letter_V:
        return problem.value_dim;
    default:
        return 1;  // tokens innermost: extent unknown here
    }
}

}  // namespace

// One innermost line of values serves: every other axis gets stride 0.
halation_status make_defaults(halation_plan *plan) {
    const Allocator &allocator = plan->context->allocator;
    for (int i = 0; i < plan->output; i++) {
        const TensorSpec &spec = plan->tensors[i];
        if (spec.otherwise == HALATION_DEFAULT_REQUIRED) continue;
        const int64_t extent = extent_of(plan->problem, spec.letter[spec.rank - 1]);
        DefaultValue &value = plan->defaults[i];
        const size_t bytes = static_cast<size_t>(extent) * static_cast<size_t>(spec.bytes);
        value.bytes = bytes;
        if (plan->device) {
            std::vector<uint32_t> values(bytes / 4 + 1);
            for (int64_t e = 0; e < extent; e++) store(values.data(), e, spec.type, value_of(spec.otherwise, e));
            HALATION_TRY(plan->device->allocate(bytes, &value.memory));
            HALATION_TRY(plan->device->copy_to(value.memory, 0, values.data(), bytes));
            HALATION_TRY(plan->device->locate(spec.name, value.memory, &value.location));
            continue;
        }
        value.memory = allocator.allocate(allocator.user, bytes, memory_alignment);
        if (!value.memory) return fail(HALATION_OUT_OF_MEMORY, "no memory for the default of %s: %zu bytes", spec.name, bytes);
        for (int64_t e = 0; e < extent; e++) store(value.memory, e, spec.type, value_of(spec.otherwise, e));
    }
    return HALATION_OK;
}

}  // namespace halation::runtime
