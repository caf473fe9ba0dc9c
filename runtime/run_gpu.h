// Runs a checked call on the plan's device: all sequences at once, nothing waits.
#ifndef HALATION_RUNTIME_RUN_GPU_H
#define HALATION_RUNTIME_RUN_GPU_H

#include "arguments.h"

namespace halation::runtime {

// Whether the device can have the launches of the plan's kernels, as far as that can be told without loading them.
halation_status check_gpu(const halation_plan &plan);

// Once, when the plan is made: loads the device code of its kernels, so that no call has to.
halation_status prepare_gpu(const halation_plan &plan);

halation_status run_gpu(const halation_plan &plan, const Arguments &arguments);

}  // namespace halation::runtime
#endif
