// Thousands of sequences: then a block serves several of ssm, one after the other (ScanTile::sequences in schedules/machines.h).
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace kernels;

namespace {

constexpr int64_t count = 3101;
const std::vector<int64_t> some = {1, 999, count - 1};

// Sequences of none, one and two tokens, and a few long ones; more blocks of threads than a device has at once. Each third starts
// from nothing.
Problem sequences(int64_t N) {
    Problem problem;
    problem.K = N, problem.V = 33;
    problem.offsets = {0};
    for (int64_t n = 0; n < count; n++) problem.offsets.push_back(problem.offsets.back() + (n % 1000 == 999 ? 40 : n * 7 % 3));
    problem.T = problem.offsets.back();
    return problem;
}
bool from_nothing(int64_t n) {
    return n % 5 == 3;
}
// Whether it is left out: its outputs are 0, its state is not written.
bool is_skipped(int64_t n) {
    return n % 11 == 6;
}

// Of ssm with so many state elements, and of hgrn, which has one, if N is 16; of float32: which block a sequence goes into is by
// number.
void each_of(int64_t N, const std::function<void(const Problem &)> &body) {
    for (const std::string name : {"ssm", "hgrn"}) {
        if (!exists(name) || (name == "hgrn" && N != 16)) continue;
        Problem problem = sequences(N);
        problem.recurrence = recurrence(name);
        fill(problem);
        edit(problem, "initial_state", [](const auto &index, double value) { return from_nothing(index[0]) ? 0 : value; });
        body(problem);
    }
}

// Row `from` of a state to row `to` of another.
void copy_row(const Tensor &state, int64_t from, Tensor *other, int64_t to) {
    const auto bytes = static_cast<int64_t>(state.data.size()) / state.shape[0];
    std::copy_n(state.data.begin() + from * bytes, bytes, other->data.begin() + to * bytes);
}
Tensor pool_of_nan(const Tensor &state, int64_t rows) {
    Tensor pool = state;
    pool.data.assign(pool.data.size() / static_cast<size_t>(pool.shape[0]) * static_cast<size_t>(rows), 0xff);
    pool.shape[0] = rows;
    return pool;
}

}  // namespace

TEST_CASE("thousands of sequences are as the plain loop has them, and each as alone") {
    for (const int64_t N : {16, 5})
        each_of(N, [](const Problem &problem) {
            const auto wanted = expected(problem);
            for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT}) {
                const Kernel kernel{form, ""};
                INFO(problem.text() << ", " << kernel.text());
                const Results all = run(problem, kernel);
                check_close(all, wanted);
                for (const int64_t n : some) {
                    INFO("sequence " << n);
                    const Results one = run(alone(problem, n), kernel);
                    const auto at = problem.offsets.begin() + n;
                    CHECK(same_bits(cut_tokens(all["o"], at[0], at[1]), one["o"]));
                    CHECK(same_bits(row_of(all["final_state"], n), one["final_state"]));
                }
            }
        });
}

TEST_CASE("thousands of sequences with states in a pool, in place and elsewhere, some from nothing, some left out") {
    const int64_t rows = count + 10;
    const auto slot = [&](int64_t n) { return n * 1009 % rows; };
    How how;
    how.slots = rows;
    for (int64_t n = 0; n < count; n++) {
        how.read_slots.push_back(slot(n));
        how.write_slots.push_back(is_skipped(n) ? -1 : slot(n));
        how.has_initial_state.push_back(!from_nothing(n));
    }
    each_of(16, [&](const Problem &problem) {
        const Tensor &states = problem.inputs.at("initial_state");
        Problem pooled = problem;
        Tensor &pool = pooled.inputs["initial_state"] = pool_of_nan(states, rows);
        for (int64_t n = 0; n < count; n++)
            if (!from_nothing(n)) copy_row(states, n, &pool, slot(n));
        for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT}) {
            const Kernel kernel{form, ""};
            Results wanted = run(problem, kernel);
            Tensor &o = wanted.tensors["o"];
            const auto token_bytes = static_cast<int64_t>(o.data.size()) / problem.T;
            for (int64_t n = 0; n < count; n++)
                if (is_skipped(n))
                    std::fill(o.data.begin() + problem.offsets[static_cast<size_t>(n)] * token_bytes,
                              o.data.begin() + problem.offsets[static_cast<size_t>(n) + 1] * token_bytes, 0);
            for (const bool in_place : {true, false}) {
                INFO(problem.text() << ", " << kernel.text() << (in_place ? ", in place" : ", elsewhere"));
                Tensor after = in_place ? pool : pool_of_nan(states, rows);
                for (int64_t n = 0; n < count; n++)
                    if (!is_skipped(n)) copy_row(wanted["final_state"], n, &after, slot(n));
                how.in_place = in_place;
                const Results results = run(pooled, kernel, how);
                CHECK(same_bits(results["o"], o));
                CHECK(same_bits(results["final_state"], after));
            }
        }
    });
}

TEST_CASE("thousands of sequences with states of bfloat16") {
    each_of(16, [](const Problem &given) {
        const auto rounded = [](const Tensor &state) {
            return safetensors::tensor(Type::bf16, state.shape, safetensors::values(state));
        };
        Problem problem = given, stored = given;
        stored.state_type = Type::bf16;
        stored.inputs["initial_state"] = rounded(given.inputs.at("initial_state"));
        problem.inputs["initial_state"] = safetensors::tensor(Type::f32, given.inputs.at("initial_state").shape,
                                                              safetensors::values(stored.inputs.at("initial_state")));
        const Kernel kernel{HALATION_FORM_RECURRENT, ""};
        INFO(problem.text() << ", " << kernel.text());
        const Results exact = run(problem, kernel);
        for (const bool in_place : {true, false}) {
            How how;
            how.in_place = in_place;
            const Results results = run(stored, kernel, how);
            CHECK(same_bits(results["o"], exact["o"]));
            CHECK(same_bits(results["final_state"], rounded(exact["final_state"])));
        }
    });
}
