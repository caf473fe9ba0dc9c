// What may not change results: the form, where a sequence is split, threads, batches, places, what is in scratch memory.
#include "kernel_device.h"
#include "kernel_run.h"

#include <catch2/catch.hpp>

using namespace kernels;

namespace {

// Sizes are no multiples of anything.
Problem sizes(int64_t B, int64_t T, int64_t H = 2, int64_t HV = 4, int64_t K = 21, int64_t V = 37) {
    Problem problem;
    problem.B = B, problem.T = T, problem.H = H, problem.HV = HV, problem.K = K, problem.V = V;
    problem.before = 5;
    return problem;
}

}  // namespace

TEST_CASE("forms agree with each other") {
    each_problem(sizes(1, 83), any, [](const Problem &problem) {
        const auto bounds = expected(problem);
        std::vector<Results> all;
        each_kernel(problem, [&](const Kernel &kernel) {
            all.push_back(run(problem, kernel));
            check_agree(all.back(), all.front(), bounds);
        });
    });
}

TEST_CASE("a prefill is as many decode steps") {
    const int64_t T = 26;
    each_problem(sizes(2, T), has_state, [&](const Problem &problem) {
        std::map<std::string, Expected> bounds;
        std::map<std::string, Results> decoded;  // by ISA
        each_kernel(problem, [&](const Kernel &kernel) {
            if (kernel.form == HALATION_FORM_RECURRENT) {
                How in_place;
                in_place.in_place = true;
                Problem step = cut(problem, 0, 1);
                Results all = run(step, kernel, in_place);
                for (int64_t t = 1; t < T; t++) {
                    step = cut(problem, t, t + 1);
                    start_from(step, all);
                    all = joined(all, run(step, kernel, in_place));
                }
                check_same_bits(run(problem, kernel), all);
                decoded[kernel.isa] = all;
                return;
            }
            if (bounds.empty()) bounds = expected(problem);
            if (decoded.count(kernel.isa)) check_agree(run(problem, kernel), decoded.at(kernel.isa), bounds);
        });
    });
}

TEST_CASE("a sequence may be split anywhere") {
    const int64_t T = 135;
    each_problem(sizes(2, T), has_state, [&](const Problem &problem) {
        std::map<std::string, Expected> bounds = expected(problem);
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results whole = run(problem, kernel);
            const int64_t chunk = whole.choice.chunk;
            for (const int64_t at : {int64_t(0), int64_t(1), int64_t(7), 2 * chunk, int64_t(64), int64_t(131), T}) {
                INFO("split at " << at);
                const Results first = run(cut(problem, 0, at), kernel);
                Problem rest = cut(problem, at, T);
                start_from(rest, first);
                const Results both = joined(first, run(rest, kernel));
                const bool whole_chunks = chunk > 0 ? at % chunk == 0 : at == 0;
                if (whole_chunks || at == T)
                    check_same_bits(both, whole);
                else
                    check_agree(both, whole, bounds);
            }
        });
    });
}

TEST_CASE("the state may be updated in place") {
    each_problem(sizes(2, 23), has_state, [](const Problem &problem) {
        for (const int64_t T : {int64_t(1), problem.T}) {
            const Problem shorter = cut(problem, 0, T);
            each_kernel(shorter, [&](const Kernel &kernel) {
                How in_place;
                in_place.in_place = true;
                check_same_bits(run(shorter, kernel, in_place), run(shorter, kernel));
            });
        }
    });
}

TEST_CASE("no state is a state of zeros") {
    each_problem(sizes(2, 11), has_state, [](const Problem &problem) {
        Problem none = problem, zero = problem;
        none.initial_state = false;
        fill(none);
        for (auto &[name, tensor] : zero.inputs)
            if (name.rfind("initial_", 0) == 0) std::fill(tensor.data.begin(), tensor.data.end(), uint8_t(0));
        each_kernel(problem, [&](const Kernel &kernel) { check_same_bits(run(none, kernel), run(zero, kernel)); });
    });
}

TEST_CASE("any number of threads gives the same bits") {
    if (on_device()) return;
    const auto compare = [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results one = run(problem, kernel);
            for (const int threads : {2, 3, 7}) {
                How how;
                how.threads = threads;
                check_same_bits(run(problem, kernel, how), one);
            }
        });
    };
    each_problem(sizes(3, 65, 2, 6, 48, 100), any, compare);  // shared out by sequence and head
    each_problem(sizes(1, 65, 1, 1, 64, 200), any, compare);  // and by value channel
}

TEST_CASE("a sequence is the same alone and in a batch") {
    each_problem(sizes(3, 18), any, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results all = run(problem, kernel);
            for (int64_t b = 0; b < 3; b++) {
                const Results one = run(alone(problem, b), kernel);
                for (const auto &[name, tensor] : one.tensors) {
                    INFO("sequence " << b << ": " << name);
                    CHECK(same_bits(tensor, row_of(all[name], b)));
                }
            }
        });
    });
}

TEST_CASE("strides, places and what lies around the tensors change nothing") {
    // Key channels that fill no vector: what follows them is NaN, or a page that may not be read.
    const std::vector<int64_t> all = {60, 100, 48, 1}, few = {48, 1};  // some drivers compile anew for each, for seconds
    for (const int64_t K : on_device() ? few : all)
        each_problem(sizes(2, 9, 2, 4, K), any, [](const Problem &problem) {
            each_kernel(problem, [&](const Kernel &kernel) {
                const Results compact = run(problem, kernel);
                for (const Meets meets : {Meets::end, Meets::start})
                    for (const bool padded : {false, true}) {
                        How how;
                        how.meets = meets;
                        how.padded = padded;
                        check_same_bits(run(problem, kernel, how), compact);
                    }
            });
        });
}

TEST_CASE("scratch memory may hold anything, and final states need not be wanted") {
    each_problem(sizes(2, 70), any, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results usual = run(problem, kernel);
            How how;
            how.nan_workspace = true;
            check_same_bits(run(problem, kernel, how), usual);
            how.final_state = false;
            check_same_bits(run(problem, kernel, how), usual);
            how.nan_workspace = false;
            check_same_bits(run(problem, kernel, how), usual);
        });
    });
}
