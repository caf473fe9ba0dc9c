#include "compute.h"

#include "commands.h"
#include "shapes.h"

#include <algorithm>

namespace halation::cli {
namespace {

DLDataType type_of(safetensors::Type type) {
    if (type == safetensors::Type::f16) return float16;
    return type == safetensors::Type::bf16 ? bfloat16 : float32;
}

// A tensor without elements has no memory, but a view of it has an address like any other.
Tensor view(const safetensors::Tensor &tensor) {
    static uint64_t nothing = 0;
    const void *data = tensor.data.empty() ? static_cast<const void *>(&nothing) : tensor.data.data();
    return Tensor(const_cast<void *>(data), type_of(tensor.type), tensor.shape);
}

// Tensors of a file in memory of the context's device, for as long as it lives.
class Placed {
public:
    explicit Placed(const Context &context) : context_(context) {}

    Tensor place(const safetensors::Tensor &tensor) {
        const size_t bytes = tensor.data.size();
        memory_.emplace_back(context_, bytes > 0 ? bytes : 1);
        if (bytes > 0) memory_.back().copy_from(tensor.data.data(), bytes);
        return Tensor(memory_.back().data(), type_of(tensor.type), tensor.shape).on(context_.device().device);
    }
    // What was placed as the `index`th.
    void read(size_t index, safetensors::Tensor &tensor) const {
        if (!tensor.data.empty()) memory_[index].copy_to(tensor.data.data(), tensor.data.size());
    }
    size_t count() const { return memory_.size(); }

private:
    const Context &context_;
    std::vector<DeviceMemory> memory_;
};

}  // namespace

void open_device(Context &context, const KernelOptions &options) {
    if (options.backend != "cpu") context.open_device(options.backend.c_str(), std::max(options.device, 0));
}

Problem problem_of(const ProblemFile &file, const KernelOptions &options) {
    const auto extent = [&](char letter) {
        const auto found = file.extents.find(letter);
        return found == file.extents.end() ? 1 : found->second;
    };
    const int64_t value_heads = extent('G');
    Problem problem(file.row->name, file.extents.count('H') ? extent('H') : value_heads, value_heads, extent('K'), extent('V'));
    problem.backend = options.backend.c_str();
    problem.isa = options.isa.empty() ? nullptr : options.isa.c_str();
    problem.feature_map = file.feature_map.empty() ? nullptr : file.feature_map.c_str();
    problem.form = form_named(options.form);
    problem.head_mapping = file.heads;
    problem.chunk = options.chunk;
    problem.non_causal = !file.causal;
    problem.type = type_of(file.type);
    problem.gate_type = type_of(file.gate_type);
    problem.state_type = type_of(file.state_type);
    problem.scale = file.scale;
    return problem;
}

Refusal refusal(const Context &context, const Problem &problem) {
    auto choice = HALATION_INIT(halation_choice);
    Refusal refused{halation_can_run(context.get(), &problem, &choice), choice.reason};
    if (refused.status != HALATION_UNSUPPORTED || problem.form != HALATION_FORM_AUTO) return refused;
    // With form auto the reason is that of each form, mostly the same one; that of the form for many tokens tells enough.
    Problem one_form = problem;
    const halation_row &row = row_named(problem.recurrence);
    one_form.form = row.refused[HALATION_FORM_CHUNKWISE] ? HALATION_FORM_PARALLEL : HALATION_FORM_CHUNKWISE;
    if (halation_can_run(context.get(), &one_form, &choice) == HALATION_UNSUPPORTED) refused.reason = choice.reason;
    return refused;
}

Results compute(const Context &context, const ProblemFile &file, const KernelOptions &options) {
    Plan plan(context, problem_of(file, options));
    Results results;
    const auto allocate = [&](const char *name, const char *dims, safetensors::Type type) {
        if (!dims) return;
        safetensors::Tensor &tensor = results.tensors[name];
        tensor.type = type;
        tensor.shape = file.shape(dims);
        const int64_t count = element_count(tensor.shape, file.path + ": " + name);
        tensor.data.resize(static_cast<size_t>(count * safetensors::bytes(type)));
    };
    allocate("o", file.row->output_dims, file.type);
    allocate("final_state", file.row->state_dims, file.state_type);
    allocate("final_normalizer", file.row->normalizer_dims, safetensors::Type::f32);

    const bool on_device = options.backend != "cpu";
    Placed placed(context);
    const auto place = [&](const safetensors::Tensor &tensor) { return on_device ? placed.place(tensor) : view(tensor); };
    NamedTensors tensors;
    for (const auto &[name, tensor] : file.inputs) tensors.emplace_back(name, place(tensor));
    const size_t inputs = placed.count();
    for (const auto &[name, tensor] : results.tensors) tensors.emplace_back(name, place(tensor));
    Batch batch;
    const auto vector = [](const std::vector<int64_t> &values) {
        return values.empty() ? Tensor() : Tensor(values.data(), {static_cast<int64_t>(values.size())});
    };
    batch.offsets = vector(file.offsets);
    batch.cache_offsets = vector(file.cache_offsets);
    plan.run(tensors, batch);
    size_t index = inputs;
    for (auto &[name, tensor] : results.tensors)
        if (on_device) placed.read(index++, tensor);
    results.choice = plan.describe();
    return results;
}

}  // namespace halation::cli
