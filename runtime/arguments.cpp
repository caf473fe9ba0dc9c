#include "arguments.h"
#include "status.h"
#include "tensors.h"
#include "types.h"

#include <cstring>

namespace halation::runtime {
namespace {

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
    const DefaultValue &value = plan.defaults[tensor];
    view->data = plan.device ? value.location.address : static_cast<char *>(value.memory);
    view->memory = value.location.memory;
    view->memory_bytes = value.location.bytes;
}

enum class Kind { index, flag };

// A vector of `count` integers; count < 0: of at least one, N + 1 of them.
halation_status check_integers(const char *name, const DLTensor *tensor, int64_t count, Kind kind, bool shapes_only,
                               IntegerView *view) {
    *view = IntegerView();
    if (!tensor) return HALATION_OK;
    HALATION_TRY(check_place(name, *tensor, nullptr));
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

// Packed or not, and how many sequences there are.
halation_status check_batch(const halation_plan &plan, const halation_arguments &given, bool shapes_only, const Extents &extents,
                            Arguments *arguments) {
    arguments->tokens = extents.value[letter_T];
    arguments->cached = extents.value[letter_S] < 0 ? 0 : extents.value[letter_S];
    const int64_t batch = extents.value[letter_B];
    HALATION_TRY(check_integers("offsets", given.offsets, -1, Kind::index, shapes_only, &arguments->offsets));
    if (given.offsets && batch != 1)
        return fail(HALATION_INVALID_ARGUMENT, "offsets: given with B = %lld; a packed batch must have B = 1",
                    static_cast<long long>(batch));
    arguments->sequences = given.offsets ? arguments->offsets.count - 1 : batch;
    if (given.cache_offsets && !plan.has_cache)
        return fail(HALATION_INVALID_ARGUMENT, "cache_offsets: given, but recurrence %s has no cache", plan.problem.row->name);
    if (plan.has_cache && !given.offsets != !given.cache_offsets)
        return fail(HALATION_INVALID_ARGUMENT, "%s: given without %s; a packed batch of recurrence %s needs both",
                    given.offsets ? "offsets" : "cache_offsets", given.offsets ? "cache_offsets" : "offsets",
                    plan.problem.row->name);
    HALATION_TRY(check_integers("cache_offsets", given.cache_offsets, arguments->sequences + 1, Kind::index, shapes_only,
                                &arguments->cache_offsets));
    if (plan.has_cache && plan.problem.causal && arguments->cached < arguments->tokens)
        return fail(HALATION_INVALID_ARGUMENT,
                    "%s: has T = %lld queries, but only S = %lld tokens are cached; a causal query is one of them",
                    plan.tensors[0].name, static_cast<long long>(arguments->tokens), static_cast<long long>(arguments->cached));
    return HALATION_OK;
}

// Slots, flags and snapshots: their shapes, and that there is a state that they can be about.
halation_status check_state_vectors(const halation_plan &plan, const halation_arguments &given, bool shapes_only,
                                    Arguments *arguments) {
    const int64_t sequences = arguments->sequences;
    const int64_t snapshots = given.snapshot_slots && given.snapshot_slots->ndim == 1 && given.snapshot_slots->shape
                                  ? given.snapshot_slots->shape[0]
                                  : 0;
    const struct {
        const char *name;
        const DLTensor *tensor;
        int64_t count;
        Kind kind;
        IntegerView *view;
    } vectors[] = {
        {"read_slots", given.read_slots, sequences, Kind::index, &arguments->read_slots},
        {"write_slots", given.write_slots, sequences, Kind::index, &arguments->write_slots},
        {"has_initial_state", given.has_initial_state, sequences, Kind::flag, &arguments->has_initial_state},
        {"snapshot_slots", given.snapshot_slots, snapshots, Kind::index, &arguments->snapshot_slots},
        {"snapshot_sequences", given.snapshot_sequences, snapshots, Kind::index, &arguments->snapshot_sequences},
        {"snapshot_tokens", given.snapshot_tokens, snapshots, Kind::index, &arguments->snapshot_tokens},
    };
    for (const auto &vector : vectors) {
        if (vector.tensor && plan.initial[carried_state] < 0)
            return fail(HALATION_INVALID_ARGUMENT, "%s: given, but recurrence %s has no state", vector.name,
                        plan.problem.row->name);
        HALATION_TRY(check_integers(vector.name, vector.tensor, vector.count, vector.kind, shapes_only, vector.view));
    }
    const bool any = given.snapshot_slots || given.snapshot_sequences || given.snapshot_tokens;
    const bool all = given.snapshot_slots && given.snapshot_sequences && given.snapshot_tokens;
    if (any != all)
        return fail(HALATION_INVALID_ARGUMENT,
                    "snapshots: snapshot_sequences, snapshot_tokens and snapshot_slots must be given together");
    return HALATION_OK;
}

// Initial, final or snapshot state and normalizer: as many rows as sequences, or, with slots, as many as they like, alike.
halation_status check_states(const halation_plan &plan, const int *which, const DLTensor *const *matched, bool slots,
                             bool shapes_only, Extents *extents, Arguments *arguments, bool *any) {
    extents->value[letter_N] = slots ? -1 : arguments->sequences;
    extents->origin[letter_N] = slots ? nullptr : arguments->offsets.given() ? "offsets" : "B, the batch";
    *any = false;
    for (int c = 0; c < carried_count; c++) {
        if (which[c] < 0 || !matched[which[c]]) continue;
        *any = true;
        HALATION_TRY(check_tensor(plan.tensors[which[c]], *matched[which[c]], plan.device, shapes_only, extents,
                                  &arguments->tensors[which[c]]));
    }
    return HALATION_OK;
}

// No output may share an element with an input or with another output. States are left to check_pools.
halation_status check_overlap(const halation_plan &plan, const Arguments &arguments) {
    for (int out = plan.output; out < plan.tensor_count; out++) {
        const TensorSpec &spec = plan.tensors[out];
        const TensorView &view = arguments.tensors[out];
        if (!spec.output || !view.given) continue;
        for (int other = 0; other < plan.tensor_count; other++) {
            const TensorSpec &its = plan.tensors[other];
            const TensorView &seen = arguments.tensors[other];
            const bool rows_of_one_state = spec.carried >= 0 && spec.carried == its.carried;
            if (other == out || !seen.given || rows_of_one_state) continue;
            if (!apart({view, spec.rank, spec.bytes}, {seen, its.rank, its.bytes}))
                return fail(HALATION_INVALID_ARGUMENT,
                            "%s: shares memory with %s; an output must be apart from every other tensor", spec.name, its.name);
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
        arguments->tensors[i].memory = nullptr;
    }
    for (int i = 0; i <= plan.output; i++) {
        const TensorSpec &spec = plan.tensors[i];
        if (matched[i])
            HALATION_TRY(check_tensor(spec, *matched[i], plan.device, shapes_only, &extents, &arguments->tensors[i]));
        else if (spec.otherwise == HALATION_DEFAULT_REQUIRED)
            return fail(HALATION_INVALID_ARGUMENT, "%s: is missing; must be given, of shape %s", spec.name,
                        wanted_text(spec, extents).c_str());
        else if (spec.otherwise == HALATION_DEFAULT_RETENTION && !same_type(spec.type, float32))
            return fail(HALATION_INVALID_ARGUMENT,
                        "%s: is left out, but its default, 1 - 2^(-5-h), is 1 in %s for most heads; give it, or let gate_type be "
                        "float32",
                        spec.name, type_name(spec.type).c_str());
    }
    for (int i = 0; i < plan.output; i++)
        if (!matched[i]) use_default(plan, i, extents, &arguments->tensors[i]);

    HALATION_TRY(check_batch(plan, *given, shapes_only, extents, arguments));
    HALATION_TRY(check_state_vectors(plan, *given, shapes_only, arguments));
    bool takes_snapshots = false;
    for (const int tensor : plan.snapshot) takes_snapshots |= tensor >= 0 && matched[tensor];
    if (takes_snapshots != (given->snapshot_slots != nullptr))
        return fail(HALATION_INVALID_ARGUMENT, takes_snapshots
                                                   ? "snapshot_state: given without snapshot_slots, which say what goes where"
                                                   : "snapshot_slots: given without snapshot_state, whose rows they name");
    HALATION_TRY(
        check_states(plan, plan.initial, matched, given->read_slots, shapes_only, &extents, arguments, &arguments->reads_state));
    HALATION_TRY(
        check_states(plan, plan.final, matched, given->write_slots, shapes_only, &extents, arguments, &arguments->writes_state));
    HALATION_TRY(check_states(plan, plan.snapshot, matched, given->snapshot_slots, shapes_only, &extents, arguments,
                              &arguments->takes_snapshots));
    if (given->read_slots && !arguments->reads_state)
        return fail(HALATION_INVALID_ARGUMENT, "read_slots: given without initial_state, whose rows they name");
    if (given->write_slots && !arguments->writes_state)
        return fail(HALATION_INVALID_ARGUMENT, "write_slots: given without final_state, whose rows they name");
    for (const BoundKernel *kernel : {plan.one, plan.many})
        if (!kernel->takes_state && (arguments->reads_state || arguments->writes_state || arguments->takes_snapshots))
            return fail(HALATION_UNSUPPORTED, "%s: given, but kernel %s carries no state",
                        arguments->reads_state    ? "initial_state"
                        : arguments->writes_state ? "final_state"
                                                  : "snapshot_state",
                        kernel->kernel->name);
    return shapes_only ? HALATION_OK : check_overlap(plan, *arguments);
}

}  // namespace halation::runtime
