// The calls that take arguments: check, then run.
#include "run_cpu.h"
#include "run_gpu.h"
#include "status.h"

using namespace halation::runtime;

namespace {

halation_status check_workspace(const halation_arguments &given, size_t bytes) {
    if (!given.workspace) return HALATION_OK;
    if (given.workspace_bytes < bytes)
        return fail(HALATION_INVALID_ARGUMENT, "workspace_bytes: got %zu; must be at least %zu", given.workspace_bytes, bytes);
    if (reinterpret_cast<uintptr_t>(given.workspace) % memory_alignment != 0)
        return fail(HALATION_INVALID_ARGUMENT, "workspace: is at %p; must be aligned to %zu bytes", given.workspace,
                    memory_alignment);
    return HALATION_OK;
}

// However many sequences there are: without tokens only states that are wanted back are written.
bool nothing_to_do(const halation_plan &plan, const Arguments &arguments) {
    if (arguments.tokens > 0 || arguments.offsets.given()) return false;
    return plan.initial[carried_state] < 0 || (!arguments.writes_state && !arguments.takes_snapshots);
}

}  // namespace

extern "C" halation_status halation_plan_workspace(const halation_plan *plan, const halation_arguments *arguments,
                                                   size_t *bytes) {
    return guarded([&]() -> halation_status {
        if (!plan) return fail(HALATION_INVALID_ARGUMENT, "plan: is NULL");
        if (!bytes) return fail(HALATION_INVALID_ARGUMENT, "bytes: is NULL");
        Arguments checked;
        HALATION_TRY(check_arguments(*plan, arguments, true, &checked));
        Workspace workspace;
        if (!plan->device) HALATION_TRY(workspace_of(*plan, checked, &workspace));
        *bytes = workspace.bytes;
        return HALATION_OK;
    });
}

extern "C" halation_status halation_run(halation_plan *plan, const halation_arguments *given) {
    return guarded([&]() -> halation_status {
        if (!plan) return fail(HALATION_INVALID_ARGUMENT, "plan: is NULL");
        Arguments arguments;
        HALATION_TRY(check_arguments(*plan, given, false, &arguments));
        if (nothing_to_do(*plan, arguments)) return HALATION_OK;
        if (plan->device) {
            std::lock_guard<std::mutex> lock(plan->context->mutex);
            HALATION_TRY(check_sequences(plan, &arguments));
            return run_gpu(*plan, arguments);
        }
        Workspace workspace;
        HALATION_TRY(workspace_of(*plan, arguments, &workspace));
        HALATION_TRY(check_workspace(*given, workspace.bytes));

        std::lock_guard<std::mutex> lock(plan->context->mutex);
        HALATION_TRY(check_sequences(plan, &arguments));
        Division division;
        HALATION_TRY(divide(*plan, arguments, workspace, &division));
        if (given->workspace || workspace.bytes == 0)
            return run_cpu(*plan, arguments, workspace, division, static_cast<char *>(given->workspace));

        // From the caller's thread's own scratch, so that the same memory serves call after call.
        Scratch &scratch = plan->context->scratch_of(0);
        void *memory = scratch.allocate(workspace.bytes);
        if (!memory) return fail(HALATION_OUT_OF_MEMORY, "workspace: no memory for %zu bytes", workspace.bytes);
        const halation_status status = run_cpu(*plan, arguments, workspace, division, static_cast<char *>(memory));
        scratch.release(memory);
        return status;
    });
}
