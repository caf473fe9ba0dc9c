// Two generated libraries, a library of the user's own Halide generator with Halide's runtime, and Halide's compiler itself, in
// one program: none finds another's symbols, none is called by another.
#include "halation.hpp"

#include "doubled.h"

#include <Halide.h>
#include <HalideBuffer.h>
#include <HalideRuntime.h>
#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "comba_kernels.h"

namespace {

std::atomic<int> allocations{0}, errors{0};

void *counting_malloc(void *, size_t bytes) {
    allocations++;
    return std::aligned_alloc(128, (bytes + 127) / 128 * 128);
}
void counting_free(void *, void *memory) {
    std::free(memory);
}
void counting_error(void *, const char *) {
    errors++;
}

// Outputs of gated_delta over ones, in either library's context.
std::vector<float> run_halation() {
    const int64_t T = 100, H = 2, D = 24;
    std::vector<float> q(T * H * D, .1f), v(q), g(T * H, -.01f), beta(T * H, .5f), o(q.size());
    halation::Context context(2);
    context.add_kernels(*halation_kernels());
    context.add_kernels(*comba_kernels());
    halation::Plan plan(context, halation::Problem("gated_delta", H, H, D, D));
    plan.run({{"q", {q.data(), {1, T, H, D}}},
              {"k", {q.data(), {1, T, H, D}}},
              {"v", {v.data(), {1, T, H, D}}},
              {"g", {g.data(), {1, T, H}}},
              {"beta", {beta.data(), {1, T, H}}},
              {"o", {o.data(), {1, T, H, D}}}});
    return o;
}

std::vector<float> run_doubled() {
    Halide::Runtime::Buffer<float> input(100), output(100);
    input.fill(3.f);
    REQUIRE(doubled(input, output) == 0);
    return std::vector<float>(output.begin(), output.end());
}

std::vector<float> run_compiled() {
    Halide::Var i;
    Halide::Func f, g;
    f(i) = Halide::cast<float>(i);
    g(i) = f(i) + f(i + 1);
    f.compute_root();
    Halide::Buffer<float> output = g.realize({50});
    return std::vector<float>(output.begin(), output.end());
}

}  // namespace

TEST_CASE("generated libraries, Halide's runtime and Halide itself keep out of each other's way") {
    const std::vector<float> alone = run_halation(), own = run_doubled(), compiled = run_compiled();
    CHECK(own == std::vector<float>(100, 6.f));
    CHECK(compiled[7] == 15.f);

    // Handlers of the user's runtime are not those of our kernels.
    halide_set_custom_malloc(counting_malloc);
    halide_set_custom_free(counting_free);
    halide_set_error_handler(counting_error);
    CHECK(run_halation() == alone);
    CHECK(allocations == 0);
    Halide::Runtime::Buffer<float> input(10), smaller(20);
    CHECK(doubled(input, smaller) != 0);
    CHECK(errors == 1);

    // All at once.
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 2; i++) {
        threads.emplace_back([&] { wrong += run_halation() != alone; });
        threads.emplace_back([&] { wrong += run_doubled() != own; });
        threads.emplace_back([&] { wrong += run_compiled() != compiled; });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK(wrong == 0);
}
