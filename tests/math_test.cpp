// The decay of ssm and hgrn (saturated_decay() in generators/math.h), against double.
#include "generators/math.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace Halide;

namespace {

std::vector<float> decays(std::vector<float> logs) {
    Buffer<float> given(logs.data(), static_cast<int>(logs.size()));
    const Var x("x");
    Func decay("decay");
    decay(x) = halation::saturated_decay(given(x));
    const Buffer<float> result = decay.realize({given.width()});
    return {result.begin(), result.end()};
}

std::vector<float> between(float first, float last, int count) {
    std::vector<float> values;
    for (int i = 0; i <= count; i++) values.push_back(first + (last - first) * static_cast<float>(i) / static_cast<float>(count));
    return values;
}

constexpr float infinity = std::numeric_limits<float>::infinity(), least_normal = std::numeric_limits<float>::min();

}  // namespace

TEST_CASE("saturated decay: precise where the result is a normal float") {
    std::vector<float> logs = between(-87.33f, 83.17f, 1 << 20);
    for (float x = 1e-30f; x < 1; x *= 1.1f) logs.push_back(x), logs.push_back(-x);
    const std::vector<float> got = decays(logs);
    double largest = 0;
    for (size_t i = 0; i < logs.size(); i++) {
        // Without fused multiply-adds the rest of the argument, next to a multiple of log(2), has the argument's own rounding.
        const bool fused = get_host_target().has_feature(Target::FMA);
        const double wanted = std::exp(double(logs[i])), allowed = 5e-7 + (fused ? 0 : std::abs(double(logs[i])) * 0x1p-24);
        largest = std::max(largest, std::abs(got[i] / wanted - 1) / allowed);
    }
    CHECK(largest <= 1);
    CHECK(decays({0.0f, -0.0f}) == std::vector<float>{1, 1});
}

TEST_CASE("saturated decay: below the normal floats it goes to 0, and stays there") {
    std::vector<float> logs = between(-87, -89, 1 << 16);
    for (const float x : {-100.0f, -104.0f, -2661.0f, -1e10f, -3.4e38f, -infinity}) logs.push_back(x);
    const std::vector<float> got = decays(logs);
    for (size_t i = 0; i < logs.size(); i++) {
        INFO("of " << logs[i] << ": " << got[i]);
        // Which of two neighbours is larger may be a matter of rounding.
        if (i > 0) REQUIRE(got[i] <= got[i - 1] * 1.000001f);
        if (logs[i] < -87.69f) REQUIRE((got[i] == 0 && !std::signbit(got[i])));
        // Of what is not normal: 0 where a processor has no such floats, or it up to the last bit of those.
        if (logs[i] < -87.34f && got[i] != 0)
            REQUIRE(std::abs(got[i] - std::exp(double(logs[i]))) <= double(least_normal) * 0x1p-20);
    }
}

TEST_CASE("saturated decay: bounded above, and NaN stays NaN") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> got = decays({83.1776617f, 84, 89, 5000, 3.4e38f, infinity});
    CHECK(got[0] == Approx(std::exp(double(83.1776617f))).epsilon(5e-7));
    for (const float value : got) CHECK(value == got[0]);
    for (const float value : decays({nan, -nan, std::nanf("1"), -std::nanf("77")})) CHECK(std::isnan(value));
}
