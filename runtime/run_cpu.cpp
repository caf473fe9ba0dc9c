// One task is one sequence, a range of its value heads and of its value channels. It walks its sequence from call
// to call of the kernel, state in place.
#include "run_cpu.h"
#include "slice.h"
#include "status.h"
#include "types.h"

#include <HalideRuntime.h>

#include <algorithm>
#include <atomic>
#include <mutex>

namespace halation::runtime {
namespace {

struct Run {
    Run(const halation_plan &plan_, const Arguments &arguments_, const Workspace &workspace_, const Division &division_,
        char *memory)
        : plan(plan_), arguments(arguments_), workspace(workspace_), division(division_), workspace_memory(memory) {}

    const halation_plan &plan;
    const Arguments &arguments;
    const Workspace &workspace;
    const Division &division;
    char *workspace_memory;

    std::atomic<bool> failed{false};
    std::mutex failure_mutex;
    halation_status status = HALATION_OK;
    char message[700] = {};
};

// ---- a kernel's arguments ------------------------------------------------------------------------------------

struct KernelBuffer {
    halide_buffer_t buffer;
    halide_dimension_t dim[most_axes];
    int64_t token_bytes;  // from one token to the next; 0 where there are none
    int token_dim;
};

// A kernel takes a buffer without memory for a question about bounds, so an empty tensor gets some.
alignas(memory_alignment) char no_elements[memory_alignment];

void fill(KernelBuffer *to, const Slice &slice, DLDataType type) {
    to->buffer.device = 0;
    to->buffer.device_interface = nullptr;
    to->buffer.host = reinterpret_cast<uint8_t *>(slice.data ? slice.data : no_elements);
    to->buffer.flags = 0;
    to->buffer.type = halide_type_t(static_cast<halide_type_code_t>(type.code), type.bits, 1);
    to->buffer.dimensions = slice.rank;
    to->buffer.dim = to->dim;
    to->buffer.padding = nullptr;
    to->token_bytes = 0;
    to->token_dim = -1;
    for (int axis = 0; axis < slice.rank; axis++) {
        const int d = slice.rank - 1 - axis;  // Halide counts from the innermost
        const int64_t extent = slice.extent[axis];
        // A stride that is never taken may not fit into 32 bits; innermost, kernels insist on 1.
        // but for the 0 of a value that serves all channels.
        const int64_t stride = d == 0 ? (extent > 1 && slice.stride[axis] == 0 ? 0 : 1) : extent == 1 ? 0 : slice.stride[axis];
        to->dim[d].min = 0;
        to->dim[d].extent = static_cast<int32_t>(extent);
        to->dim[d].stride = static_cast<int32_t>(stride);
        to->dim[d].flags = 0;
        if (axis == slice.token_axis) {
            to->token_dim = d;
            to->token_bytes = slice.stride[axis] * slice.bytes;
        }
    }
}

// A kernel reads its initial state from where it left the final one.
void alias(KernelBuffer *to, const KernelBuffer &from) {
    to->buffer.host = from.buffer.host;
    for (int d = 0; d < from.buffer.dimensions; d++) to->dim[d] = from.dim[d];
}

struct Call {
    KernelBuffer buffers[most_tensors];
    void *argv[most_arguments];
    void *user_context;
    float scale;
    int32_t causal, present, absent;
};

// ---- one task ------------------------------------------------------------------------------------------------

struct Task {
    Run &run;
    Sequence sequence;
    int64_t head, heads;  // of the range
    int64_t value, values;
    int worker;
    Scratch &scratch;

    const halation_plan &plan() const { return run.plan; }
    Region region(int64_t first_head, int64_t head_count) const;
    Slice tensor(int index, int64_t row, const Region &region) const {
        return slice_of(plan().tensors[index], run.arguments.tensors[index], row, region);
    }
};

int64_t key_head_of(const Problem &problem, int64_t head) {
    return problem.head_mapping == HALATION_HEADS_TILED ? head % problem.heads : head / (problem.value_heads / problem.heads);
}

Region Task::region(int64_t first_head, int64_t head_count) const {
    const Problem &problem = plan().problem;
    Region region;
    region.token = sequence.begin;
    region.tokens = sequence.length;
    region.head = first_head;
    region.heads = head_count;
    region.key_head = key_head_of(problem, first_head);
    region.key_step = head_count > 1 ? key_head_of(problem, first_head + 1) - region.key_head : 0;
    region.value = value;
    region.values = values;
    return region;
}

// How many heads from `head` on have evenly spaced key heads: those of one group, or up to where tiles wrap.
int64_t even_heads(const halation_plan &plan, int64_t head) {
    const Problem &problem = plan.problem;
    if (!plan.has_key_heads || problem.heads == problem.value_heads) return problem.value_heads - head;
    const int64_t run = problem.head_mapping == HALATION_HEADS_TILED ? problem.heads : problem.value_heads / problem.heads;
    return run - head % run;
}

bool given(const Run &run, int tensor) {
    return tensor >= 0 && run.arguments.tensors[tensor].given;
}

// Where a state goes: the caller's row, or this worker's place in the workspace.
Slice state_to(const Task &task, int c, const Region &region) {
    const int final = task.plan().final[c];
    if (given(task.run, final)) return task.tensor(final, task.sequence.write_row, region);
    const TensorSpec &spec = task.plan().tensors[final];
    TensorView shape = {};
    for (int axis = 0; axis < spec.rank; axis++)
        if (spec.letter[axis] == letter_K) shape.extent[axis] = task.plan().problem.key_dim;
    const size_t place = task.run.workspace.per_worker * static_cast<size_t>(task.worker) + task.run.workspace.offset[c];
    return compact_like(slice_of(spec, shape, 0, region), task.run.workspace_memory + place);
}

// The state of a sequence without tokens: handed on as it is.
void pass_state_on(const Task &task) {
    const Region region = task.region(task.head, task.heads);
    for (int c = 0; c < carried_count; c++) {
        if (!given(task.run, task.plan().final[c])) continue;
        const Slice to = state_to(task, c, region);
        const int initial = task.plan().initial[c];
        if (given(task.run, initial) && !task.sequence.from_zero)
            copy(task.tensor(initial, task.sequence.read_row, region), to);
        else
            set_zero(to);
    }
}

void record_failure(Task &task, const halation_kernel &kernel, int code) {
    Run &run = task.run;
    std::lock_guard<std::mutex> lock(run.failure_mutex);
    if (run.failed.load(std::memory_order_relaxed)) return;
    const char *message = task.scratch.message();
    if (task.scratch.out_of_memory()) {
        run.status = HALATION_OUT_OF_MEMORY;
        snprintf(run.message, sizeof run.message, "kernel %s: no memory for its scratch", kernel.name);
    } else {
        run.status = HALATION_INTERNAL_ERROR;
        snprintf(run.message, sizeof run.message, "kernel %s: %s (code %d)", kernel.name, *message ? message : "failed", code);
    }
    run.failed.store(true, std::memory_order_relaxed);
}

// Points every argument at this region of its tensor; initial states at where the first call is to read them.
void prepare(const Task &task, const BoundKernel &bound, const Region &region, Call *call) {
    const halation_plan &plan = task.plan();
    call->user_context = task.scratch.kernel_context();
    call->scale = plan.problem.scale;
    call->causal = plan.problem.causal;
    call->present = 1;
    call->absent = 0;
    for (int i = 0; i < bound.argument_count; i++) {
        const Binding binding = bound.arguments[i];
        switch (binding.source) {
        case Source::user_context:
            call->argv[i] = &call->user_context;
            break;
        case Source::scale:
            call->argv[i] = &call->scale;
            break;
        case Source::causal:
            call->argv[i] = &call->causal;
            break;
        case Source::presence:
            call->argv[i] = given(task.run, binding.tensor) ? &call->present : &call->absent;
            break;
        case Source::tensor: {
            const TensorSpec &spec = plan.tensors[binding.tensor];
            call->argv[i] = &call->buffers[binding.tensor].buffer;
            if (spec.letter[0] != letter_N)  // states below
                fill(&call->buffers[binding.tensor], task.tensor(binding.tensor, task.sequence.batch, region), spec.type);
        }
        }
    }
    if (!bound.takes_state) return;
    for (int c = 0; c < carried_count; c++) {
        const int initial = plan.initial[c], final = plan.final[c];
        if (initial < 0) continue;
        const Slice to = state_to(task, c, region);
        fill(&call->buffers[final], to, float32);
        if (given(task.run, initial) && !task.sequence.from_zero) {
            fill(&call->buffers[initial], task.tensor(initial, task.sequence.read_row, region), float32);
        } else {
            set_zero(to);
            fill(&call->buffers[initial], to, float32);
        }
    }
}

// Walks the sequence in calls of at most `segment` tokens.
bool walk(Task &task, const BoundKernel &bound, int64_t segment, Call *call) {
    const halation_plan &plan = task.plan();
    KernelBuffer *moving[most_tensors];  // those with tokens
    KernelBuffer *cached[most_tensors];
    int cached_dim[most_tensors];
    int moving_count = 0, cached_count = 0;
    for (int i = 0; i < bound.argument_count; i++) {
        if (bound.arguments[i].source != Source::tensor) continue;
        const TensorSpec &spec = plan.tensors[bound.arguments[i].tensor];
        KernelBuffer *buffer = &call->buffers[bound.arguments[i].tensor];
        if (buffer->token_dim >= 0) moving[moving_count++] = buffer;
        if (spec.cache_axis >= 0) {
            cached_dim[cached_count] = spec.rank - 1 - spec.cache_axis;
            cached[cached_count++] = buffer;
        }
    }
    const int64_t length = task.sequence.length;
    for (int64_t token = 0; token < length; token += segment) {
        const int64_t tokens = std::min(segment, length - token);
        for (int i = 0; i < moving_count; i++) moving[i]->dim[moving[i]->token_dim].extent = static_cast<int32_t>(tokens);
        // A causal query sees the cache up to its own token; the queries are the cache's last tokens.
        if (plan.problem.causal)
            for (int i = 0; i < cached_count; i++)
                cached[i]->dim[cached_dim[i]].extent =
                    static_cast<int32_t>(task.run.arguments.cached - (length - token - tokens));
        const int code = bound.kernel->run(call->argv);
        if (code != 0) {
            record_failure(task, *bound.kernel, code);
            return false;
        }
        for (int i = 0; i < moving_count; i++) moving[i]->buffer.host += moving[i]->token_bytes * tokens;
        if (token == 0 && bound.takes_state)
            for (int c = 0; c < carried_count; c++)
                if (plan.initial[c] >= 0) alias(&call->buffers[plan.initial[c]], call->buffers[plan.final[c]]);
    }
    return true;
}

void do_task(void *data, int64_t index, int worker) {
    Run &run = *static_cast<Run *>(data);
    if (run.failed.load(std::memory_order_relaxed)) return;
    const halation_plan &plan = run.plan;
    const Division &division = run.division;
    const int64_t piece = index % division.pieces, range = index / division.pieces % division.ranges;
    const int64_t first_head = range * division.heads;
    const int64_t first_tile = piece * division.tiles / division.pieces;
    const int64_t next_tile = (piece + 1) * division.tiles / division.pieces;
    const int64_t value = first_tile * plan.value_tile;
    const int64_t next_value = piece + 1 == division.pieces ? plan.problem.value_dim : next_tile * plan.value_tile;
    Task task{run,        run.arguments.sequence(index / division.pieces / division.ranges),
              first_head, std::min(division.heads, plan.problem.value_heads - first_head),
              value,      next_value - value,
              worker,     plan.context->scratch_of(worker)};
    if (task.sequence.skipped) {
        set_zero(task.tensor(plan.output, task.sequence.batch, task.region(task.head, task.heads)));
        return;
    }
    if (task.sequence.length == 0) {
        pass_state_on(task);
        return;
    }
    task.scratch.clear_error();
    const int which = task.sequence.length == 1 ? 0 : 1;
    const BoundKernel &bound = which == 0 ? *plan.one : *plan.many;
    Call call;
    for (int64_t done = 0; done < task.heads;) {
        const int64_t head = task.head + done;
        const int64_t heads = std::min({task.heads - done, even_heads(plan, head), division.call_heads[which]});
        prepare(task, bound, task.region(head, heads), &call);
        if (!walk(task, bound, division.segment[which], &call)) return;
        done += heads;
    }
}

}  // namespace

halation_status run_cpu(const halation_plan &plan, const Arguments &arguments, const Workspace &workspace,
                        const Division &division, char *workspace_memory) {
    Run run(plan, arguments, workspace, division, workspace_memory);
    plan.context->pool.run(division.tasks(arguments.sequences), division.threads, do_task, &run);
    return run.status == HALATION_OK ? HALATION_OK : fail(run.status, "%s", run.message);
}

}  // namespace halation::runtime
