// Inputs left out, scales, and values at which feature maps and softmax have failed elsewhere.
#include "kernel_run.h"

#include <catch2/catch.hpp>

using namespace kernels;

namespace {

Problem sizes() {
    Problem problem;
    problem.B = 2, problem.T = 19, problem.H = 2, problem.HV = 4, problem.K = 37, problem.V = 40;
    problem.before = 5;
    return problem;
}

bool has_feature_map(const halation_row &row) {
    return row.default_feature_map != nullptr;
}
bool has_cache(const halation_row &row) {
    return has_letter(row, 'S');
}

}  // namespace

TEST_CASE("inputs that may be left out") {
    Problem many_heads = sizes();  // the decay of a retention head comes nearer to 1 from head to head
    many_heads.HV = 8;
    each_problem(many_heads, any, [](Problem &problem) {
        const halation_row &row = *problem.recurrence.row;
        Problem none = problem;
        for (int i = 0; i < row.input_count; i++) {
            if (row.inputs[i].otherwise == HALATION_DEFAULT_REQUIRED) continue;
            INFO("without " << row.inputs[i].name);
            Problem without = problem;
            without.inputs.erase(row.inputs[i].name);
            none.inputs.erase(row.inputs[i].name);
            if (row.inputs[i].otherwise == HALATION_DEFAULT_RETENTION && problem.gate_type != Type::f32) {
                each_kernel(without, [&](const Kernel &kernel) {
                    CHECK_THROWS_WITH(run(without, kernel), Catch::StartsWith("gamma: is left out, but its default"));
                });
                continue;
            }
            check_all_kernels(without);
        }
        if (none.inputs.size() + 1 < problem.inputs.size()) check_all_kernels(none);
    });
}

TEST_CASE("scales, below 0 among them") {
    for (const double scale : {1., .37, -2.})
        each_problem(sizes(), any, [&](Problem &problem) {
            INFO("scale " << scale);
            problem.scale = static_cast<float>(scale);
            check_all_kernels(problem);
        });
}

TEST_CASE("beta per value channel, all alike, is beta per head") {
    each_problem(
        sizes(), [](const halation_row &row) { return has_input(row, "beta"); },
        [](Problem &problem) {
            Problem per_value = problem;
            per_value.beta_per_value = true;
            fill(per_value);
            if (per_value.inputs.at("beta").shape.size() == problem.inputs.at("beta").shape.size()) return;
            per_value.inputs = problem.inputs;
            Tensor &beta = per_value.inputs.at("beta");
            std::vector<double> values;
            for (double value : safetensors::values(beta)) values.insert(values.end(), problem.V, value);
            beta.shape.push_back(problem.V);
            beta = safetensors::tensor(beta.type, beta.shape, values);
            each_kernel(problem, [&](const Kernel &kernel) { check_same_bits(run(per_value, kernel), run(problem, kernel)); });
        });
}

TEST_CASE("feature maps far from 0") {
    for (const double size : {30., 1000.})
        each_problem(sizes(), has_feature_map, [&](Problem &problem) {
            INFO("q and k of size " << size);
            for (const char *name : {"q", "k"}) edit(problem, name, [&](const auto &, double value) { return size * value; });
            if (problem.recurrence.feature_map == "identity") return;
            check_all_kernels(problem);
        });
}

TEST_CASE("nothing seen yet: 0 / 0 is 0") {
    each_problem(
        sizes(), [](const halation_row &row) { return row.normalizer_dims != nullptr; },
        [](Problem &problem) {
            if (problem.recurrence.feature_map != "relu") return;
            problem.initial_state = false;
            fill(problem);
            edit(problem, "k", [](const auto &index, double value) { return index[1] < 7 ? -std::abs(value) : value; });
            edit(problem, "q", [](const auto &index, double value) { return index[1] == 9 ? -std::abs(value) : value; });
            const auto wanted = expected(problem);
            each_kernel(problem, [&](const Kernel &kernel) {
                const Results results = run(problem, kernel);
                check_close(results, wanted);
                const std::vector<double> o = safetensors::values(results["o"]);
                const int64_t row = problem.HV * problem.V;
                for (int64_t i = 0; i < 7 * row; i++) REQUIRE(o[i] == 0);
                for (int64_t i = 9 * row; i < 10 * row; i++) REQUIRE(o[i] == 0);
            });
        });
}

TEST_CASE("softmax of large scores, and of a cache much longer than the queries") {
    each_problem(sizes(), has_cache, [](Problem &problem) {
        for (const bool causal : {true, false}) {
            problem.causal = causal;
            Problem large = problem;
            edit(large, "q", [](const auto &, double value) { return 100 * value; });
            check_all_kernels(large);
            Problem decode = problem;
            decode.T = 1;
            decode.before = 513;
            fill(decode);
            check_all_kernels(decode);
        }
    });
}
