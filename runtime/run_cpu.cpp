#include "run_cpu.h"
#include "snapshots.h"
#include "status.h"
#include "walk.h"

#include <algorithm>

namespace halation::runtime {
namespace {

// How many heads from `head` on have evenly spaced key heads: those of one group, or up to where tiles wrap.
int64_t even_heads(const halation_plan &plan, int64_t head) {
    const Problem &problem = plan.problem;
    if (!plan.has_key_heads || problem.heads == problem.value_heads) return problem.value_heads - head;
    const int64_t run = problem.head_mapping == HALATION_HEADS_TILED ? problem.heads : problem.value_heads / problem.heads;
    return run - head % run;
}

// A sequence without tokens: its state is handed on as it is.
void pass_state_on(const Task &task) {
    const Region region = task.region(task.head, task.heads);
    for (int c = 0; c < carried_count; c++) {
        const int initial = task.plan().initial[c];
        const bool from_zero = !task.given(initial) || task.sequence.from_zero;
        const auto pass = [&](int to, int64_t row) {
            if (!task.given(to)) return;
            const Slice slice = task.tensor(to, row, region);
            if (from_zero)
                set_zero(slice);
            else
                copy(task.tensor(initial, task.sequence.read_row, region), slice);
        };
        if (initial < 0) continue;
        for (Snapshots snapshots(task.plan(), task.run.arguments, task.sequence_index); snapshots.any(); snapshots.next())
            pass(task.plan().snapshot[c], snapshots.slot());
        pass(task.plan().final[c], task.sequence.write_row);
    }
}

// On any thread: nothing in here throws, or takes memory but from the context's allocator.
void do_task(void *data, int64_t number, int worker) noexcept {
    Run &run = *static_cast<Run *>(data);
    if (run.failed.load(std::memory_order_relaxed)) return;
    const halation_plan &plan = run.plan;
    const Division &division = run.division;
    const int64_t piece = number % division.pieces, range = number / division.pieces % division.ranges;
    const int64_t first_head = range * division.heads;
    const int64_t first_tile = piece * division.tiles / division.pieces;
    const int64_t next_tile = (piece + 1) * division.tiles / division.pieces;
    const int64_t value = first_tile * plan.value_tile;
    const int64_t next_value = piece + 1 == division.pieces ? plan.problem.value_dim : next_tile * plan.value_tile;
    const int64_t sequence = number / division.pieces / division.ranges;
    Task task{run,
              sequence,
              run.arguments.sequence(sequence),
              first_head,
              std::min(division.heads, plan.problem.value_heads - first_head),
              value,
              next_value - value,
              worker,
              plan.context->scratch_of(worker)};
    const bool nothing_cached = plan.has_cache && task.sequence.cached == 0;  // and nothing read is zero
    if (task.sequence.skipped || nothing_cached) {
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
    for (int64_t done = 0; done < task.heads;) {
        const int64_t head = task.head + done;
        const int64_t heads = std::min({task.heads - done, even_heads(plan, head), division.call_heads[which]});
        if (!walk(task, bound, task.region(head, heads), division.segment[which])) return;
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
