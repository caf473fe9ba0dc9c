// 16-bit floats as bits, against Halide's own software conversions.
#include "generators/math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace Halide;

namespace {

uint32_t bits_of_float(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

template<typename Narrow> void check_type(const Type &type) {
    // Every pattern, wide.
    Buffer<uint16_t> patterns(1 << 16);
    for (int i = 0; i < 1 << 16; i++) patterns(i) = static_cast<uint16_t>(i);
    Var x("x");
    Func wide("wide");
    wide(x) = halation::float_of_bits(type, patterns(x));
    const Buffer<float> widened = wide.realize({1 << 16});
    int wrong = 0;
    for (int i = 0; i < 1 << 16; i++) {
        const auto expected = static_cast<float>(Narrow::make_from_bits(static_cast<uint16_t>(i)));
        const bool same = std::isnan(expected) ? std::isnan(widened(i)) : bits_of_float(expected) == bits_of_float(widened(i));
        if (!same && wrong++ == 0) UNSCOPED_INFO(i << " is " << expected << ", got " << widened(i));
    }
    CHECK(wrong == 0);

    // Narrow: each of those, what lies half way to the next, a little beside that, and anything.
    std::vector<float> values;
    for (int i = 0; i < 1 << 16; i++) {
        const auto from = static_cast<float>(Narrow::make_from_bits(static_cast<uint16_t>(i)));
        const auto to = static_cast<float>(Narrow::make_from_bits(static_cast<uint16_t>(i + 1)));
        const float middle = from / 2 + to / 2;
        for (const float value : {from, middle, std::nextafter(middle, from), std::nextafter(middle, to)})
            values.push_back(value);
    }
    std::mt19937 random(1);
    for (int i = 0; i < 1 << 18; i++) {
        const auto bits = static_cast<uint32_t>(random());
        float value;
        std::memcpy(&value, &bits, sizeof value);
        values.push_back(value);
    }
    for (const float value : {65519.996f, 65520.0f, 65536.0f, 3.4028235e38f, INFINITY, NAN, -NAN}) values.push_back(value);
    Buffer<float> floats(values.data(), static_cast<int>(values.size()));
    Func narrow("narrow");
    narrow(x) = halation::bits_of(type, floats(x));
    const Buffer<uint16_t> narrowed = narrow.realize({static_cast<int>(values.size())});
    wrong = 0;
    for (int i = 0; i < static_cast<int>(values.size()); i++) {
        const uint16_t expected = Narrow(values[i]).to_bits();
        const bool same =
            std::isnan(values[i]) ? std::isnan(static_cast<float>(Narrow::make_from_bits(narrowed(i)))) : narrowed(i) == expected;
        if (!same && wrong++ == 0) UNSCOPED_INFO(values[i] << " is " << expected << ", got " << narrowed(i));
    }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("float16 and bfloat16 as bits are those floats, rounded to the nearest even") {
    check_type<float16_t>(Float(16));
    check_type<bfloat16_t>(BFloat(16));
}

TEST_CASE("float32 stays as it is") {
    CHECK(halation::type_of_bits(Float(32)) == Float(32));
    CHECK(halation::type_of_bits(BFloat(16)) == UInt(16));
    const Expr x = Var("x") * 1.0f;
    CHECK(halation::bits_of(Float(32), x).same_as(x));
    CHECK(halation::float_of_bits(Float(32), x).same_as(x));
    CHECK(halation::float_of_bits(Float(16), cast(Float(16), x)).type() == Float(32));
}
