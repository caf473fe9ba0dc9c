#include "plan.h"
#include "choose.h"
#include "run_gpu.h"
#include "status.h"
#include "text.h"
#include "types.h"

#include <cstring>
#include <memory>
#include <numeric>

using namespace halation::runtime;

halation_plan::~halation_plan() {
    for (DefaultValue &value : defaults)
        if (value.memory && device)
            device->release(value.memory);
        else if (value.memory)
            context->allocator.release(context->allocator.user, value.memory, value.bytes);
    device_memory.reset();  // while there is a device
    release(context);
}

namespace halation::runtime {
namespace {

// Value channels can be shared out only if every kernel allows it and every state has value channels: two tasks
// must not both write one normalizer.
void allow_value_split(halation_plan *plan) {
    const halation_row &row = *plan->problem.row;
    const int tile_one = plan->one->kernel->value_tile, tile_many = plan->many->kernel->value_tile;
    plan->splits_values = tile_one > 0 && tile_many > 0 && has_letter(row.output_dims, letter_V) &&
                          (!row.state_dims || has_letter(row.state_dims, letter_V)) &&
                          (!row.normalizer_dims || has_letter(row.normalizer_dims, letter_V));
    plan->value_tile = plan->splits_values ? std::lcm<int64_t>(tile_one, tile_many) : 0;
}

// The context's device, or why there is none for the problem: first whether the machine has one, then whether it was opened.
halation_status find_device(halation_plan *plan) {
    const char *wanted = plan->problem.backend;
    Device *device = plan->context->device.get();
    if (device && !strcmp(device->info().backend, wanted)) {
        plan->device = device;
        return HALATION_OK;
    }
    const Backend *backend = find_backend(wanted);
    if (!backend)
        return fail(HALATION_UNSUPPORTED, "backend: got '%s'; this library has cpu, cuda, opencl and metal only", wanted);
    int32_t count;
    if (backend->count(&count) != HALATION_OK)
        return fail(HALATION_UNSUPPORTED, "backend: got '%s': %s", wanted, halation_last_message());
    if (device)
        return fail(HALATION_UNSUPPORTED, "backend: got '%s', but the context's device is %s:%d; another takes another context",
                    wanted, device->info().backend, device->info().device.device_id);
    return fail(HALATION_UNSUPPORTED,
                "backend: got '%s', but the context has no device; open one with halation_context_open_device", wanted);
}

halation_status check_state_type(const halation_plan &plan, const BoundKernel &bound) {
    if (!bound.takes_state || bound.takes_bits || same_type(plan.problem.state_type, float32)) return HALATION_OK;
    return fail(HALATION_UNSUPPORTED, "state_type: got %s; must be float32 with kernel %s",
                type_name(plan.problem.state_type).c_str(), bound.kernel->name);
}

}  // namespace

halation_status make_plan(const halation_problem *given, halation_plan *plan) {
    plan->choice = HALATION_INIT(halation_choice);
    HALATION_TRY(check_problem(plan->context->tables, given, &plan->problem));
    if (strcmp(plan->problem.backend, "cpu")) HALATION_TRY(find_device(plan));
    Chosen chosen;
    HALATION_TRY(choose(plan->context->tables, plan->problem, &chosen, &plan->choice));
    describe_tensors(plan);
    HALATION_TRY(bind_kernel(*plan, *chosen.one, &plan->kernels[0]));
    HALATION_TRY(bind_kernel(*plan, *chosen.many, &plan->kernels[1]));
    plan->one = &plan->kernels[0];
    plan->many = chosen.many == chosen.one ? plan->one : &plan->kernels[1];
    allow_value_split(plan);
    if (!plan->device) return HALATION_OK;
    for (const BoundKernel *bound : {plan->one, plan->many}) HALATION_TRY(check_state_type(*plan, *bound));
    return check_gpu(*plan);
}

}  // namespace halation::runtime

extern "C" halation_status halation_can_run(halation_context *context, const halation_problem *problem, halation_choice *choice) {
    return guarded([&]() -> halation_status {
        if (!context) return fail(HALATION_INVALID_ARGUMENT, "context: is NULL");
        if (choice) HALATION_TRY(check_struct(choice, "halation_choice"));
        std::unique_ptr<halation_plan> plan(new halation_plan(context));
        halation_status status;
        {
            std::lock_guard<std::mutex> lock(context->mutex);
            status = make_plan(problem, plan.get());
            // How many threads a kernel has registers for is known once its code is loaded.
            if (status == HALATION_OK && plan->device && !plan->device->capturing()) status = prepare_gpu(*plan);
        }
        if (choice) {
            *choice = status == HALATION_OK ? plan->choice : HALATION_INIT(halation_choice);
            if (status != HALATION_OK) copy_text(choice->reason, halation_last_message());
        }
        return status;
    });
}

extern "C" halation_status halation_plan_create(halation_context *context, const halation_problem *problem,
                                                halation_plan **plan) {
    return guarded([&]() -> halation_status {
        if (!plan) return fail(HALATION_INVALID_ARGUMENT, "plan: is NULL");
        *plan = nullptr;
        if (!context) return fail(HALATION_INVALID_ARGUMENT, "context: is NULL");
        std::unique_ptr<halation_plan> made(new halation_plan(context));
        std::lock_guard<std::mutex> lock(context->mutex);
        HALATION_TRY(make_plan(problem, made.get()));
        if (made->device) made->device_memory = std::make_unique<PlanMemory>(*made->device);
        HALATION_TRY(make_defaults(made.get()));
        if (made->device) HALATION_TRY(prepare_gpu(*made));
        *plan = made.release();
        return HALATION_OK;
    });
}

extern "C" void halation_plan_destroy(halation_plan *plan) {
    delete plan;
}

extern "C" halation_status halation_plan_describe(const halation_plan *plan, halation_choice *choice) {
    return guarded([&]() -> halation_status {
        if (!plan) return fail(HALATION_INVALID_ARGUMENT, "plan: is NULL");
        HALATION_TRY(check_struct(choice, "halation_choice"));
        *choice = plan->choice;
        return HALATION_OK;
    });
}
