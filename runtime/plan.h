// A plan: the kernels of a problem, and what their arguments are, worked out once.
#ifndef HALATION_RUNTIME_PLAN_H
#define HALATION_RUNTIME_PLAN_H

#include "context.h"
#include "plan_memory.h"
#include "problem.h"

#include <cstdint>
#include <vector>

namespace halation::runtime {

constexpr int most_tensors = most_inputs + 7;

// What a tensor of the row is, in the order in which the caller sees its axes.
struct TensorSpec {
    const char *name;
    const char *dims;
    int rank;
    Letter letter[most_axes];
    // Axis of a letter, -1 if the tensor has none. `row` is the axis of B or N, which no kernel sees; `head`
    // that of H or G.
    int row_axis, token_axis, cache_axis, head_axis, value_axis;
    bool key_head;  // head_axis is H
    bool last_axis_optional;
    bool output;
    int carried;  // index of Carried, -1: no state
    halation_tensor_role role;
    halation_default otherwise;
    DLDataType type, kernel_type;  // as the caller stores it, and as kernels see it
    int bytes;                     // of an element as the caller stores it

    int kernel_rank(bool whole_batch) const { return rank - (row_axis >= 0 && !whole_batch ? 1 : 0); }
};

// What a recurrence carries from token to token; index of the arrays of tensors below.
enum Carried { carried_state, carried_normalizer, carried_count };

enum class Source : uint8_t {
    user_context,
    scale,
    causal,
    presence,
    tensor,
    initial_bits,
    final_bits,
    reads_bits,
    writes_bits,
    sequences,
    most_tokens,
    most_cached,
    key_head_step,
    key_heads
};

struct Binding {
    Source source;
    int8_t tensor;  // for Source::tensor and presence
};

constexpr int most_arguments = most_tensors + 12;

struct BoundKernel {
    const halation_kernel *kernel = nullptr;
    int argument_count = 0;
    Binding arguments[most_arguments];
    bool takes_causal = false;
    bool takes_state = false;  // reads and writes every state of the row
    bool takes_bits = false;   // on a device: in bfloat16, too
    int cut = 0;               // a sequence may be cut at multiples of this many tokens; 0: nowhere
};

// Memory holding the value of an optional input that the caller leaves out.
struct DefaultValue {
    void *memory = nullptr;  // the allocator's, or the device's data
    size_t bytes = 0;
    Location location{nullptr, nullptr, UINT64_MAX};  // on a device
};

}  // namespace halation::runtime

struct halation_plan {
    explicit halation_plan(halation_context *owner) : context(owner) { halation::runtime::retain(owner); }
    ~halation_plan();
    halation_plan(const halation_plan &) = delete;
    halation_plan &operator=(const halation_plan &) = delete;

    halation_context *context;
    halation::runtime::Device *device = nullptr;  // that of the context, if the plan is for it; NULL: the CPU
    halation::runtime::Problem problem;
    halation_choice choice;

    // Inputs as in the row, then o, then initial, final and snapshot state and normalizer where the row has them.
    halation::runtime::TensorSpec tensors[halation::runtime::most_tensors];
    int tensor_count = 0, output = -1;
    int initial[halation::runtime::carried_count] = {-1, -1}, final[halation::runtime::carried_count] = {-1, -1},
        snapshot[halation::runtime::carried_count] = {-1, -1};
    halation::runtime::DefaultValue defaults[halation::runtime::most_tensors];

    halation::runtime::BoundKernel kernels[2];
    const halation::runtime::BoundKernel *one = nullptr, *many = nullptr;  // by a sequence's length
    bool splits_values = false;  // value channels may be shared out at multiples of value_tile
    int64_t value_tile = 0;
    bool has_key_heads = false, has_cache = false;

    std::unique_ptr<halation::runtime::PlanMemory> device_memory;

    // Reused by every run: to find slots written twice, and the snapshots in the order in which they are taken.
    std::vector<uint64_t> slot_marks;
    std::vector<int64_t> snapshot_order;
};

namespace halation::runtime {

// Chooses, binds and fills `plan`; used both to ask and to create.
halation_status make_plan(const halation_problem *given, halation_plan *plan);

// bind.cpp: what the plan's tensors are, and what each argument of a kernel is.
void describe_tensors(halation_plan *plan);
halation_status bind_kernel(const halation_plan &plan, const halation_kernel &kernel, BoundKernel *bound);

// defaults.cpp: fills the memory of optional inputs.
halation_status make_defaults(halation_plan *plan);

}  // namespace halation::runtime
#endif
