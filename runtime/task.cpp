#include "task.h"

#include <cstdio>

namespace halation::runtime {
namespace {

int64_t key_head_of(const Problem &problem, int64_t head) {
    return problem.head_mapping == HALATION_HEADS_TILED ? head % problem.heads : head / (problem.value_heads / problem.heads);
}

}  // namespace

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
    region.cache_begin = sequence.cache_begin;
    region.cached = sequence.cached;
    return region;
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

}  // namespace halation::runtime
