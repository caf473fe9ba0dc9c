// Runs problems through halation.hpp on every kernel that this machine can run, and compares results.
#ifndef HALATION_TESTS_KERNEL_RUN_H
#define HALATION_TESTS_KERNEL_RUN_H

#include "halation.hpp"
#include "kernel_placed.h"
#include "kernel_problem.h"

#include <functional>
#include <map>

namespace kernels {

struct Kernel {
    halation_form form;
    std::string isa;
    std::string text() const;
};

// What tells one way to run a problem from another, none of which may change a bit of the results.
struct How {
    int threads = 1;
    Meets meets = Meets::end;
    bool padded = false;         // NaN between the rows of every tensor
    bool in_place = false;       // the final state over the initial one
    bool final_state = true;     // wanted at all
    bool nan_workspace = false;  // the caller's own, full of NaN; on a device the plan's, after a call with NaN everywhere
    std::vector<int64_t> read_slots, write_slots;
    std::vector<uint8_t> has_initial_state;
    int64_t slots = 0;  // of the final and snapshot states; 0: one a sequence
    std::vector<int64_t> snapshot_sequences, snapshot_tokens, snapshot_slots;
    bool one_pool = false;                    // snapshots go into rows of the final state; results have no others
    unsigned layout_seed = 0;                 // other than 0: every tensor with strides of its own, drawn from this
    std::map<std::string, size_t> broadcast;  // inputs that are constant along an axis, which then has stride 0
};

struct Results {
    std::map<std::string, Tensor> tensors;  // o, final_state, final_normalizer, snapshot_state, snapshot_normalizer
    halation_choice choice{};
    const Tensor &operator[](const std::string &name) const { return tensors.at(name); }
};

// Throws halation::Error where the runtime refuses; fails the test if anything but the outputs was written. Slots that
// no sequence writes stay NaN.
Results run(const Problem &problem, const Kernel &kernel, const How &how = {});

halation::Problem problem_for(const Problem &problem, const Kernel &kernel);
halation::Context &context(int threads);

// Calls body(kernel) for every form and ISA that there are kernels of the problem's recurrence and types for and that
// this machine can run; says on standard output, once each, what is skipped and why. Those of `forms`, if any.
void each_kernel(const Problem &problem, const std::function<void(const Kernel &)> &body,
                 const std::vector<halation_form> &forms = {});

// Test assertions. `times` the bound is allowed.
void check_close(const Results &results, const std::map<std::string, Expected> &expected, double times = 1);
void check_close(const Problem &problem, const Kernel &kernel, const How &how = {});
void check_same_bits(const Results &results, const Results &other);
// Every kernel of the problem against the plain loop.
void check_all_kernels(const Problem &problem);
// That nothing depends on how tensors lie, nor on states being read and written in place.
void check_layouts(const Problem &problem, const Kernel &kernel);
bool same_bits(const Tensor &a, const Tensor &b);
// Within the bounds of both, of two results that need not be alike to the bit.
void check_agree(const Results &results, const Results &other, const std::map<std::string, Expected> &expected);

double error(const Tensor &result, const oracle::Array &reference);

// One tensor of the tokens of both, and the final states of the second.
Results joined(const Results &first, const Results &second);
// Carries the final states of a run into a problem.
void start_from(Problem &problem, const Results &results);
// Row n of a state, or sequence n of outputs.
Tensor row_of(const Tensor &tensor, int64_t n);

}  // namespace kernels
#endif
