// Whether the emulator's thread orders notice what they are for: kernels of which barriers are taken away.
// HALATION_TEST_RECURRENCES=gla,kda,... looks at others than gated_delta.
#define CATCH_CONFIG_RUNNER
#include "kernel_device.h"
#include "kernel_run.h"
#include "metal_emulator.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <set>
#include <sstream>

using namespace kernels;

namespace {

size_t count_of_barriers = 0;  // in the code that was loaded last

// Which barriers are taken away, counted from 0.
using Missing = std::set<size_t>;

std::string without_barriers(std::string text, const Missing &missing) {
    count_of_barriers = 0;
    for (size_t at = 0; (at = text.find("threadgroup_barrier(", at)) != std::string::npos;)
        if (missing.count(count_of_barriers++))
            text.erase(at, text.find(';', at) - at);
        else
            at++;
    return text;
}

using Edit = std::function<std::string(std::string)>;

Results results(const Problem &problem, const Kernel &kernel, const std::string &order, const Edit &edit) {
    metal_emulator::set_order(metal_emulator::Order::named(order));
    metal_emulator::set_edit(edit);
    test_backend("metal");  // a device that has loaded nothing yet
    return run(problem, kernel);
}

Edit taking_away(const Missing &missing) {
    return [missing](const std::string &text) { return without_barriers(text, missing); };
}

bool is_noticed(const Problem &problem, const Kernel &kernel, const Results &sound, const Missing &missing) {
    for (const char *order : {"forward", "reverse", "1"}) {
        try {
            const Results spoilt = results(problem, kernel, order, taking_away(missing));
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
    fill(problem);
    return problem;
}

std::vector<std::string> recurrences() {
    const char *given = std::getenv("HALATION_TEST_RECURRENCES");
    std::istringstream list(given ? given : "gated_delta");
    std::vector<std::string> names;
    for (std::string name; std::getline(list, name, ',');) names.push_back(name);
    return names;
}

}  // namespace

TEST_CASE("a barrier that a kernel lacks is noticed") {
    for (const std::string &name : recurrences())
        for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
            const Problem problem = problem_of(recurrence(name));
            const Kernel kernel{form, "gpu"};
            INFO(problem.text() << ", " << kernel.text());
            const Results sound = results(problem, kernel, "forward", taking_away({}));
            for (const char *order : {"reverse", "1"}) check_same_bits(results(problem, kernel, order, taking_away({})), sound);
            const size_t count = count_of_barriers;
            REQUIRE(count > 2);
            // Halide writes one after whatever goes to the memory of a threadgroup, and of several in a row the last is enough.
            // So all are taken away that can be, one after the other; each of those that are left is noticed when it goes, too.
            Missing missing;
            std::string left;
            for (size_t next = 0; next < count; next++) {
                missing.insert(next);
                if (!is_noticed(problem, kernel, sound, missing)) continue;
                missing.erase(next);
                left += " " + std::to_string(next);
            }
            std::cout << name << ", " << kernel.text() << ": of " << count << " barriers these are needed:" << left << std::endl;
            // Vectors, sums with the state, values, what is written, and products or sums for the output go from thread to
            // thread.
            CHECK(count - missing.size() >= 5);
        }
}

// Metal orders the threads at such a barrier, but not what they have written.
TEST_CASE("nothing is read that only a barrier without memory lies before") {
    const auto edit = [](std::string text) {
        const std::string barrier = "threadgroup_barrier(mem_flags::mem_none);";
        for (size_t at = 0; (at = text.find(barrier, at)) != std::string::npos;) text.erase(at, barrier.size());
        return text;
    };
    for (const Recurrence &recurrence : all_recurrences())
        for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
            // There it holds the next chunk's writes back until this one's outputs are read, which an order of threads is enough
            // for.
            if (recurrence.row->normalizer_dims && form == HALATION_FORM_CHUNKWISE) continue;
            const Problem problem = problem_of(recurrence);
            const Kernel kernel{form, "gpu"};
            INFO(problem.text() << ", " << kernel.text());
            const Results sound = results(problem, kernel, "forward", nullptr);
            for (const char *order : {"forward", "reverse", "1"}) check_same_bits(results(problem, kernel, order, edit), sound);
        }
}

int main(int argc, char **argv) {
    test_backend("metal");
    const int failures = Catch::Session().run(argc, argv);
    metal_emulator::set_edit(nullptr);
    test_backend("cpu");
    return failures;
}
