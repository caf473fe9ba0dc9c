// Random problems for any recurrence of the kernel table, and what the oracle says of them.
#ifndef HALATION_TESTS_KERNEL_PROBLEM_H
#define HALATION_TESTS_KERNEL_PROBLEM_H

#include "halation_kernels.h"
#include "oracle/oracle.h"
#include "safetensors/safetensors.h"

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace kernels {

using safetensors::Tensor;
using safetensors::Type;

enum class Gates {
    gentle,           // -1 to -1e-4
    strong,           // -2661, -104, -30 and -1e-4 mixed
    resets,           // gentle with -inf here and there
    scattered_zeros,  // half of them 0
    zero,
};
constexpr Gates all_gates[] = {Gates::gentle, Gates::strong, Gates::resets, Gates::scattered_zeros, Gates::zero};
const char *name_of(Gates gates);

// A recurrence with one of its feature maps, as kernels were built for it.
struct Recurrence {
    const halation_row *row = nullptr;
    std::string feature_map;  // empty: it has none
};
std::vector<Recurrence> all_recurrences();
Recurrence recurrence(const std::string &name);  // with its default feature map
bool exists(const std::string &name);

// Whether the row has an input of this name, and whether any of its tensors has the letter.
bool has_input(const halation_row &row, const std::string &name);
bool has_letter(const halation_row &row, char letter);

// Types of q and of gates for which kernels were built.
std::vector<std::pair<Type, Type>> all_types();

struct Problem {
    Recurrence recurrence;
    Type type = Type::f32, gate_type = Type::f32, state_type = Type::f32;
    int64_t B = 1, T = 1, H = 1, HV = 1, K = 1, V = 1;
    int64_t before = 0;  // softmax: cached tokens before the first query
    halation_head_mapping heads = HALATION_HEADS_GROUPED;
    bool causal = true;
    bool initial_state = true;
    double scale = std::nan("");
    Gates gates = Gates::gentle;
    double largest_beta = 1;
    bool beta_per_value = false;  // where the row allows it
    std::vector<int64_t> offsets;
    std::vector<int64_t> cache_offsets;  // softmax, with offsets
    unsigned seed = 1;

    std::map<std::string, Tensor> inputs;  // made by fill(); the initial states among them

    int64_t sequences() const { return offsets.empty() ? B : static_cast<int64_t>(offsets.size()) - 1; }
    std::vector<int64_t> shape(const std::string &dims) const;
    std::string text() const;
};

// Drops what the recurrence does not have (heads, key channels, a state), then draws every input from the seed, rounded
// to its type. Delta rules get unit keys; rwkv7 gets a = -kappa, b = eta kappa of unit kappa, so that it stays stable.
void fill(Problem &problem);

// Calls body with a problem filled like `like` for every recurrence that `which` takes and every type. Where kernels are
// emulated, HALATION_TEST_SAMPLE=N keeps every N-th, in turn.
void each_problem(const Problem &like, const std::function<bool(const halation_row &)> &which,
                  const std::function<void(Problem &)> &body);
size_t stride_of_sample();  // N, otherwise 1
bool any(const halation_row &row);
bool has_state(const halation_row &row);

// Sets an input's elements from their index in its shape, as far as `value` does not return its second argument.
void edit(Problem &problem, const std::string &input,
          const std::function<double(const std::vector<int64_t> &index, double value)> &value);
// The same for every log gate (g, gv) of the problem, by token and innermost channel (0 where a gate has none).
void edit_gates(Problem &problem, const std::function<double(int64_t token, int64_t channel, double value)> &value);

// Tokens first .. last - 1 of every input, from the given state if it has one.
Problem cut(const Problem &problem, int64_t first, int64_t last);
// The same of outputs.
Tensor cut_tokens(const Tensor &outputs, int64_t first, int64_t last);
// Sequence n alone, with its state.
Problem alone(const Problem &problem, int64_t n);

oracle::Inputs oracle_inputs(const Problem &problem);

struct Expected {
    oracle::Array value;  // infinite where it leaves the type's range
    double bound;         // float32: max(1e-5, 4 times the error of the loop in float); and the rounding of the type
};
// By name: o, final_state, final_normalizer, as far as the recurrence has them.
std::map<std::string, Expected> expected(const Problem &problem);

}  // namespace kernels
#endif
