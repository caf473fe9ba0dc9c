// Runs a checked call on the plan's device: all sequences at once, nothing waits.
#ifndef HALATION_RUNTIME_RUN_GPU_H
#define HALATION_RUNTIME_RUN_GPU_H

#include "arguments.h"

namespace halation::runtime {

// Once, when the plan is made: loads the device code of its kernels, so that no call has to.
halation_status prepare_gpu(const halation_plan &plan);

halation_status run_gpu(const halation_plan &plan, const Arguments &arguments);

}  // namespace halation::runtime
#endif
