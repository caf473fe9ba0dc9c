// A NaN among the inputs: it is not swallowed, whatever comes after it, and it never reaches back.
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace kernels;

namespace {

constexpr int64_t at_token = 21;  // in the middle of a block of the parallel form, and of a chunk

// Puts a NaN into one input, at that token where it has tokens.
void spoil(Problem &problem, const halation_row_tensor &input) {
    const char *cached = std::strchr(input.dims, 'S'), *token = cached ? cached : std::strchr(input.dims, 'T');
    const int64_t place = at_token + (cached ? problem.before : 0);
    bool done = false;
    edit(problem, input.name, [&](const std::vector<int64_t> &index, double value) {
        if (done || (token && index[static_cast<size_t>(token - input.dims)] != place)) return value;
        done = true;
        return std::numeric_limits<double>::quiet_NaN();
    });
}

// NaN wherever the plain loop has one.
void check_nans(const Tensor &result, const oracle::Array &reference) {
    const std::vector<double> values = safetensors::values(result);
    size_t swallowed = 0;
    for (size_t i = 0; i < values.size(); i++) swallowed += std::isnan(reference.values[i]) && !std::isnan(values[i]);
    CHECK(swallowed == 0u);
}

// The first tokens as they are without it.
void check_before(const Tensor &result, const Tensor &sound) {
    CHECK(same_bits(cut_tokens(result, 0, at_token), cut_tokens(sound, 0, at_token)));
}

}  // namespace

TEST_CASE("a NaN stays one, and stays where it is") {
    Problem like;
    like.B = 1, like.T = 45, like.H = 1, like.HV = 2, like.K = 19, like.V = 21, like.before = 5;
    each_problem(like, any, [](Problem &problem) {
        const halation_row &row = *problem.recurrence.row;
        const bool causal = std::string(row.name) != "bidirectional";
        std::map<std::string, Results> sound;
        each_kernel(problem, [&](const Kernel &kernel) { sound[kernel.text()] = run(problem, kernel); });
        for (int i = 0; i < row.input_count; i++) {
            INFO("a NaN in " << row.inputs[i].name);
            Problem spoilt = problem;
            spoil(spoilt, row.inputs[i]);
            const oracle::Outputs reference = oracle::run(oracle_inputs(spoilt));
            each_kernel(spoilt, [&](const Kernel &kernel) {
                const Results results = run(spoilt, kernel);
                check_nans(results["o"], reference.o);
                if (results.tensors.count("final_state")) check_nans(results["final_state"], reference.final_state);
                const bool has_tokens = std::strpbrk(row.inputs[i].dims, "TS");
                if (causal && has_tokens) check_before(results["o"], sound[kernel.text()]["o"]);
            });
        }
    });
}

TEST_CASE("every NaN of float32 is a NaN in the outputs, of 16 bits too") {
    Problem like;
    like.T = 1;
    each_problem(
        like, [](const halation_row &row) { return std::string(row.name) == "linear"; },
        [](Problem &problem) {
            for (const uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7f800001u, 0x7fc00000u}) {
                float value;
                std::memcpy(&value, &bits, sizeof value);
                std::memcpy(problem.inputs.at("initial_state").data.data(), &value, sizeof value);
                edit(problem, "q", [](const auto &, double) { return 1; });
                INFO(std::hex << bits);
                each_kernel(problem,
                            [&](const Kernel &kernel) { CHECK(std::isnan(safetensors::values(run(problem, kernel)["o"])[0])); });
            }
        });
}
