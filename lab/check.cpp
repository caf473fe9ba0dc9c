#include "check.h"

#include "bench/inputs.h"
#include "oracle/rounding.h"
#include "row_loop.h"
#include "subject.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

namespace halation::lab {
namespace {

oracle::Array array_of(const Tensor &tensor) {
    safetensors::Tensor stored{bench::stored_type(tensor.type()), tensor.shape(), {}};
    int64_t bytes = safetensors::bytes(stored.type);
    for (const int64_t extent : tensor.shape()) bytes *= extent;
    const auto *data = static_cast<const uint8_t *>(tensor.data());
    stored.data.assign(data, data + bytes);
    return {tensor.shape(), safetensors::values(stored)};
}

// One shape of a check.
struct Case {
    int64_t batch, tokens, heads, value_heads, key_dim, value_dim;
    bench::Extent extent;
};

std::string text_of(const Case &c) {
    return fmt::format("B {}  T {}  H {}  HV {}  K {}  V {}", c.batch, c.tokens, c.heads, c.value_heads, c.key_dim, c.value_dim);
}

// Dims that no tile or unrolling divides; one token and a few; grouped heads and several sequences; more tokens than one call of
// the kernel takes; the subject's own dims, and larger ones; with optional inputs and without.
std::vector<Case> cases_of(const Subject &s, const halation_kernel &kernel) {
    using bench::Extent;
    const bool known = s.known_key_dim || s.known_value_dim;
    const int64_t K = known ? s.key_dim : 43, V = known ? s.value_dim : 77;
    const int64_t across = kernel.segment + kernel.chunk + 1;
    std::vector<Case> cases = {{2, 67, 2, 4, K, V, Extent::all},
                               {2, 67, 2, 4, K, V, Extent::required},
                               {1, 3, 1, 1, K, V, Extent::all},
                               {1, 1, 2, 2, K, V, Extent::all}};
    // Where a call takes very many tokens, small dims do.
    const bool long_calls = across > 1100;
    const int64_t across_key_dim = known || !long_calls ? s.key_dim : 5,
                  across_value_dim = known || !long_calls ? s.value_dim : 9;
    cases.push_back({1, std::max<int64_t>(across, 70), 1, 1, across_key_dim, across_value_dim, Extent::all});
    if (long_calls) cases.push_back({1, 70, 1, 1, s.key_dim, s.value_dim, Extent::all});
    if (known) return cases;
    cases.push_back({1, 21, 1, 1, 1, 1, Extent::all});
    cases.push_back({1, 9, 1, 1, s.key_dim + 3, s.value_dim + 5, Extent::all});
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

bool is_finite(const oracle::Array &array) {
    return std::all_of(array.values.begin(), array.values.end(), [](double value) { return std::isfinite(value); });
}

void compare(Checked &checked, const std::string &name, const Tensor &result, const oracle::Array &in_double,
             const oracle::Array &in_float, const std::string &where) {
    const safetensors::Type type = bench::stored_type(result.type());
    const double sensitive = oracle::error(in_float, in_double);
    // Against such a reference nothing could be called right or wrong.
    if (!is_finite(in_double) || !is_finite(in_float) || sensitive > 1e-3)
        throw std::runtime_error(
            fmt::format("{} at {} is {} on random inputs even in the plain loop, so that nothing can be checked; inputs "
                        "whose names begin with g are drawn as logarithms of decays, those with beta from 0 to 1, k, q, "
                        "a as unit vectors, others around zero (bench/inputs.cpp)",
                        name, where, sensitive > 1e-3 && sensitive < 1e300 ? "all rounding errors" : "not finite"));
    const double allowed = std::max(1e-5, 4 * sensitive) + oracle::rounding(type, in_double);
    const double error = oracle::error(array_of(result), oracle::within_range(in_double, type));
    const bool worse = checked.worst.empty() || !(error / allowed <= checked.error / checked.allowed);
    if (worse) checked = {error, allowed, name + " at " + where};
}

void check_case(Checked &checked, const LoadedKernel &kernel, const Context &context, const Subject &subject, Case c) {
    const halation_row &row = kernel.row();
    if (!bench::has_heads(row)) c.heads = c.value_heads = 1;
    if (!bench::has_letter(row, 'K')) c.key_dim = 1;
    Problem problem = problem_of(subject);
    problem.heads = c.heads, problem.value_heads = c.value_heads, problem.key_dim = c.key_dim, problem.value_dim = c.value_dim;
    // A cache longer than the queries.
    const int64_t cached = bench::has_letter(row, 'S') ? 9 : 0;
    const bench::Inputs inputs(row, problem, {c.batch, c.tokens, cached}, c.extent);

    oracle::Inputs given;
    given.recurrence = subject.recurrence;
    given.feature_map = subject.feature_map;
    if (given.feature_map.empty() && row.default_feature_map) given.feature_map = row.default_feature_map;
    for (const auto &[name, tensor] : inputs.tensors())
        if (name != "o" && name.rfind("final_", 0) != 0) given.tensors[name] = array_of(tensor);
    const References references = references_of(subject, given);

    Plan(context, problem).run(inputs.tensors());
    const oracle::Outputs &exact = references.in_double, &in_float = references.in_float;
    for (const auto &[name, tensor] : inputs.tensors()) {
        if (name == "o") compare(checked, name, tensor, exact.o, in_float.o, text_of(c));
        if (name == "final_state") compare(checked, name, tensor, exact.final_state, in_float.final_state, text_of(c));
        if (name == "final_normalizer")
            compare(checked, name, tensor, exact.final_normalizer, in_float.final_normalizer, text_of(c));
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
