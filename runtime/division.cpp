#include "division.h"
#include "status.h"
#include "types.h"

#include <algorithm>

namespace halation::runtime {
namespace {

// Kernels index with 32 bits.
constexpr int64_t kernel_reach = INT32_MAX;

// More than any machine has.
constexpr size_t most_workspace = size_t(1) << 48;

// Waking a thread takes some 10 us until it works, about the time of this many elements of state updated once.
constexpr double work_worth_a_thread = 128 * 1024;

// State that a task comes back to, token by token or segment by segment, stays in a core's second-level cache.
constexpr int64_t resident_state = 256 * 1024;

// Elements of a tensor that belong to one head of one row.
int64_t elements_per_head(const TensorSpec &spec, const Problem &problem) {
    int64_t elements = 1;
    for (int axis = 0; axis < spec.rank; axis++) {
        if (spec.letter[axis] == letter_K) elements *= problem.key_dim;
        if (spec.letter[axis] == letter_V) elements *= problem.value_dim;
    }
    return elements;
}

// How far one head of one token reaches in a tensor, and how much each further token or head adds.
struct Reach {
    int64_t fixed, elements;  // over all axes but tokens and heads
    int64_t token_stride, head_stride;
};

Reach reach_of(const TensorSpec &spec, const TensorView &view, int64_t longest_cache) {
    Reach reach = {0, 1, 0, 0};
    for (int axis = 0; axis < spec.rank; axis++) {
        const int64_t extent = axis == spec.cache_axis ? longest_cache : view.extent[axis];
        if (axis == spec.row_axis) continue;
        if (axis == spec.token_axis) {
            reach.token_stride = view.stride[axis];
        } else if (axis == spec.head_axis) {
            reach.head_stride = view.stride[axis];
        } else {
            reach.fixed += extent * view.stride[axis];
            reach.elements *= extent;
        }
    }
    return reach;
}

// How many steps of `stride` elements, each over `elements` of them, fit into what is left of a kernel's reach.
int64_t steps_within(int64_t left, int64_t stride, int64_t elements) {
    int64_t steps = kernel_reach / std::max<int64_t>(elements, 1);
    if (stride > 0) steps = std::min(steps, left / stride);
    return steps;
}

// Fewest tokens in a call of a kernel, if not the whole sequence.
int64_t shortest_call(const BoundKernel &bound, int64_t longest) {
    return bound.cut > 0 ? std::min<int64_t>(bound.cut, longest) : longest;
}

// Whether kernels cannot take a tensor as it lies: they step along the innermost axis one element at a time (heads are
// another matter: they can be handed over one by one), upwards along the others, and no further than 32 bits reach.
bool needs_stage(const TensorSpec &spec, const TensorView &view, int64_t shortest, int64_t longest_cache) {
    if (!view.data) return false;
    if (!same_type(spec.type, spec.kernel_type)) return true;
    for (int axis = 0; axis < spec.rank; axis++)
        if (axis != spec.row_axis && view.stride[axis] < 0) return true;
    const int inner = spec.rank - 1;
    const bool one_for_all = spec.last_axis_optional && view.stride[inner] == 0;
    if (inner != spec.head_axis && view.extent[inner] > 1 && view.stride[inner] != 1 && !one_for_all) return true;
    const Reach reach = reach_of(spec, view, longest_cache);
    if (reach.fixed > kernel_reach || reach.elements > kernel_reach) return true;
    return spec.token_axis >= 0 && steps_within(kernel_reach - reach.fixed, reach.token_stride, reach.elements) < shortest;
}

template<typename Visit>
halation_status each_bound(const halation_plan &plan, const Arguments &arguments, const BoundKernel &bound, Visit visit) {
    for (int i = 0; i < bound.argument_count; i++) {
        if (bound.arguments[i].source != Source::tensor) continue;
        const int tensor = bound.arguments[i].tensor;
        if (arguments.tensors[tensor].data) HALATION_TRY(visit(plan.tensors[tensor], arguments.tensors[tensor], tensor));
    }
    return HALATION_OK;
}

// Cuts calls of one kernel so that it sees offsets it can index, or refuses what cannot be cut.
halation_status limit_calls(const halation_plan &plan, const Arguments &arguments, const BoundKernel &bound, int64_t longest,
                            const bool *staged, int64_t *segment, int64_t *call_heads) {
    const halation_kernel &kernel = *bound.kernel;
    *segment = kernel.segment > 0 ? kernel.segment : kernel_reach;
    HALATION_TRY(
        each_bound(plan, arguments, bound, [&](const TensorSpec &spec, const TensorView &view, int tensor) -> halation_status {
            Reach reach = reach_of(spec, view, arguments.longest_cache);
            if (staged[tensor]) reach.fixed = reach.token_stride = reach.elements;  // compact
            const bool within = reach.fixed <= kernel_reach && reach.elements <= kernel_reach;
            // What has no tokens, as a cache, is as large whatever is cut.
            if (within && spec.token_axis < 0) return HALATION_OK;
            int64_t tokens = within ? steps_within(kernel_reach - reach.fixed, reach.token_stride, reach.elements) : 0;
            if (tokens >= std::min(longest, *segment)) return HALATION_OK;
            if (bound.cut > 0) tokens = tokens / bound.cut * bound.cut;
            if (bound.cut == 0 || tokens == 0)
                return fail(HALATION_UNSUPPORTED, "%s: one call of kernel %s would see more than %lld elements of it", spec.name,
                            kernel.name, static_cast<long long>(kernel_reach));
            *segment = tokens;
            return HALATION_OK;
        }));

    // Recurrent kernels do so little a call that heads are worth gathering; chunkwise ones go through a segment head by head, and
    // the rows of the next head are where those of this one were: in a page that has just been found. Parallel kernels keep their
    // products for all heads of a call.
    *call_heads = kernel.form == HALATION_FORM_PARALLEL ? 1 : plan.problem.value_heads;
    const int64_t tokens = std::min(longest, *segment);
    return each_bound(plan, arguments, bound, [&](const TensorSpec &spec, const TensorView &view, int tensor) -> halation_status {
        if (*call_heads == 1 || spec.head_axis < 0) return HALATION_OK;
        const Reach reach = reach_of(spec, view, arguments.longest_cache);
        const int64_t with_tokens = spec.token_axis < 0 ? 1 : tokens;
        if (staged[tensor]) {
            const int64_t bytes = 4 * reach.elements * with_tokens;
            *call_heads = std::clamp<int64_t>(resident_state / std::max<int64_t>(bytes, 1), 1, *call_heads);
            return HALATION_OK;
        }
        const int64_t left = kernel_reach - reach.fixed - with_tokens * reach.token_stride;
        *call_heads = std::clamp<int64_t>(steps_within(left, reach.head_stride, reach.elements * with_tokens), 1, *call_heads);
        // A kernel steps along its innermost axis one element at a time.
        const bool shared_keys = spec.key_head && plan.problem.heads != plan.problem.value_heads;
        if (spec.head_axis == spec.rank - 1 && (shared_keys || reach.head_stride != 1)) *call_heads = 1;
        return HALATION_OK;
    });
}

int threads_worth_waking(const halation_plan &plan, const Arguments &arguments) {
    const Problem &problem = plan.problem;
    double per_token = static_cast<double>(problem.key_dim) * static_cast<double>(problem.value_dim);
    if (!problem.row->state_dims)
        per_token = static_cast<double>(std::max(arguments.cached, arguments.tokens)) *
                    static_cast<double>(problem.key_dim + problem.value_dim);
    const double work = per_token * static_cast<double>(problem.value_heads) * static_cast<double>(arguments.total_tokens);
    const double worth = work / work_worth_a_thread;
    const int most = plan.context->pool.threads();
    return worth >= most ? most : std::max(1, static_cast<int>(worth));
}

// Most heads that a task should take, before threads are shared out.
int64_t heads_in_a_task(const halation_plan &plan, const Arguments &arguments, const Workspace &workspace) {
    int64_t heads = plan.problem.value_heads;
    if (arguments.any_longer && plan.many->kernel->form == HALATION_FORM_PARALLEL) {
        heads = 1;
    } else if (arguments.any_longer && plan.initial[carried_state] >= 0) {
        const int64_t bytes = 4 * elements_per_head(plan.tensors[plan.initial[carried_state]], plan.problem);
        heads = std::clamp<int64_t>(resident_state / bytes, 1, heads);
    }
    return std::min(heads, workspace.heads);
}

}  // namespace

halation_status workspace_of(const halation_plan &plan, const Arguments &arguments, Workspace *found) {
    Workspace &workspace = *found;
    workspace = {};
    if (!plan.one->takes_state && !plan.many->takes_state) return HALATION_OK;
    if (arguments.sequences == 0 || arguments.tokens == 0) return HALATION_OK;
    const int64_t value_heads = plan.problem.value_heads;
    int64_t per_head[carried_count] = {0, 0};
    for (int c = 0; c < carried_count; c++) {
        if (plan.final[c] < 0 || arguments.tensors[plan.final[c]].given) continue;
        per_head[c] = 4 * elements_per_head(plan.tensors[plan.final[c]], plan.problem);
        workspace.heads = std::min(workspace.heads, std::clamp<int64_t>(resident_state / per_head[c], 1, value_heads));
    }
    for (int c = 0; c < carried_count; c++) {
        workspace.offset[c] = workspace.per_worker;
        if (per_head[c]) workspace.per_worker += static_cast<size_t>((per_head[c] * workspace.heads + 63) / 64 * 64);
    }
    // No more workers than tasks; value channels are counted too, since they may be shared out.
    int64_t workers = plan.context->pool.threads();
    if (arguments.sequences < workers) workers = std::min(workers, arguments.sequences * value_heads * plan.problem.value_dim);
    if (__builtin_mul_overflow(workspace.per_worker, static_cast<size_t>(workers), &workspace.bytes) ||
        workspace.bytes > most_workspace)
        return fail(HALATION_OUT_OF_MEMORY,
                    "workspace: states of K = %lld and V = %lld on %lld threads are more than memory can hold",
                    static_cast<long long>(plan.problem.key_dim), static_cast<long long>(plan.problem.value_dim),
                    static_cast<long long>(workers));
    return HALATION_OK;
}

halation_status divide(const halation_plan &plan, const Arguments &arguments, const Workspace &workspace, Division *division) {
    const Problem &problem = plan.problem;
    const BoundKernel *kernels[2] = {plan.one, plan.many};
    const int64_t longest[2] = {1, arguments.longest};
    const bool used[2] = {arguments.any_single, arguments.any_longer};
    int64_t shortest = 0;
    for (int i = 0; i < 2; i++)
        if (used[i]) shortest = std::max(shortest, shortest_call(*kernels[i], longest[i]));
    for (int i = 0; i < plan.tensor_count; i++)
        division->staged[i] = needs_stage(plan.tensors[i], arguments.tensors[i], shortest, arguments.longest_cache);
    for (int i = 0; i < 2; i++)
        if (used[i])
            HALATION_TRY(limit_calls(plan, arguments, *kernels[i], longest[i], division->staged, &division->segment[i],
                                     &division->call_heads[i]));

    division->threads = threads_worth_waking(plan, arguments);
    const int64_t threads = division->threads;
    // As many sequences of the longest length as there are tokens: one long one among short ones counts as one.
    const int64_t sequences = std::max<int64_t>(1, arguments.total_tokens / std::max<int64_t>(1, arguments.longest));

    const int64_t most_heads = heads_in_a_task(plan, arguments, workspace);
    int64_t ranges = (problem.value_heads + most_heads - 1) / most_heads;
    while (threads > 1 && ranges < problem.value_heads && sequences * ranges % threads != 0 && sequences * ranges < 4 * threads)
        ranges++;
    division->heads = (problem.value_heads + ranges - 1) / ranges;
    // Whole groups where there is a choice: a kernel call covers heads whose key heads are evenly spaced.
    const int64_t group = problem.head_mapping == HALATION_HEADS_TILED ? problem.heads : problem.value_heads / problem.heads;
    if (plan.has_key_heads && division->heads > group) division->heads -= division->heads % group;
    division->ranges = (problem.value_heads + division->heads - 1) / division->heads;

    division->pieces = division->tiles = 1;
    if (plan.splits_values && sequences * problem.value_heads < threads) {
        division->tiles = std::max<int64_t>(1, problem.value_dim / plan.value_tile);
        const int64_t wanted = (threads + sequences * problem.value_heads - 1) / (sequences * problem.value_heads);
        division->pieces = std::min(wanted, division->tiles);
    }
    return HALATION_OK;
}

}  // namespace halation::runtime
