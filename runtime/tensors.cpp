#include "tensors.h"
#include "status.h"
#include "types.h"

#include <cstdlib>

namespace halation::runtime {
namespace {

// As the documentation calls it: the letter but for value heads.
const char *axis_name(const TensorSpec &spec, int axis) {
    static const char *const names[] = {"B", "N", "T", "S", "H", "HV", "K", "V"};
    return names[spec.letter[axis]];
}

// "the CPU", "cuda:0"
Text<60> place_text(DLDevice device) {
    Text<60> text;
    const struct {
        DLDeviceType type;
        const char *name;
    } names[] = {{kDLCUDA, "cuda"}, {kDLOpenCL, "opencl"}, {kDLMetal, "metal"}, {kDLVulkan, "vulkan"}, {kDLROCM, "rocm"}};
    if (device.device_type == kDLCPU) return text.add("the CPU");
    for (const auto &known : names)
        if (device.device_type == known.type) return text.add("%s:%d", known.name, device.device_id);
    return text.add("DLPack device type %d", static_cast<int>(device.device_type));
}

halation_status wrong_shape(const TensorSpec &spec, const DLTensor &tensor, const Extents &extents, int axis) {
    Text<80> because;
    if (axis >= 0 && extents.origin[spec.letter[axis]])
        because.add("; %s is set by %s", axis_name(spec, axis), extents.origin[spec.letter[axis]]);
    return fail(HALATION_INVALID_ARGUMENT, "%s: shape is %s; must be %s%s", spec.name,
                shape_text(tensor.shape, tensor.ndim < 8 ? tensor.ndim : 8).c_str(), wanted_text(spec, extents).c_str(),
                because.c_str());
}

// One value for all channels of the last axis.
bool lacks_last_axis(const TensorSpec &spec, const DLTensor &tensor) {
    return spec.last_axis_optional && tensor.ndim == spec.rank - 1;
}

halation_status check_shape(const TensorSpec &spec, const DLTensor &tensor, Extents *extents) {
    if (tensor.ndim != spec.rank && !lacks_last_axis(spec, tensor)) return wrong_shape(spec, tensor, *extents, -1);
    for (int axis = 0; axis < tensor.ndim; axis++) {
        const Letter letter = spec.letter[axis];
        int64_t &known = extents->value[letter];
        if (tensor.shape[axis] < 0)
            return fail(HALATION_INVALID_ARGUMENT, "%s: shape is %s; no extent may be negative", spec.name,
                        shape_text(tensor.shape, tensor.ndim).c_str());
        if (known >= 0 && tensor.shape[axis] != known) return wrong_shape(spec, tensor, *extents, axis);
        if (known < 0) {
            known = tensor.shape[axis];
            extents->origin[letter] = spec.name;
        }
    }
    return HALATION_OK;
}

halation_status check_strides(const TensorSpec &spec, const DLTensor &tensor, const Extents &extents, TensorView *view) {
    int64_t compact = 1;
    bool too_large = false, empty = false;
    const int inner = spec.rank - 1;
    const bool one_for_all = lacks_last_axis(spec, tensor);
    if (one_for_all) {
        view->extent[inner] = extents.value[spec.letter[inner]];
        view->stride[inner] = 0;
    }
    for (int axis = tensor.ndim - 1; axis >= 0; axis--) {
        const int64_t extent = tensor.shape[axis];
        view->extent[axis] = extent;
        view->stride[axis] = extent <= 1 ? 0 : tensor.strides ? tensor.strides[axis] : compact;
        empty |= extent == 0;
        too_large |= __builtin_mul_overflow(compact, extent, &compact);
    }
    if (empty) return HALATION_OK;
    int64_t span = 0;  // from the lowest element to the highest
    for (int axis = 0; axis < spec.rank; axis++) {
        const int64_t extent = view->extent[axis], stride = view->stride[axis];
        if (extent <= 1) continue;
        if (stride == 0 && spec.output)
            return fail(HALATION_INVALID_ARGUMENT, "%s: stride of %s is 0 over %lld elements; an output's elements must be apart",
                        spec.name, axis_name(spec, axis), static_cast<long long>(extent));
        int64_t reach;
        too_large |= stride == INT64_MIN || __builtin_mul_overflow(extent - 1, std::abs(stride), &reach) ||
                     __builtin_add_overflow(span, reach, &span);
    }
    if (too_large || span > INT64_MAX / 16)
        return fail(HALATION_INVALID_ARGUMENT, "%s: shape and strides reach past what memory can hold", spec.name);
    return HALATION_OK;
}

// An output must not meet itself.
halation_status check_apart(const TensorSpec &spec, const TensorView &view) {
    int64_t span = 0;
    const int axis = first_axis_that_meets(view, spec.rank, &span);
    if (axis < 0) return HALATION_OK;
    return fail(HALATION_INVALID_ARGUMENT, "%s: stride of %s is %lld, less than the %lld elements it must step over", spec.name,
                axis_name(spec, axis), static_cast<long long>(view.stride[axis]), static_cast<long long>(span));
}

halation_status check_data(const TensorSpec &spec, const DLTensor &tensor, Device *device, TensorView *view) {
    bool empty = false;
    for (int axis = 0; axis < spec.rank; axis++) empty |= view->extent[axis] == 0;
    if (empty) return HALATION_OK;
    if (!tensor.data) return fail(HALATION_INVALID_ARGUMENT, "%s: data is NULL", spec.name);
    if (device) {
        Location location;
        const Access access = {!spec.output || spec.carried >= 0, spec.output};
        HALATION_TRY(device->locate(spec.name, tensor.data, tensor.byte_offset, access, &location));
        view->data = location.address;
        view->memory = location.memory;
        view->memory_bytes = location.bytes;
    } else {
        view->data = static_cast<char *>(tensor.data) + tensor.byte_offset;
    }
    if (reinterpret_cast<uintptr_t>(view->data) % static_cast<uintptr_t>(spec.bytes) == 0) return HALATION_OK;
    if (view->memory)  // which has no address
        return fail(HALATION_INVALID_ARGUMENT, "%s: byte_offset is %llu; must be a multiple of its elements of %d bytes", spec.name,
                    static_cast<unsigned long long>(tensor.byte_offset), spec.bytes);
    return fail(HALATION_INVALID_ARGUMENT, "%s: data is at %p; must be aligned to its elements of %d bytes", spec.name,
                static_cast<void *>(view->data), spec.bytes);
}

}  // namespace

Text<160> shape_text(const int64_t *shape, int rank) {
    Text<160> text;
    text.add("[");
    for (int i = 0; i < rank; i++) text.add("%s%lld", i ? ", " : "", static_cast<long long>(shape[i]));
    text.add("]");
    return text;
}

Text<160> wanted_text(const TensorSpec &spec, const Extents &extents) {
    Text<160> text;
    text.add("[");
    for (int i = 0; i < spec.rank; i++) text.add("%s%s", i ? ", " : "", axis_name(spec, i));
    text.add("] = [");
    for (int i = 0; i < spec.rank; i++) {
        const int64_t extent = extents.value[spec.letter[i]];
        if (i) text.add(", ");
        if (extent < 0)
            text.add("%s", axis_name(spec, i));
        else
            text.add("%lld", static_cast<long long>(extent));
    }
    text.add("]");
    if (spec.last_axis_optional) text.add(", or the same without the last axis");
    return text;
}

halation_status check_place(const char *name, const DLTensor &tensor, const Device *device) {
    const DLDevice wanted = device ? device->info().device : DLDevice{kDLCPU, 0};
    const bool same_device = tensor.device.device_id == wanted.device_id || wanted.device_type == kDLCPU;
    if (tensor.device.device_type != wanted.device_type || !same_device)
        return fail(HALATION_INVALID_ARGUMENT, "%s: is on %s; must be on %s", name, place_text(tensor.device).c_str(),
                    place_text(wanted).c_str());
    if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
        return fail(HALATION_INVALID_ARGUMENT, "%s: has %d dimensions and %s shape", name, tensor.ndim,
                    tensor.shape ? "a" : "a NULL");
    return HALATION_OK;
}

halation_status check_tensor(const TensorSpec &spec, const DLTensor &tensor, Device *device, bool shapes_only, Extents *extents,
                             TensorView *view) {
    HALATION_TRY(check_place(spec.name, tensor, device));
    if (!same_type(tensor.dtype, spec.type))
        return fail(HALATION_INVALID_ARGUMENT, "%s: type is %s; must be %s, the %s", spec.name, type_name(tensor.dtype).c_str(),
                    type_name(spec.type).c_str(),
                    spec.role == HALATION_ROLE_DATA   ? "problem's type"
                    : spec.role == HALATION_ROLE_GATE ? "problem's gate_type"
                    : spec.carried == carried_state   ? "problem's state_type"
                                                      : "type of every normalizer");
    HALATION_TRY(check_shape(spec, tensor, extents));
    HALATION_TRY(check_strides(spec, tensor, *extents, view));
    if (spec.output) HALATION_TRY(check_apart(spec, *view));
    view->given = true;
    return shapes_only ? HALATION_OK : check_data(spec, tensor, device, view);
}

}  // namespace halation::runtime
