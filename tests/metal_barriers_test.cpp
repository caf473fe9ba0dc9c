// Whether the emulator's thread orders notice what they are for: kernels of which barriers are left out.
// HALATION_TEST_RECURRENCES=gla,kda,... looks at others than those below. That none of them is one of threads alone, which orders
// no memory in Metal, tests/metal/metal_stdlib sees to: it has no mem_none.
#define CATCH_CONFIG_RUNNER
#include "kernel_device.h"
#include "kernel_run.h"
#include "metal_emulator.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

using namespace kernels;

namespace {

using Lines = std::set<int>;  // of barriers, in the text of a kernel

Results results(const Problem &problem, const Kernel &kernel, const std::string &order, const Lines &left_out) {
    metal_emulator::set_order(metal_emulator::Order::named(order));
    metal_emulator::leave_out_barriers(left_out);
    return run(problem, kernel);
}

bool is_noticed(const Problem &problem, const Kernel &kernel, const Results &sound, const Lines &left_out) {
    for (const char *order : {"forward", "reverse", "1"}) {
        try {
            const Results spoilt = results(problem, kernel, order, left_out);
            for (const auto &[name, tensor] : sound.tensors)
                if (!same_bits(tensor, spoilt.tensors.at(name))) return true;
        } catch (const std::exception &) {  // a fault that was told
            return true;
        }
    }
    return false;
}

Problem problem_of(const Recurrence &recurrence) {
    Problem problem;
    problem.recurrence = recurrence;
    problem.B = 1, problem.T = 21, problem.H = 1, problem.HV = 2, problem.K = 37, problem.V = 45;
    problem.before = 4300;  // more blocks of keys than a cache is shared out in parts
    fill(problem);
    return problem;
}

bool has_kernel(const Problem &problem, const Kernel &kernel) {
    bool has = false;
    each_kernel(problem, [&](const Kernel &found) { has |= found.form == kernel.form; });
    return has;
}

// By recurrence, how many are needed at least in each of its forms.
std::map<std::string, size_t> recurrences() {
    // gated_delta: vectors, sums with the state, values, what is written, and products go from thread to thread; of one token,
    // whose outputs come before its new state, four. ssm: what a chunk reads, sums over groups of elements, outputs. softmax: a
    // slice of queries and keys, maxima of threads and of all, weights. bidirectional: a slice of tokens, and of key channels.
    // In all three, turns of a loop are held back until the one before was read.
    if (!std::getenv("HALATION_TEST_RECURRENCES")) return {{"gated_delta", 4}, {"ssm", 4}, {"softmax", 7}, {"bidirectional", 4}};
    std::istringstream list(std::getenv("HALATION_TEST_RECURRENCES"));
    std::map<std::string, size_t> names;
    for (std::string name; std::getline(list, name, ',');) names[name] = 0;
    return names;
}

}  // namespace

TEST_CASE("a barrier that a kernel lacks is noticed") {
    for (const auto &[name, needed] : recurrences())
        for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE, HALATION_FORM_PARALLEL}) {
            const Problem problem = problem_of(recurrence(name));
            const Kernel kernel{form, "gpu"};
            if (!has_kernel(problem, kernel)) continue;
            INFO(problem.text() << ", " << kernel.text());
            metal_emulator::take_barriers_met();
            const Results sound = results(problem, kernel, "forward", {});
            for (const char *order : {"reverse", "1"}) check_same_bits(results(problem, kernel, order, {}), sound);
            const Lines barriers = metal_emulator::take_barriers_met();
            REQUIRE(barriers.size() > 2);
            // Halide writes one after whatever goes to the memory of a threadgroup, and of several in a row the last is enough.
            // So all are left out that can be, one after the other; each of the others is noticed when it goes, too.
            Lines left_out;
            std::string numbers;
            int number = 0;
            for (const int line : barriers) {
                left_out.insert(line);
                number++;
                if (!is_noticed(problem, kernel, sound, left_out)) continue;
                left_out.erase(line);
                numbers += " " + std::to_string(number - 1);
            }
            std::cout << name << ", " << kernel.text() << ": of " << barriers.size() << " barriers these are needed:" << numbers
                      << std::endl;
            CHECK(barriers.size() - left_out.size() >= needed);
        }
}

int main(int argc, char **argv) {
    test_backend("metal");
    const int failures = Catch::Session().run(argc, argv);
    metal_emulator::leave_out_barriers({});
    test_backend("cpu");
    return failures;
}
