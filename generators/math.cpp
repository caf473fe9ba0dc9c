#include "math.h"

#include <limits>

namespace halation {

using namespace Halide;

namespace {

Expr bits_without_sign(Expr x) {
    return reinterpret<uint32_t>(x) & Internal::make_const(UInt(32), 0x7fffffffu);
}

}  // namespace

Expr not_a_number(Expr x) {
    return bits_without_sign(x) > Internal::make_const(UInt(32), 0x7f800000u);
}

Expr quotient(Expr x, Expr y) {
    return select(bits_without_sign(y) == 0, 0.0f, x / y);
}

// Halide's own conversions make zeros of some NaNs in bfloat16, and infinities of all in float16 where the processor has no
// instruction for it.
Expr narrowed(Type type, Expr x) {
    if (type == Float(16)) return select(not_a_number(x), reinterpret(Float(16), cast<uint16_t>(0x7e00)), cast(type, x));
    if (type != BFloat(16)) return cast(type, x);
    const Expr bits = reinterpret<uint32_t>(x), quiet = (bits >> 16) | 0x40;
    const Expr rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return reinterpret(BFloat(16), cast<uint16_t>(select(not_a_number(x), quiet, rounded)));
}

// 2^n e^r with |r| <= log(2) / 2, e^r = 1 + (r + r^2 p(r)). Everything is strict: the simplifications that Halide allows
// itself on floats would undo the two-part reduction.
Expr natural_exp(Expr x) {
    const float infinity = std::numeric_limits<float>::infinity();
    const Expr bounded = clamp(x, -88.0f, 89.0f);
    const Expr n = round(bounded * 1.44269504f);
    // log(2) in two parts, of which the first times n is exact.
    const Expr r = strict_float((bounded - n * 0.693359375f) - n * -2.12194440e-4f);
    Expr p = 1.0f / 5040;
    for (float coefficient : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2}) p = p * r + coefficient;
    const Expr fraction = strict_float(1.0f + (r + r * r * p));
    // 2^n in two factors, since 2^128 is no float but the product may be.
    const Expr half = cast<int32_t>(n) >> 1, rest = cast<int32_t>(n) - half;
    const auto power = [](Expr k) { return reinterpret<float>((k + 127) << 23); };
    const Expr result = fraction * power(half) * power(rest);
    return select(not_a_number(x), x, x<-87.33654f, 0.0f, x> 88.722839f, infinity, result);
}

Expr saturated(Expr log_decay) {
    return select(not_a_number(log_decay), log_decay, log_decay > 83.1776617f, 83.1776617f, log_decay);
}

// The argument is bounded, not the result: a minimum with a large float may be simplified away.
Expr decay_of(Expr x) {
    return select(not_a_number(x), x, natural_exp(min(x, 88.0f)));
}

// x = 2^n m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1).
Expr natural_log(Expr x) {
    const Expr bits = reinterpret<int32_t>(x);
    const Expr n = (bits - 0x3f3504f3) >> 23;
    const Expr m = reinterpret<float>(bits - (n << 23));
    const Expr s = strict_float((m - 1.0f) / (m + 1.0f)), s2 = s * s;
    Expr p = 2.0f / 11;
    for (float coefficient : {2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3}) p = p * s2 + coefficient;
    const Expr log_m = strict_float(2.0f * s + s * s2 * p);
    return select(not_a_number(x), x, x > 0.0f, strict_float(cast<float>(n) * 0.693147181f + log_m),
                  -std::numeric_limits<float>::infinity());
}

}  // namespace halation
