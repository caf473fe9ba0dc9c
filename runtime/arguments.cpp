#include "arguments.h"
#include "status.h"
#include "types.h"

#include <cstring>

namespace halation::runtime {
namespace {

// Extents by letter as far as they are known, and the argument that set them.
struct Extents {
    int64_t value[letter_count];
    const char *origin[letter_count];
};

Text<160> shape_text(const int64_t *shape, int rank) {
    Text<160> text;
    text.add("[");
    for (int i = 0; i < rank; i++) text.add("%s%lld", i ? ", " : "", static_cast<long long>(shape[i]));
    text.add("]");
    return text;
}

// "[B, T, H, K] = [2, 5, 4, 64]", with a letter where nothing is known yet.
Text<160> wanted_text(const TensorSpec &spec, const Extents &extents) {
    Text<160> text;
    text.add("[");
    for (int i = 0; i < spec.rank; i++) text.add("%s%c", i ? ", " : "", spec.dims[i]);
    text.add("] = [");
    for (int i = 0; i < spec.rank; i++) {
        const int64_t extent = extents.value[spec.letter[i]];
        if (i) text.add(", ");
        if (extent < 0)
            text.add("%c", spec.dims[i]);
        else
            text.add("%lld", static_cast<long long>(extent));
    }
    text.add("]");
    if (spec.last_axis_optional) text.add(", or the same without the last axis");
    return text;
}

halation_status wrong_shape(const TensorSpec &spec, const DLTensor &tensor, const Extents &extents, int axis) {
    Text<80> because;
    if (axis >= 0 && extents.origin[spec.letter[axis]])
        because.add("; %c is set by %s", spec.dims[axis], extents.origin[spec.letter[axis]]);
    return fail(HALATION_INVALID_ARGUMENT, "%s: shape is %s; must be %s%s", spec.name,
                shape_text(tensor.shape, tensor.ndim < 8 ? tensor.ndim : 8).c_str(), wanted_text(spec, extents).c_str(),
                because.c_str());
}

halation_status check_place(const char *name, const DLTensor &tensor) {
    if (tensor.device.device_type != kDLCPU)
        return fail(HALATION_INVALID_ARGUMENT, "%s: is on DLPack device type %d; must be on the CPU (%d)", name,
                    static_cast<int>(tensor.device.device_type), static_cast<int>(kDLCPU));
    if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
        return fail(HALATION_INVALID_ARGUMENT, "%s: has %d dimensions and %s shape", name, tensor.ndim,
                    tensor.shape ? "a" : "a NULL");
    return HALATION_OK;
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
        if (tensor.shape[axis] < 0 || (known >= 0 && tensor.shape[axis] != known))
            return wrong_shape(spec, tensor, *extents, axis);
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
    int64_t last = 0;
    for (int axis = 0; axis < spec.rank; axis++) {
        const int64_t extent = view->extent[axis], stride = view->stride[axis];
        if (extent <= 1) continue;
        if (stride < 0)
            return fail(HALATION_INVALID_ARGUMENT, "%s: stride of %c is %lld; may not be negative", spec.name, spec.dims[axis],
                        static_cast<long long>(stride));
        if (stride == 0 && spec.output)
            return fail(HALATION_INVALID_ARGUMENT, "%s: stride of %c is 0 over %lld elements; an output's elements must be apart",
                        spec.name, spec.dims[axis], static_cast<long long>(extent));
        int64_t reach;
        too_large |= __builtin_mul_overflow(extent - 1, stride, &reach) || __builtin_add_overflow(last, reach, &last);
    }
    if (too_large || last > INT64_MAX / 16)
        return fail(HALATION_INVALID_ARGUMENT, "%s: shape and strides reach past what memory can hold", spec.name);
    // Kernels step along the innermost axis one element at a time. Heads are another matter: they can be handed
    // over one by one.
    if (inner != spec.head_axis && !one_for_all && view->extent[inner] > 1 && view->stride[inner] != 1)
        return fail(HALATION_INVALID_ARGUMENT, "%s: stride of its innermost axis %c is %lld; must be 1", spec.name,
                    spec.dims[inner], static_cast<long long>(view->stride[inner]));
    return HALATION_OK;
}

// An output must not meet itself: taken by rising stride, each axis must step over all that those before it span.
halation_status check_apart(const TensorSpec &spec, const TensorView &view) {
    int order[most_axes], count = 0;
    for (int axis = spec.rank - 1; axis >= 0; axis--) {
        if (view.extent[axis] == 0) return HALATION_OK;
        if (view.extent[axis] == 1) continue;
        int at = count++;
        for (; at > 0 && view.stride[order[at - 1]] > view.stride[axis]; at--) order[at] = order[at - 1];
        order[at] = axis;
    }
    int64_t span = 1;
    for (int i = 0; i < count; i++) {
        const int axis = order[i];
        if (view.stride[axis] < span)
            return fail(HALATION_INVALID_ARGUMENT, "%s: stride of %c is %lld, less than the %lld elements it must step over",
                        spec.name, spec.dims[axis], static_cast<long long>(view.stride[axis]), static_cast<long long>(span));
        span += (view.extent[axis] - 1) * view.stride[axis];
    }
    return HALATION_OK;
}

halation_status check_data(const TensorSpec &spec, const DLTensor &tensor, TensorView *view) {
    bool empty = false;
    for (int axis = 0; axis < spec.rank; axis++) empty |= view->extent[axis] == 0;
    if (empty) return HALATION_OK;
    if (!tensor.data) return fail(HALATION_INVALID_ARGUMENT, "%s: data is NULL", spec.name);
    view->data = static_cast<char *>(tensor.data) + tensor.byte_offset;
    if (reinterpret_cast<uintptr_t>(view->data) % static_cast<uintptr_t>(spec.bytes) != 0)
        return fail(HALATION_INVALID_ARGUMENT, "%s: data is at %p; must be aligned to its elements of %d bytes", spec.name,
                    static_cast<void *>(view->data), spec.bytes);
    return HALATION_OK;
}

halation_status check_tensor(const TensorSpec &spec, const DLTensor &tensor, bool shapes_only, Extents *extents,
                             TensorView *view) {
    HALATION_TRY(check_place(spec.name, tensor));
    if (!same_type(tensor.dtype, spec.type))
        return fail(HALATION_INVALID_ARGUMENT, "%s: type is %s; must be %s, the %s", spec.name, type_name(tensor.dtype).c_str(),
                    type_name(spec.type).c_str(),
                    spec.role == HALATION_ROLE_DATA   ? "problem's type"
                    : spec.role == HALATION_ROLE_GATE ? "problem's gate_type"
                                                      : "type of every state");
    HALATION_TRY(check_shape(spec, tensor, extents));
    HALATION_TRY(check_strides(spec, tensor, *extents, view));
    if (spec.output) HALATION_TRY(check_apart(spec, *view));
    view->given = true;
    return shapes_only ? HALATION_OK : check_data(spec, tensor, view);
}

// Matches the caller's names to the plan's tensors.
halation_status match_names(const halation_plan &plan, const halation_arguments &given, const DLTensor **matched) {
    if (given.tensor_count < 0 || (given.tensor_count > 0 && !given.tensors))
        return fail(HALATION_INVALID_ARGUMENT, "tensors: count is %d and the list is %s", given.tensor_count,
                    given.tensors ? "given" : "NULL");
    for (int i = 0; i < plan.tensor_count; i++) matched[i] = nullptr;
    for (int i = 0; i < given.tensor_count; i++) {
        const halation_named_tensor &named = given.tensors[i];
        if (!named.name) return fail(HALATION_INVALID_ARGUMENT, "tensors[%d]: name is NULL", i);
        int found = 0;
        while (found < plan.tensor_count && strcmp(plan.tensors[found].name, named.name)) found++;
        if (found == plan.tensor_count) {
            Text<400> known;
            for (int t = 0; t < plan.tensor_count; t++) known.item(plan.tensors[t].name);
            return fail(HALATION_INVALID_ARGUMENT, "tensors[%d]: recurrence %s has no '%s'; may be %s", i, plan.problem.row->name,
                        named.name, known.c_str());
        }
        if (!named.tensor) return fail(HALATION_INVALID_ARGUMENT, "%s: tensor is NULL", named.name);
        if (matched[found]) return fail(HALATION_INVALID_ARGUMENT, "%s: given twice", named.name);
        matched[found] = named.tensor;
    }
    return HALATION_OK;
}

// The stand-in for an optional input: one line of memory, stride 0 everywhere else.
void use_default(const halation_plan &plan, int tensor, const Extents &extents, TensorView *view) {
    const TensorSpec &spec = plan.tensors[tensor];
    for (int axis = 0; axis < spec.rank; axis++) {
        view->extent[axis] = extents.value[spec.letter[axis]];
        view->stride[axis] = axis == spec.rank - 1 && view->extent[axis] > 1 ? 1 : 0;
    }
    view->data = static_cast<char *>(plan.defaults[tensor].memory);
}

enum class Kind { index, flag };

halation_status check_integers(const char *name, const DLTensor *tensor, int64_t count, Kind kind, bool shapes_only,
                               IntegerView *view) {
    *view = IntegerView();
    if (!tensor) return HALATION_OK;
    HALATION_TRY(check_place(name, *tensor));
    const DLDataType type = tensor->dtype;
    const bool is_index = type.code == kDLInt && (type.bits == 32 || type.bits == 64);
    const bool is_flag = (type.code == kDLUInt || type.code == 6 /* kDLBool */) && type.bits == 8;
    if (type.lanes != 1 || !(kind == Kind::index ? is_index : is_flag))
        return fail(HALATION_INVALID_ARGUMENT, "%s: type is %s; may be %s", name, type_name(type).c_str(),
                    kind == Kind::index ? "int32 or int64" : "bool or uint8");
    if (tensor->ndim != 1 || tensor->shape[0] < (count < 0 ? 1 : count) || (count >= 0 && tensor->shape[0] != count))
        return fail(HALATION_INVALID_ARGUMENT, "%s: shape is %s; must be [%s]", name,
                    shape_text(tensor->shape, tensor->ndim < 8 ? tensor->ndim : 8).c_str(),
                    count < 0 ? "N + 1" : Text<24>().add("%lld", static_cast<long long>(count)).c_str());
    static const char nothing = 0;  // stands for the data of an empty vector and of one whose shape alone counts
    view->count = tensor->shape[0];
    view->bytes = type.bits / 8;
    view->stride = tensor->strides ? tensor->strides[0] : 1;
    view->data = &nothing;
    if (shapes_only || view->count == 0) return HALATION_OK;
    if (!tensor->data) return fail(HALATION_INVALID_ARGUMENT, "%s: data is NULL", name);
    view->data = static_cast<const char *>(tensor->data) + tensor->byte_offset;
    if (reinterpret_cast<uintptr_t>(view->data) % static_cast<uintptr_t>(view->bytes) != 0)
        return fail(HALATION_INVALID_ARGUMENT, "%s: data is not aligned to its elements", name);
    return HALATION_OK;
}

halation_status check_batch(const halation_plan &plan, const halation_arguments &given, bool shapes_only, const Extents &extents,
                            Arguments *arguments) {
    arguments->tokens = extents.value[letter_T];
    arguments->cached = extents.value[letter_S] < 0 ? 0 : extents.value[letter_S];
    const int64_t batch = extents.value[letter_B];
    if (plan.has_cache && given.offsets)
        return fail(HALATION_UNSUPPORTED, "offsets: recurrence %s cannot take packed batches yet", plan.problem.row->name);
    if (plan.has_cache && plan.problem.causal && arguments->cached < arguments->tokens)
        return fail(HALATION_INVALID_ARGUMENT,
                    "%s: has T = %lld queries, but only S = %lld tokens are cached; a causal query is one of them",
                    plan.tensors[0].name, static_cast<long long>(arguments->tokens), static_cast<long long>(arguments->cached));
    HALATION_TRY(check_integers("offsets", given.offsets, -1, Kind::index, shapes_only, &arguments->offsets));
    if (given.offsets && batch != 1)
        return fail(HALATION_INVALID_ARGUMENT, "offsets: given with B = %lld; a packed batch must have B = 1",
                    static_cast<long long>(batch));
    const int64_t sequences = arguments->sequences = given.offsets ? arguments->offsets.count - 1 : batch;
    if (plan.initial[carried_state] < 0) {
        const char *name = given.read_slots ? "read_slots" : given.write_slots ? "write_slots" : "has_initial_state";
        if (given.read_slots || given.write_slots || given.has_initial_state)
            return fail(HALATION_INVALID_ARGUMENT, "%s: given, but recurrence %s has no state", name, plan.problem.row->name);
    }
    HALATION_TRY(check_integers("read_slots", given.read_slots, sequences, Kind::index, shapes_only, &arguments->read_slots));
    HALATION_TRY(check_integers("write_slots", given.write_slots, sequences, Kind::index, shapes_only, &arguments->write_slots));
    return check_integers("has_initial_state", given.has_initial_state, sequences, Kind::flag, shapes_only,
                          &arguments->has_initial_state);
}

// Initial or final state and normalizer: as many rows as sequences, or, with slots, as many as they like, alike.
halation_status check_states(const halation_plan &plan, const int *which, const DLTensor *const *matched, bool slots,
                             bool shapes_only, Extents *extents, Arguments *arguments, bool *any) {
    extents->value[letter_N] = slots ? -1 : arguments->sequences;
    extents->origin[letter_N] = slots ? nullptr : arguments->offsets.given() ? "offsets" : "B, the batch";
    *any = false;
    for (int c = 0; c < carried_count; c++) {
        if (which[c] < 0 || !matched[which[c]]) continue;
        *any = true;
        HALATION_TRY(
            check_tensor(plan.tensors[which[c]], *matched[which[c]], shapes_only, extents, &arguments->tensors[which[c]]));
    }
    return HALATION_OK;
}

// Outputs may not begin where an input or another output does; a final state may be its own initial state.
halation_status check_overlap(const halation_plan &plan, const Arguments &arguments) {
    for (int out = plan.output; out < plan.tensor_count; out++) {
        const TensorSpec &spec = plan.tensors[out];
        const TensorView &view = arguments.tensors[out];
        if (!spec.output || !view.given || !view.data) continue;
        for (int other = 0; other < plan.tensor_count; other++) {
            const TensorView &seen = arguments.tensors[other];
            if (other == out || !seen.given || seen.data != view.data) continue;
            bool own = false;
            for (int c = 0; c < carried_count; c++) own |= plan.final[c] == out && plan.initial[c] == other;
            if (!own) return fail(HALATION_INVALID_ARGUMENT, "%s: is the same memory as %s", spec.name, plan.tensors[other].name);
        }
    }
    return HALATION_OK;
}

}  // namespace

halation_status check_arguments(const halation_plan &plan, const halation_arguments *given, bool shapes_only,
                                Arguments *arguments) {
    HALATION_TRY(check_struct(given, "halation_arguments"));
    const DLTensor *matched[most_tensors];
    HALATION_TRY(match_names(plan, *given, matched));

    const Problem &problem = plan.problem;
    Extents extents;
    for (int i = 0; i < letter_count; i++) extents.value[i] = -1, extents.origin[i] = "the problem";
    extents.value[letter_H] = problem.heads;
    extents.value[letter_G] = problem.value_heads;
    extents.value[letter_K] = problem.key_dim;
    extents.value[letter_V] = problem.value_dim;

    for (int i = 0; i < plan.tensor_count; i++) {
        arguments->tensors[i].given = false;
        arguments->tensors[i].data = nullptr;
    }
    for (int i = 0; i <= plan.output; i++) {
        const TensorSpec &spec = plan.tensors[i];
        if (matched[i])
            HALATION_TRY(check_tensor(spec, *matched[i], shapes_only, &extents, &arguments->tensors[i]));
        else if (spec.otherwise == HALATION_DEFAULT_REQUIRED)
            return fail(HALATION_INVALID_ARGUMENT, "%s: is missing; must be given, of shape %s", spec.name,
                        wanted_text(spec, extents).c_str());
    }
    for (int i = 0; i < plan.output; i++)
        if (!matched[i]) use_default(plan, i, extents, &arguments->tensors[i]);

    HALATION_TRY(check_batch(plan, *given, shapes_only, extents, arguments));
    HALATION_TRY(
        check_states(plan, plan.initial, matched, given->read_slots, shapes_only, &extents, arguments, &arguments->reads_state));
    HALATION_TRY(
        check_states(plan, plan.final, matched, given->write_slots, shapes_only, &extents, arguments, &arguments->writes_state));
    if (given->read_slots && !arguments->reads_state)
        return fail(HALATION_INVALID_ARGUMENT, "read_slots: given without initial_state, whose rows they name");
    if (given->write_slots && !arguments->writes_state)
        return fail(HALATION_INVALID_ARGUMENT, "write_slots: given without final_state, whose rows they name");
    for (const BoundKernel *kernel : {plan.one, plan.many})
        if (!kernel->takes_state && (arguments->reads_state || arguments->writes_state))
            return fail(HALATION_UNSUPPORTED, "%s: given, but kernel %s carries no state",
                        plan.tensors[(arguments->reads_state ? plan.initial : plan.final)[carried_state]].name,
                        kernel->kernel->name);
    return shapes_only ? HALATION_OK : check_overlap(plan, *arguments);
}

}  // namespace halation::runtime
