#include "check.h"

#include "bench/inputs.h"
#include "oracle/rounding.h"
#include "row_loop.h"
#include "subject.h"

#include <algorithm>
#include <fmt/format.h>

namespace halation::lab {
namespace {

safetensors::Type type_of(DLDataType type) {
    if (type.bits == 32) return safetensors::Type::f32;
    return type.code == kDLBfloat ? safetensors::Type::bf16 : safetensors::Type::f16;
}

oracle::Array array_of(const Tensor &tensor) {
    safetensors::Tensor stored{type_of(tensor.type()), tensor.shape(), {}};
    int64_t bytes = safetensors::bytes(stored.type);
    for (const int64_t extent : tensor.shape()) bytes *= extent;
    const auto *data = static_cast<const uint8_t *>(tensor.data());
    stored.data.assign(data, data + bytes);
    return {tensor.shape(), safetensors::values(stored)};
}

// One shape of a check.
struct Case {
    int64_t batch, tokens, heads, value_heads, key_dim, value_dim;
};

std::string text_of(const Case &c) {
    return fmt::format("B {}  T {}  H {}  HV {}  K {}  V {}", c.batch, c.tokens, c.heads, c.value_heads, c.key_dim, c.value_dim);
}

// Tails of every kind, grouped heads, several sequences; and the subject's own dims over more tokens than one call of the
// kernel takes.
std::vector<Case> cases_of(const Subject &s, const halation_kernel &kernel) {
    const int64_t K = s.known_key_dim ? s.key_dim : 40, V = s.known_value_dim ? s.value_dim : 72;
    const int64_t across = std::min<int64_t>(kernel.segment + kernel.chunk + 1, 1100);
    std::vector<Case> cases = {{2, 67, 2, 4, K, V}, {1, 3, 1, 1, K, V}, {1, 1, 2, 2, K, V}};
    cases.push_back({1, std::max<int64_t>(across, 70), 1, 1, s.key_dim, s.value_dim});
    if (!s.known_key_dim && !s.known_value_dim) cases.push_back({1, 21, 1, 1, 1, 1});
    return cases;
}

struct References {
    oracle::Outputs in_double, in_float;
};

References references_of(const Subject &subject, const oracle::Inputs &inputs) {
    if (recurrence_named(subject.recurrence).generator != "halation_chunk")
        return {oracle::run(inputs), oracle::run_in_float(inputs)};
    const Row &row = row_named(subject.recurrence);
    return {run_row(row, inputs), run_row_in_float(row, inputs)};
}

void compare(Checked &checked, const std::string &name, const Tensor &result, const oracle::Array &in_double,
             const oracle::Array &in_float, const std::string &where) {
    const safetensors::Type type = type_of(result.type());
    const double allowed = std::max(1e-5, 4 * oracle::error(in_float, in_double)) + oracle::rounding(type, in_double);
    const double error = oracle::error(array_of(result), oracle::within_range(in_double, type));
    const bool worse = checked.worst.empty() || error / allowed > checked.error / checked.allowed;
    if (worse) checked = {error, allowed, name + " at " + where};
}

void check_case(Checked &checked, const LoadedKernel &kernel, const Context &context, const Subject &subject, Case c) {
    const halation_row &row = kernel.row();
    const bool heads = bench::has_letter(row, 'H') || bench::has_letter(row, 'G');
    if (!heads) c.heads = c.value_heads = 1;
    if (!bench::has_letter(row, 'K')) c.key_dim = 1;
    Problem problem = problem_of(subject);
    problem.heads = c.heads, problem.value_heads = c.value_heads, problem.key_dim = c.key_dim, problem.value_dim = c.value_dim;
    // A cache longer than the queries.
    const int64_t cached = bench::has_letter(row, 'S') ? 9 : 0;
    const bench::Inputs inputs(row, problem, {c.batch, c.tokens, cached}, bench::Extent::all);

    oracle::Inputs given;
    given.recurrence = subject.recurrence;
    given.feature_map = subject.feature_map;
    if (given.feature_map.empty() && row.default_feature_map) given.feature_map = row.default_feature_map;
    for (const auto &[name, tensor] : inputs.tensors())
        if (name != "o" && name.rfind("final_", 0) != 0) given.tensors[name] = array_of(tensor);
    const References references = references_of(subject, given);

    Plan(context, problem).run(inputs.tensors());
    for (const auto &[name, tensor] : inputs.tensors()) {
        if (name == "o") compare(checked, name, tensor, references.in_double.o, references.in_float.o, text_of(c));
        if (name == "final_state")
            compare(checked, name, tensor, references.in_double.final_state, references.in_float.final_state, text_of(c));
        if (name == "final_normalizer")
            compare(checked, name, tensor, references.in_double.final_normalizer, references.in_float.final_normalizer,
                    text_of(c));
    }
}

}  // namespace

Checked check_kernel(const LoadedKernel &kernel, const Subject &subject) {
    Context context(1);
    context.add_kernels(kernel.table());
    Checked checked;
    for (const Case &c : cases_of(subject, kernel.table().kernels[0])) check_case(checked, kernel, context, subject, c);
    return checked;
}

}  // namespace halation::lab
