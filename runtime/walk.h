// A range of a task's heads, from call to call of one kernel along its sequence, the state in place.
#ifndef HALATION_RUNTIME_WALK_H
#define HALATION_RUNTIME_WALK_H

#include "task.h"

namespace halation::runtime {

// Calls of at most `segment` tokens over the heads of `region`. False: something failed, and is recorded.
bool walk(Task &task, const BoundKernel &bound, const Region &region, int64_t segment);

}  // namespace halation::runtime
#endif
