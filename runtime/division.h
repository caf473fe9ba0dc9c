// How one call is cut up: into tasks for threads, into calls of a kernel, and what scratch memory that takes.
#ifndef HALATION_RUNTIME_DIVISION_H
#define HALATION_RUNTIME_DIVISION_H

#include "arguments.h"

namespace halation::runtime {

// States that the caller does not want back live here while a task runs, one place for each worker.
struct Workspace {
    size_t bytes = 0;  // in all
    size_t per_worker = 0;
    size_t offset[carried_count] = {0, 0};  // of each state in a worker's place
    int64_t heads = INT64_MAX;              // most heads in one task that fit
};

// From shapes alone: asked for and used alike.
halation_status workspace_of(const halation_plan &plan, const Arguments &arguments, Workspace *workspace);

// Tasks are sequences x ranges of value heads x ranges of value channels. Which thread does which, and how many
// there are, never changes a result: heads are independent, and channels are shared out only at whole value tiles.
struct Division {
    int threads;
    int64_t heads;  // in a range, the last may have fewer
    int64_t ranges;
    int64_t pieces;             // of the value channels
    int64_t tiles;              // whole value tiles shared out among the pieces
    int64_t segment[2];         // most tokens in one call of plan.one, plan.many
    int64_t call_heads[2];      // most heads in one call of each
    bool staged[most_tensors];  // kernels cannot take these as they lie: they go through scratch memory, see stage.h

    int64_t tasks(int64_t sequences) const { return sequences * ranges * pieces; }
};

halation_status divide(const halation_plan &plan, const Arguments &arguments, const Workspace &workspace, Division *division);

}  // namespace halation::runtime
#endif
