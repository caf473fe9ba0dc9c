// What times are held against: the plain loop computes what kernels do, and the work of a call is what one would count by hand.
#include "bench/limits.h"
#include "bench/paired.h"
#include "bench/plain_loop.h"
#include "bench/work.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

using halation::Problem;

namespace {

const halation_row &row_named(const std::string &name) {
    const halation_kernel_table &table = *halation_kernels();
    for (int i = 0; i < table.row_count; i++)
        if (name == table.rows[i].name) return table.rows[i];
    throw std::runtime_error("no row " + name);
}

std::vector<float> copy_of(const bench::Inputs &inputs, const char *wanted) {
    for (const auto &[name, tensor] : inputs.tensors()) {
        if (name != wanted) continue;
        size_t count = 1;
        for (const int64_t extent : tensor.shape()) count *= static_cast<size_t>(extent);
        const auto *data = static_cast<const float *>(tensor.data());
        return {data, data + count};
    }
    return {};
}

double difference(const std::vector<float> &a, const std::vector<float> &b) {
    double squares = 0, norm = 0;
    for (size_t i = 0; i < a.size(); i++) {
        squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
        norm += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(squares / norm);
}

}  // namespace

TEST_CASE("The plain loop of a bench computes what the kernels do") {
    const bench::Sizes sizes{2, 37, 0};
    halation::Context context(1);
    context.add_kernels(*halation_kernels());
    for (const char *name : {"linear", "gated", "gla", "delta", "gated_delta", "kda", "rwkv7"}) {
        INFO(name);
        const halation_row &row = row_named(name);
        const Problem problem(name, 3, 3, 20, 12);
        const bench::Inputs inputs(row, problem, sizes), same(row, problem, sizes);
        halation::Plan(context, problem).run(inputs.tensors());
        const auto plain = bench::plain_loop(row, problem, sizes, same);
        REQUIRE(plain);
        plain();
        CHECK(difference(copy_of(same, "o"), copy_of(inputs, "o")) < 1e-5);
        CHECK(difference(copy_of(same, "final_state"), copy_of(inputs, "final_state")) < 1e-5);
    }
    Problem problem("softmax", 2, 2, 8, 8);
    CHECK_FALSE(bench::plain_loop(row_named("softmax"), problem, sizes, bench::Inputs(row_named("softmax"), problem, sizes)));
    problem = Problem("gated", 1, 2, 8, 8);
    CHECK_FALSE(bench::plain_loop(row_named("gated"), problem, sizes, bench::Inputs(row_named("gated"), problem, sizes)));
}

TEST_CASE("The work of a call") {
    const auto work = [](const char *name, int64_t H, int64_t HV, int64_t K, int64_t V, const bench::Sizes &sizes) {
        return bench::work_of(row_named(name), Problem(name, H, HV, K, V), sizes);
    };
    bench::Work w = work("gated_delta", 2, 4, 8, 16, {3, 5, 0});
    CHECK(w.multiply_adds == 3. * 5 * 4 * 3 * 8 * 16);
    CHECK(w.exps == 3. * 5 * 4);
    CHECK(w.bytes == 4. * (3 * 5 * (2 * 8 + 2 * 8 + 4 * 16 + 4 + 4 + 4 * 16) + 2 * 3 * 4 * 8 * 16));
    CHECK(work("gla_outer", 1, 1, 8, 16, {1, 7, 0}).exps == 7 * (8 + 16));
    CHECK(work("rwkv7", 1, 1, 8, 16, {1, 7, 0}).multiply_adds == 7 * 4 * 8 * 16);
    CHECK(work("rwkv7", 2, 6, 8, 16, {1, 7, 0}).exps == 7 * 2 * 8);  // its gates are those of key heads
    CHECK(work("kda", 2, 6, 8, 16, {1, 7, 0}).exps == 7 * 6 * 8);
    CHECK(work("linear", 1, 1, 8, 16, {1, 7, 0}).exps == 0);
    CHECK(work("ssm", 1, 1, 4, 32, {1, 7, 0}).exps == 7 * 4 * 32);
    w = work("softmax", 2, 2, 8, 16, {1, 3, 10});
    CHECK(w.exps == 2 * (11 + 12 + 13));
    CHECK(w.multiply_adds == 2 * (11 + 12 + 13) * (8 + 16));
    CHECK(work("bidirectional", 1, 1, 8, 16, {1, 7, 0}).multiply_adds == 7 * 2 * 8 * 16);
}

TEST_CASE("Limits are measured, and the largest binds") {
    const bench::Limits limits = bench::measure_limits(halation_kernels()->kernels[0].isa, 1);
    CHECK(limits.multiply_adds_per_second > 1e6);
    CHECK(limits.exps_per_second > 1e5);
    CHECK(limits.exps_per_second < limits.multiply_adds_per_second);
    CHECK(limits.bytes_per_second > 1e6);
    const bench::Limits plain{10, 5, 20};
    CHECK(std::string(bench::floor_of({100, 10, 10}, plain).binding()) == "multiply-adds");
    CHECK(bench::floor_of({100, 10, 10}, plain).seconds() == 10);
    CHECK(std::string(bench::floor_of({10, 10, 10}, plain).binding()) == "exps");
    CHECK(std::string(bench::floor_of({10, 1, 100}, plain).binding()) == "memory");
    CHECK(bench::quantile({3, 1, 2}, 0.5) == 2);
    CHECK(bench::quantile({3, 1, 2, 5, 4}, 0.25) == 2);
    CHECK(bench::thread_count(3) == 3);
    CHECK(bench::thread_count(0) >= 1);
    CHECK(bench::measure_limits(halation_kernels()->kernels[0].isa, 64).multiply_adds_per_second <
          20 * bench::thread_count(0) * limits.multiply_adds_per_second);
}
