// Problems drawn at random. HALATION_TEST_SEED=N draws others, HALATION_TEST_COUNT=N that many; a failure names the
// problem's own seed, with which it is drawn again as the first: HALATION_TEST_SEED=that HALATION_TEST_COUNT=1.
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

using namespace kernels;

namespace {

unsigned from_environment(const char *name, unsigned otherwise) {
    const char *text = std::getenv(name);
    return text && *text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

class Draw {
public:
    explicit Draw(unsigned seed) : generator_(seed) {}
    int64_t number(int64_t low, int64_t high) { return low + generator_() % (high - low + 1); }
    // Small ones more often.
    int64_t size(int64_t most) { return number(1, number(1, most)); }
    bool chance(int percent) { return number(1, 100) <= percent; }
    template<typename T> const T &one_of(const std::vector<T> &all) { return all[number(0, all.size() - 1)]; }

private:
    std::mt19937 generator_;
};

constexpr int64_t most_work = 3'000'000;  // elements of state updated by the plain loops

Problem draw_problem(Draw &draw, unsigned seed) {
    Problem problem;
    problem.seed = seed;
    problem.recurrence = draw.one_of(all_recurrences());
    std::tie(problem.type, problem.gate_type) = draw.one_of(all_types());
    problem.K = draw.size(200);
    problem.V = draw.size(200);
    problem.H = draw.size(4);
    problem.HV = problem.H * draw.size(3);
    problem.B = draw.size(3);
    problem.T = std::min(draw.size(400), most_work / (problem.B * problem.HV * problem.K * problem.V));
    problem.heads = draw.chance(50) ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
    problem.before = draw.chance(50) ? draw.size(70) : 0;
    problem.initial_state = draw.chance(70);
    problem.gates = all_gates[draw.number(0, std::size(all_gates) - 1)];
    problem.largest_beta = draw.chance(30) ? 2 : 1;
    problem.beta_per_value = draw.chance(50);
    if (draw.chance(30)) problem.scale = static_cast<float>(draw.number(1, 300)) / 100;
    if (problem.recurrence.row->state_dims && draw.chance(30)) {
        problem.T = std::min<int64_t>(problem.T * problem.B, 400);
        problem.B = 1;
        for (int64_t n = draw.number(0, 4); n > 0; n--) problem.offsets.push_back(draw.number(0, problem.T));
        problem.offsets.push_back(0);
        problem.offsets.push_back(problem.T);
        std::sort(problem.offsets.begin(), problem.offsets.end());
    }
    fill(problem);
    return problem;
}

}  // namespace

TEST_CASE("random problems") {
    const unsigned first = from_environment("HALATION_TEST_SEED", 20250101);
    const unsigned count = from_environment("HALATION_TEST_COUNT", 300);
    std::cout << count << " random problems from seed " << first << std::endl;
    for (unsigned seed = first; seed - first < count; seed++) {
        Draw draw(seed);
        const Problem problem = draw_problem(draw, seed);
        How how;
        how.threads = static_cast<int>(draw.number(1, 3));
        how.meets = draw.chance(70) ? Meets::end : Meets::start;
        how.padded = draw.chance(30);
        how.in_place = draw.chance(40);
        how.final_state = draw.chance(80);
        how.nan_workspace = draw.chance(30);
        std::vector<Kernel> kernels;
        each_kernel(problem, [&](const Kernel &kernel) { kernels.push_back(kernel); });
        if (kernels.empty()) continue;
        const Kernel kernel = draw.one_of(kernels);
        INFO("HALATION_TEST_SEED=" << seed << " HALATION_TEST_COUNT=1: " << problem.text() << ", " << kernel.text());
        check_close(problem, kernel, how);
    }
}
