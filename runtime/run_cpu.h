// Runs a checked call on the CPU.
#ifndef HALATION_RUNTIME_RUN_CPU_H
#define HALATION_RUNTIME_RUN_CPU_H

#include "division.h"

namespace halation::runtime {

// `workspace_memory` has workspace.bytes, aligned.
halation_status run_cpu(const halation_plan &plan, const Arguments &arguments, const Workspace &workspace,
                        const Division &division, char *workspace_memory);

}  // namespace halation::runtime
#endif
