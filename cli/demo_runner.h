// One recurrence on ranges of the text, in one form, its state carried from call to call.
#ifndef HALATION_CLI_DEMO_RUNNER_H
#define HALATION_CLI_DEMO_RUNNER_H

#include "demo_memories.h"

#include "halation.hpp"
#include "halation_kernels.h"

#include <memory>
#include <vector>

namespace halation::demo {

// The row of a recurrence in this build's kernels; nullptr if there is none.
const halation_row *find_row(const std::string &recurrence);

// Why this build and machine cannot run the memory in this form; empty if they can.
std::string refusal(const Context &context, const Memory &memory, halation_form form);

class Runner {
public:
    // Throws halation::Error if the form is refused.
    Runner(const Context &context, const Task &task, const Memory &memory, halation_form form);

    // Makes the inputs of tokens [first, first + count), of which run() then takes parts. Apart from run() so that
    // making them is not timed.
    void load(int64_t first, int64_t count);

    // Reads tokens [first, first + count) into `reads` [count, heads, dim], going on from the state of the run
    // before. A memory without a state (softmax) sees all tokens before `first` as its cache.
    void run(int64_t first, int64_t count, float *reads);

    void forget();  // back to the zero state

    bool has_state() const { return !state_.empty(); }
    int64_t state_bytes() const { return static_cast<int64_t>((state_.size() + normalizer_.size()) * sizeof(float)); }
    double state_norm() const;  // root of the sum of squares over all heads
    const std::vector<float> &state() const { return state_; }
    halation_choice choice() const { return plan_->describe(); }

private:
    struct Argument {
        std::string name;
        std::vector<int64_t> shape, strides;
        const float *base = nullptr;  // of token `first`
        int64_t first = 0;
        int token_dim = -1;        // which dim is T or S; -1: none
        bool whole_cache = false;  // dim S: from token 0
        std::vector<float> own;    // what load() made
    };
    void add(const char *name, const std::string &dims);

    const Task &task_;
    const Memory &memory_;
    std::unique_ptr<Plan> plan_;
    std::vector<Argument> arguments_;
    std::vector<float> state_, normalizer_;
    std::vector<DLTensor> tensors_;
    std::vector<halation_named_tensor> named_;
};

}  // namespace halation::demo
#endif
