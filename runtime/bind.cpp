// What a plan's tensors are, and which of them each argument of a kernel is: by the names in its metadata.
#include "plan.h"
#include "status.h"
#include "types.h"

#include <HalideRuntime.h>

#include <cstring>
#include <tuple>
#include <utility>

namespace halation::runtime {
namespace {

int add_tensor(halation_plan *plan, const char *name, const char *dims, halation_tensor_role role, halation_default otherwise,
               bool output, bool last_axis_optional = false) {
    TensorSpec &spec = plan->tensors[plan->tensor_count];
    spec.name = name;
    spec.dims = dims;
    spec.rank = static_cast<int>(strlen(dims));
    spec.row_axis = spec.token_axis = spec.cache_axis = spec.head_axis = spec.value_axis = -1;
    spec.key_head = false;
    spec.last_axis_optional = last_axis_optional;
    for (int axis = 0; axis < spec.rank; axis++) {
        const Letter letter = spec.letter[axis] = letter_of(dims[axis]);
        if (letter == letter_B || letter == letter_N) spec.row_axis = axis;
        if (letter == letter_T) spec.token_axis = axis;
        if (letter == letter_S) spec.cache_axis = axis;
        if (letter == letter_H || letter == letter_G) spec.head_axis = axis;
        if (letter == letter_V) spec.value_axis = axis;
        if (letter == letter_H) spec.key_head = true;
    }
    spec.role = role;
    spec.otherwise = otherwise;
    spec.output = output;
    spec.carried = -1;
    const Problem &problem = plan->problem;
    spec.type = role == HALATION_ROLE_DATA ? problem.type : role == HALATION_ROLE_GATE ? problem.gate_type : float32;
    // Kernels of GPUs see 16-bit floats as integers.
    spec.kernel_type = plan->device && spec.type.bits == 16 ? DLDataType{kDLUInt, 16, 1} : spec.type;
    spec.bytes = spec.type.bits / 8;
    return plan->tensor_count++;
}

DLDataType type_of(const halide_filter_argument_t &argument) {
    // The two libraries number the kinds of elements alike.
    return {static_cast<uint8_t>(argument.type.code), argument.type.bits, argument.type.lanes};
}

halation_status fault(const halation_kernel &kernel, const char *argument, const char *what) {
    return fail(HALATION_INTERNAL_ERROR, "kernel %s: argument %s %s", kernel.name, argument, what);
}

halation_status bind_tensor(const halation_plan &plan, const halation_kernel &kernel, const halide_filter_argument_t &argument,
                            Binding *binding) {
    for (int i = 0; i < plan.tensor_count; i++) {
        const TensorSpec &spec = plan.tensors[i];
        if (strcmp(spec.name, argument.name)) continue;
        const int kind = spec.output ? halide_argument_kind_output_buffer : halide_argument_kind_input_buffer;
        if (argument.kind != kind)
            return fault(kernel, argument.name, spec.output ? "must be an output buffer" : "must be an input buffer");
        if (argument.dimensions != spec.kernel_rank(plan.device))
            return fail(HALATION_INTERNAL_ERROR, "kernel %s: argument %s has %d dimensions; dims '%s' make it %d", kernel.name,
                        spec.name, argument.dimensions, spec.dims, spec.kernel_rank(plan.device));
        if (!same_type(type_of(argument), spec.kernel_type))
            return fail(HALATION_INTERNAL_ERROR, "kernel %s: argument %s is of type %s; must be %s", kernel.name, spec.name,
                        type_name(type_of(argument)).c_str(), type_name(spec.kernel_type).c_str());
        *binding = {Source::tensor, static_cast<int8_t>(i)};
        return HALATION_OK;
    }
    return fault(kernel, argument.name, "is no tensor of the recurrence, nor scale or causal");
}

bool is_int32(const halide_filter_argument_t &argument) {
    return argument.type.code == halide_type_int && argument.type.bits == 32;
}

// The initial and the final state once more, as the bits of bfloat16.
halation_status bind_state_bits(const halation_plan &plan, const halation_kernel &kernel,
                                const halide_filter_argument_t &argument, Binding *binding, bool *bound) {
    *bound = false;
    for (const auto &[name, tensor, source] :
         {std::tuple("initial_state_bits", plan.initial[carried_state], Source::initial_bits),
          {"final_state_bits", plan.final[carried_state], Source::final_bits}}) {
        if (tensor < 0 || strcmp(argument.name, name)) continue;
        const TensorSpec &spec = plan.tensors[tensor];
        const int kind = spec.output ? halide_argument_kind_output_buffer : halide_argument_kind_input_buffer;
        if (argument.kind != kind || argument.dimensions != spec.rank || !same_type(type_of(argument), {kDLUInt, 16, 1}))
            return fault(kernel, name, "must be a buffer like that of the state, of uint16");
        *binding = {source, -1};
        *bound = true;
    }
    return HALATION_OK;
}

// What kernels that see the whole batch are told of it.
halation_status bind_of_batch(const halation_kernel &kernel, const halide_filter_argument_t &argument, Binding *binding,
                              bool *bound) {
    *bound = true;
    if (!strcmp(argument.name, "sequences")) {
        if (argument.kind != halide_argument_kind_input_buffer || argument.dimensions != 2 || !is_int32(argument))
            return fault(kernel, "sequences", "must be an input buffer of int32 with 2 dimensions");
        *binding = {Source::sequences, -1};
        return HALATION_OK;
    }
    for (const auto &[name, source] : {std::pair("most_tokens", Source::most_tokens),
                                       {"most_cached", Source::most_cached},
                                       {"reads_bits", Source::reads_bits},
                                       {"writes_bits", Source::writes_bits},
                                       {"key_head_step", Source::key_head_step},
                                       {"key_heads", Source::key_heads}}) {
        if (strcmp(argument.name, name)) continue;
        if (argument.kind != halide_argument_kind_input_scalar || !is_int32(argument))
            return fault(kernel, name, "must be an int32 scalar");
        *binding = {source, -1};
        return HALATION_OK;
    }
    *bound = false;
    return HALATION_OK;
}

halation_status bind_argument(const halation_plan &plan, const halation_kernel &kernel, const halide_filter_argument_t &argument,
                              Binding *binding) {
    if (!argument.name) return fault(kernel, "(unnamed)", "has no name");
    const bool scalar = argument.kind == halide_argument_kind_input_scalar;
    if (!strcmp(argument.name, "__user_context")) {
        *binding = {Source::user_context, -1};
        return HALATION_OK;
    }
    if (plan.device) {
        bool bound;
        HALATION_TRY(bind_of_batch(kernel, argument, binding, &bound));
        if (!bound) HALATION_TRY(bind_state_bits(plan, kernel, argument, binding, &bound));
        if (bound) return HALATION_OK;
    }
    if (!strcmp(argument.name, "scale")) {
        if (!scalar || !same_type(type_of(argument), float32)) return fault(kernel, "scale", "must be a float32 scalar");
        *binding = {Source::scale, -1};
        return HALATION_OK;
    }
    if (!strcmp(argument.name, "causal")) {
        if (!scalar || !is_int32(argument)) return fault(kernel, "causal", "must be an int32 scalar");
        *binding = {Source::causal, -1};
        return HALATION_OK;
    }
    if (!strncmp(argument.name, "has_", 4)) {
        for (int i = 0; i < plan.output; i++) {
            if (strcmp(plan.tensors[i].name, argument.name + 4)) continue;
            if (!scalar || !is_int32(argument)) return fault(kernel, argument.name, "must be an int32 scalar");
            *binding = {Source::presence, static_cast<int8_t>(i)};
            return HALATION_OK;
        }
    }
    return bind_tensor(plan, kernel, argument, binding);
}

bool binds(const BoundKernel &bound, int tensor) {
    for (int i = 0; i < bound.argument_count; i++)
        if (bound.arguments[i].source == Source::tensor && bound.arguments[i].tensor == tensor) return true;
    return false;
}

// Whether the kernel carries the states of the row: all of them or none.
halation_status bind_state(const halation_plan &plan, BoundKernel *bound) {
    int there = 0, wanted = 0;
    const char *missing = nullptr;
    for (int c = 0; c < carried_count; c++)
        for (const int tensor : {plan.initial[c], plan.final[c]}) {
            if (tensor < 0) continue;
            wanted++;
            if (binds(*bound, tensor))
                there++;
            else
                missing = plan.tensors[tensor].name;
        }
    if (there != 0 && there != wanted) return fault(*bound->kernel, missing, "is missing, though the kernel has other states");
    bound->takes_state = there > 0;
    int of_bits = 0;
    for (int i = 0; i < bound->argument_count; i++) {
        const Source source = bound->arguments[i].source;
        of_bits += source == Source::initial_bits || source == Source::final_bits || source == Source::reads_bits ||
                   source == Source::writes_bits;
    }
    if (of_bits != 0 && of_bits != 4)
        return fail(HALATION_INTERNAL_ERROR,
                    "kernel %s: has some of initial_state_bits, final_state_bits, reads_bits, writes_bits; must have all or none",
                    bound->kernel->name);
    bound->takes_bits = of_bits > 0;
    return HALATION_OK;
}

// Where a sequence may be cut into calls: where a state leads from one to the next, at whole chunks; where there
// is a cache each query stands alone, at whole segments; elsewhere nowhere.
halation_status bind_cut(const halation_plan &plan, BoundKernel *bound) {
    const halation_kernel &kernel = *bound->kernel;
    if (plan.device && kernel.segment > 0)
        return fail(HALATION_INTERNAL_ERROR, "kernel %s: has segments of %d tokens; kernels of a GPU take whole sequences",
                    kernel.name, kernel.segment);
    if (bound->takes_state)
        bound->cut = kernel.form == HALATION_FORM_RECURRENT ? 1 : kernel.chunk > 0 ? kernel.chunk : kernel.segment;
    else if (plan.has_cache)
        bound->cut = kernel.segment;
    else if (kernel.segment > 0)
        return fail(HALATION_INTERNAL_ERROR, "kernel %s: has segments of %d tokens, but no state leads from one to the next",
                    kernel.name, kernel.segment);
    return HALATION_OK;
}

}  // namespace

void describe_tensors(halation_plan *plan) {
    const halation_row &row = *plan->problem.row;
    for (int i = 0; i < row.input_count; i++)
        add_tensor(plan, row.inputs[i].name, row.inputs[i].dims, row.inputs[i].role, row.inputs[i].otherwise, false,
                   row.inputs[i].last_axis_optional != 0);
    plan->output = add_tensor(plan, "o", row.output_dims, HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, true);
    const char *dims[carried_count] = {row.state_dims, row.normalizer_dims};
    const char *names[carried_count][3] = {{"initial_state", "final_state", "snapshot_state"},
                                           {"initial_normalizer", "final_normalizer", "snapshot_normalizer"}};
    for (int c = 0; c < carried_count; c++) {
        if (!dims[c]) continue;
        const auto add = [&](int which) {
            const int tensor = add_tensor(plan, names[c][which], dims[c], HALATION_ROLE_STATE, HALATION_DEFAULT_ZERO, which > 0);
            if (c == carried_state) plan->tensors[tensor].type = plan->problem.state_type;
            plan->tensors[tensor].carried = c;
            plan->tensors[tensor].bytes = plan->tensors[tensor].type.bits / 8;
            return tensor;
        };
        plan->initial[c] = add(0);
        plan->final[c] = add(1);
        plan->snapshot[c] = add(2);
    }
    plan->has_key_heads = row_has_letter(row, letter_H);
    plan->has_cache = row_has_letter(row, letter_S);
}

halation_status bind_kernel(const halation_plan &plan, const halation_kernel &kernel, BoundKernel *bound) {
    bound->kernel = &kernel;
    const halide_filter_metadata_t *metadata = kernel.metadata();
    if (!metadata || metadata->version != halide_filter_metadata_t::VERSION || metadata->num_arguments < 1 ||
        metadata->num_arguments > most_arguments)
        return fail(HALATION_INTERNAL_ERROR, "kernel %s: its metadata is missing, of another version or has too many arguments",
                    kernel.name);
    bound->argument_count = 0;
    for (int i = 0; i < metadata->num_arguments; i++) {
        const halide_filter_argument_t &argument = metadata->arguments[i];
        HALATION_TRY(bind_argument(plan, kernel, argument, &bound->arguments[i]));
        const Source source = bound->arguments[i].source;
        if ((source == Source::user_context) != (i == 0))
            return fail(HALATION_INTERNAL_ERROR, "kernel %s: its first argument and no other must be __user_context",
                        kernel.name);
        if (source == Source::causal) bound->takes_causal = true;
        bound->argument_count++;
    }
    if (!binds(*bound, plan.output)) return fault(kernel, "o", "is missing");
    HALATION_TRY(bind_state(plan, bound));
    HALATION_TRY(bind_cut(plan, bound));
    if (!plan.problem.causal && !bound->takes_causal)
        return fail(HALATION_UNSUPPORTED, "non_causal: got 1; kernel %s is compiled for causal attention only", kernel.name);
    return HALATION_OK;
}

}  // namespace halation::runtime
