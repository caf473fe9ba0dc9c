// One task of a run: a sequence, a range of its value heads and of its value channels.
#ifndef HALATION_RUNTIME_TASK_H
#define HALATION_RUNTIME_TASK_H

#include "division.h"
#include "slice.h"

#include <atomic>
#include <mutex>

namespace halation::runtime {

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

struct Task {
    Run &run;
    int64_t sequence_index;
    Sequence sequence;
    int64_t head, heads;  // of the range
    int64_t value, values;
    int worker;
    Scratch &scratch;

    const halation_plan &plan() const { return run.plan; }
    bool given(int tensor) const { return tensor >= 0 && run.arguments.tensors[tensor].given; }
    Region region(int64_t first_head, int64_t head_count) const;
    Slice tensor(int which, int64_t row, const Region &region) const {
        return slice_of(plan().tensors[which], run.arguments.tensors[which], row, region);
    }
};

// Records the failure of a task, unless another was first; `code` is what the kernel returned.
void record_failure(Task &task, const halation_kernel &kernel, int code);

}  // namespace halation::runtime
#endif
