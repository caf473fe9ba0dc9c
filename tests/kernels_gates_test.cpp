// Strong gates and other inputs on which kernels of this kind have failed: finite, and as precise as the plain loop.
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace kernels;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

Problem sizes(int64_t B = 1, int64_t T = 75, int64_t H = 2, int64_t HV = 4, int64_t K = 37, int64_t V = 40) {
    Problem problem;
    problem.B = B, problem.T = T, problem.H = H, problem.HV = HV, problem.K = K, problem.V = V;
    return problem;
}

bool has_gate(const halation_row &row) {
    return has_input(row, "g");
}
bool has_beta(const halation_row &row) {
    return has_input(row, "beta");
}
// The state after a reset holds nothing of the one before it.
bool forgets(const halation_row &row) {
    return has_gate(row) && !has_input(row, "a");
}

oracle::Array tokens_from(const oracle::Array &o, int64_t first) {
    oracle::Array result = {o.shape, {}};
    result.shape[1] -= first;
    const int64_t B = o.shape[0], row = static_cast<int64_t>(o.values.size()) / B / o.shape[1];
    for (int64_t b = 0; b < B; b++)
        result.values.insert(result.values.end(), o.values.begin() + (b * o.shape[1] + first) * row,
                             o.values.begin() + (b + 1) * o.shape[1] * row);
    return result;
}

oracle::Array array_of(const Tensor &tensor) {
    return {tensor.shape, safetensors::values(tensor)};
}

// The outputs from a token on, by their own norm: what came before may be larger.
void check_tail(const Problem &problem, int64_t first) {
    const auto wanted = expected(problem);
    const oracle::Array tail = tokens_from(wanted.at("o").value, first);
    each_kernel(problem, [&](const Kernel &kernel) {
        const Results results = run(problem, kernel);
        INFO("tokens from " << first);
        CHECK(oracle::error(tokens_from(array_of(results["o"]), first), tail) <= wanted.at("o").bound);
        check_close(results, wanted);
    });
}

}  // namespace

TEST_CASE("gates of -2661 mixed with gates of -1e-4") {
    each_problem(sizes(), has_gate, [](Problem &problem) {
        edit_gates(problem, [](int64_t, int64_t channel, double) { return channel % 3 == 1 ? -2661 : -1e-4; });
        check_all_kernels(problem);
        problem.gates = Gates::strong;  // by token, too
        fill(problem);
        check_all_kernels(problem);
    });
}

TEST_CASE("a log gate of -inf at one token is a full reset") {
    for (const int64_t at : {0, 1, 20, 66, 74})
        each_problem(sizes(), has_gate, [&](Problem &problem) {
            INFO("at token " << at);
            edit_gates(problem, [&](int64_t t, int64_t, double g) { return t == at ? -infinity : g; });
            check_all_kernels(problem);
        });
}

TEST_CASE("nothing from before a reset is left") {
    const int64_t at = 30;
    each_problem(sizes(), forgets, [&](Problem &problem) {
        edit_gates(problem, [&](int64_t t, int64_t, double g) { return t == at ? -infinity : g; });
        Problem other = problem;  // another past
        edit(other, "initial_state", [](const auto &, double value) { return -1e4 * value; });
        edit(other, "v", [&](const auto &index, double value) { return index[1] < at ? 100 * value : value; });
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results a = run(problem, kernel), b = run(other, kernel);
            CHECK(tokens_from(array_of(a["o"]), at + 1).values == tokens_from(array_of(b["o"]), at + 1).values);
            CHECK(same_bits(a["final_state"], b["final_state"]));
        });
    });
}

TEST_CASE("-inf at all tokens of one channel, and of all but one") {
    each_problem(sizes(), has_gate, [](Problem &problem) {
        Problem all_but_one = problem;
        edit_gates(problem, [](int64_t, int64_t channel, double g) { return channel == 2 ? -infinity : g; });
        check_all_kernels(problem);
        edit_gates(all_but_one, [](int64_t, int64_t channel, double g) { return channel == 2 ? g : -infinity; });
        check_all_kernels(all_but_one);
    });
}

TEST_CASE("gates of 0 give the recurrence without gates") {
    const std::pair<const char *, const char *> pairs[] = {
        {"gated", "linear"}, {"gla", "linear"}, {"gla_outer", "linear"}, {"gated_delta", "delta"}, {"kda", "delta"}};
    for (const auto &[name, without] : pairs) {
        const std::string gated = name;
        each_problem(
            sizes(), [&](const halation_row &row) { return row.name == gated; },
            [&](Problem &problem) {
                problem.gates = Gates::zero;
                fill(problem);
                Problem ungated = problem;
                halation_row row = *problem.recurrence.row;
                row.name = without;  // for the oracle; it ignores the gates
                ungated.recurrence.row = &row;
                const auto wanted = expected(ungated);
                each_kernel(problem, [&](const Kernel &kernel) { check_close(run(problem, kernel), wanted); });
            });
    }
}

TEST_CASE("gates of 0 scattered at random") {
    each_problem(sizes(), has_gate, [](Problem &problem) {
        problem.gates = Gates::scattered_zeros;
        fill(problem);
        check_all_kernels(problem);
    });
}

TEST_CASE("gates of -31 to -69 in the last chunk") {
    each_problem(sizes(2, 75, 4, 4, 64, 64), has_gate, [](Problem &problem) {
        const auto strong = [](int64_t t, int64_t channel) { return -31. - (t * 13 + channel * 7) % 39; };
        Problem everywhere = problem;
        edit_gates(problem, [&](int64_t t, int64_t channel, double g) { return t < 64 ? g : strong(t, channel); });
        check_all_kernels(problem);
        edit_gates(everywhere, [&](int64_t t, int64_t channel, double) { return strong(t, channel); });
        check_all_kernels(everywhere);
    });
}

TEST_CASE("a gate far above 0 on an empty state") {
    for (const double gate : {80., 5000.})
        each_problem(sizes(), has_gate, [&](Problem &problem) {
            INFO("gate " << gate);
            problem.initial_state = false;
            fill(problem);
            edit_gates(problem, [&](int64_t t, int64_t, double g) { return t == 0 ? gate : g; });
            check_all_kernels(problem);
        });
}

TEST_CASE("gates a little above 0 grow the state") {
    each_problem(sizes(), has_gate, [&](Problem &problem) {
        edit_gates(problem, [&](int64_t t, int64_t, double g) { return t % 4 ? g : .3; });
        check_all_kernels(problem);
    });
}

TEST_CASE("one strong gate does not cost the gates after it their precision") {
    for (const double gate : {-2661., -104.})
        for (const int64_t at : {3, 10, 12})  // at the end, inside and at the start of a chunk of four
            each_problem(sizes(1, 63, 2, 4, 37, 40), has_gate, [&](Problem &problem) {
                INFO("gate " << gate << " at token " << at);
                edit_gates(problem, [&](int64_t t, int64_t, double) { return t == at ? gate : -.01; });
                check_tail(problem, at + 1);
            });
}

TEST_CASE("large values that were forgotten leave no rounding behind") {
    each_problem(sizes(1, 64, 2, 2, 37, 40), forgets, [](Problem &problem) {
        const double large = problem.type == Type::f16 ? 1e3 : 1e8;
        edit(problem, "v", [&](const auto &index, double value) { return index[1] < 32 ? large * value : value; });
        edit_gates(problem, [](int64_t t, int64_t, double g) { return t == 32 ? -200 : g; });
        check_tail(problem, 33);
    });
}

TEST_CASE("log gates are natural logarithms everywhere") {
    each_problem(sizes(), has_gate, [](Problem &problem) {
        edit_gates(problem, [](int64_t, int64_t, double) { return -1; });
        check_all_kernels(problem);
    });
}

TEST_CASE("near-parallel unit keys") {
    for (const double beta : {1., 2.})
        each_problem(sizes(1, 100, 2, 4, 64, 40), has_beta, [&](Problem &problem) {
            INFO("beta " << beta);
            edit(problem, "k", [&](const auto &index, double value) {
                return (1 + 1e-3 * value * std::sin(index.back() + 1.)) / 8;  // of 64 channels
            });
            edit(problem, "beta", [&](const auto &, double) { return beta; });
            edit_gates(problem, [](int64_t, int64_t, double g) { return g / 100; });
            check_all_kernels(problem);
        });
}

TEST_CASE("errors of the same key at a thousand tokens do not add up") {
    for (const double beta : {1.99, 2.}) {
        Problem like = sizes(1, 1000, 1, 1, 64, 16);
        each_problem(like, has_beta, [&](Problem &problem) {
            if (problem.type != Type::f32) return;
            edit(problem, "k", [](const auto &index, double) { return std::sin(index.back() * 1.7 + 1) / std::sqrt(32.25); });
            edit(problem, "beta", [&](const auto &, double) { return beta; });
            edit_gates(problem, [](int64_t, int64_t, double) { return 0; });
            check_all_kernels(problem);
        });
    }
}

TEST_CASE("the same key at every token, written with beta 1, holds the last value") {
    each_problem(sizes(1, 66, 1, 2, 60, 37), has_beta, [](Problem &problem) {
        for (const char *name : {"k", "q"})
            edit(problem, name, [](const auto &index, double) { return index.back() == 3 ? 1 : 0; });
        edit(problem, "beta", [](const auto &, double) { return 1; });
        problem.scale = 1;
        const std::vector<double> v = safetensors::values(problem.inputs.at("v"));
        each_kernel(problem, [&](const Kernel &kernel) {
            const double close = problem.type == Type::f32 ? 1e-5 : problem.type == Type::f16 ? 0x1p-10 : 0x1p-7;
            CHECK(oracle::error(array_of(run(problem, kernel)["o"]), {problem.shape("BTGV"), v}) <= close);
        });
    });
}
