// The lab's plain loop over any row, against the loops written by hand.
#include "lab/expression.h"
#include "lab/row_loop.h"

#include <catch2/catch.hpp>
#include <random>

using halation::lab::evaluator_of;

namespace {

struct Sizes {
    int64_t B, T, H, G, K, V;
};

oracle::Array drawn(const std::string &dims, const Sizes &s, double low, double high) {
    static std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(low, high);
    oracle::Array array;
    int64_t count = 1;
    for (const char letter : dims) {
        const int64_t extent = letter == 'B'   ? s.B
                               : letter == 'T' ? s.T
                               : letter == 'H' ? s.H
                               : letter == 'G' ? s.G
                               : letter == 'K' ? s.K
                                               : s.V;
        array.shape.push_back(extent);
        count *= extent;
    }
    for (int64_t i = 0; i < count; i++) array.values.push_back(uniform(random));
    return array;
}

oracle::Inputs inputs_of(const halation::Row &row, const Sizes &sizes, bool with_last_axis) {
    oracle::Inputs inputs;
    inputs.recurrence = row.name;
    for (const halation::RowInput &input : row.inputs) {
        std::string dims;
        for (const char letter : input.dims)
            if (letter != '(' && letter != ')') dims += letter;
        if (dims != input.dims && !with_last_axis) dims.pop_back();
        const bool log_gate = input.name == "g" || input.name == "gv";
        inputs.tensors[input.name] = drawn(dims, sizes, log_gate ? -0.5 : input.name == "gamma" ? 0.8 : -1, log_gate ? 0 : 1);
    }
    inputs.tensors["initial_state"] = drawn("BGKV", sizes, -1, 1);
    if (row.normalized) inputs.tensors["initial_normalizer"] = drawn("BGK", sizes, 1, 2);
    return inputs;
}

double value(const Halide::Expr &e, std::vector<double> inputs = {}) {
    const std::vector<std::string> names = {"x", "y"};
    return evaluator_of<double>(e, names)(inputs);
}

}  // namespace

TEST_CASE("The lab's loop is that of the oracle, for every row of Halation's") {
    for (const halation::Row &row : halation::rows()) {

        for (const bool with_last_axis : {false, true})
            for (const Sizes sizes : {Sizes{2, 9, 2, 6, 5, 3}, Sizes{1, 1, 1, 1, 1, 1}}) {
                INFO(row.name << " V " << sizes.V << (with_last_axis ? " beta per channel" : ""));
                for (const std::string map : {"", "elu+1", "relu", "softmax"}) {
                    if (row.default_feature_map.empty() != map.empty()) continue;
                    oracle::Inputs inputs = inputs_of(row, sizes, with_last_axis);
                    inputs.feature_map = map;
                    const oracle::Outputs expected = oracle::run(inputs), got = halation::lab::run_row(row, inputs);
                    CHECK(oracle::error(got.o, expected.o) < 1e-12);
                    CHECK(oracle::error(got.final_state, expected.final_state) < 1e-12);
                    if (row.normalized) CHECK(oracle::error(got.final_normalizer, expected.final_normalizer) < 1e-12);
                    const oracle::Outputs in_float = halation::lab::run_row_in_float(row, inputs);
                    CHECK(oracle::error(in_float.o, expected.o) < 1e-3);
                    if (sizes.T > 1) CHECK(oracle::error(in_float.o, expected.o) > 0);  // that it is in float at all
                }
            }
    }
}

TEST_CASE("An optional input that is left out has its default") {
    const halation::Row &row = halation::row_named("retention");
    oracle::Inputs inputs = inputs_of(row, {1, 12, 2, 4, 3, 2}, false);
    inputs.tensors.erase("gamma");
    CHECK(oracle::error(halation::lab::run_row(row, inputs).o, oracle::run(inputs).o) < 1e-12);
    inputs.tensors.erase("k");
    CHECK_THROWS_WITH(halation::lab::run_row(row, inputs), "the input k is missing");
}

TEST_CASE("Expressions of a row are evaluated as Halide means them") {
    const Halide::Expr x = Halide::Internal::Variable::make(Halide::Float(32), "x"),
                       y = Halide::Internal::Variable::make(Halide::Float(32), "y");
    CHECK(value(x * y - 2, {3, 5}) == 13);
    CHECK(value(x / y, {3, 2}) == 1.5);
    CHECK(value(select(x > y, x, y), {3, 5}) == 5);
    CHECK(value(select(x >= y && !(x == y), 1.0f, 2.0f), {5, 5}) == 2);
    CHECK(value(max(x, y) + min(x, y), {3, 5}) == 8);
    CHECK(value(exp(x), {1}) == Approx(std::exp(1.0)).epsilon(1e-14));
    CHECK(value(log(x) + sqrt(y), {2, 9}) == Approx(std::log(2.0) + 3).epsilon(1e-14));
    CHECK(value(pow(x, y), {2, 10}) == 1024);
    CHECK(value(tanh(x), {0.5}) == Approx(std::tanh(0.5)).epsilon(1e-14));
    CHECK(value(abs(-x), {2}) == 2);
    CHECK(value(Halide::cast<float>(Halide::cast<int>(x)), {-2.7}) == -2);
    CHECK(value(Halide::cast<float>(Halide::cast<int>(x) / 2), {-3}) == -2);  // Halide rounds down
    CHECK(value(Halide::Internal::Let::make("a", x + 1, Halide::Internal::Variable::make(Halide::Float(32), "a") * 2), {3}) == 8);
    CHECK(value(1 / (1 + exp(-x)), {0}) == 0.5);
    CHECK(value(strict_float(x + y * 2 - 1), {3, 4}) == 10);
    CHECK(value(strict_float(select(x < y, max(x, y) / 2, x)), {3, 4}) == 2);
    const Halide::Expr i = Halide::cast<int>(x), j = Halide::cast<int>(y);
    for (const double a : {-7., 7.})
        for (const double b : {-3., 3., 0.}) {  // Halide's remainder is never negative
            const double remainder = b == 0 ? 0 : a - b * (b > 0 ? std::floor(a / b) : std::ceil(a / b));
            CHECK(value(Halide::cast<float>(i % j), {a, b}) == remainder);
            CHECK(value(Halide::cast<float>(i / j), {a, b}) == (b == 0 ? 0 : (a - remainder) / b));
        }
    const Halide::Expr a = Halide::Internal::Variable::make(Halide::Float(32), "a");
    CHECK(value(Halide::Internal::Let::make("a", x, Halide::Internal::Let::make("a", a + 1, a) + a), {3}) == 7);
    CHECK_THROWS_WITH(value(Halide::Internal::Variable::make(Halide::Float(32), "z")),
                      "the plain loop does not know this part of the row: (float32)z");
    CHECK(value(erf(x), {1}) == Approx(std::erf(1.0)).epsilon(1e-5));  // Halide's own polynomial
    const Halide::Expr mystery =
        Halide::Internal::Call::make(Halide::Float(32), "mystery", {x}, Halide::Internal::Call::PureExtern);
    CHECK_THROWS_WITH(value(mystery, {1}), Catch::Contains("mystery"));
}
