#include "math.h"

#include <limits>

namespace halation {

using namespace Halide;

namespace {

Expr bits_without_sign(Expr x) {
    return reinterpret<uint32_t>(x) & Internal::make_const(UInt(32), 0x7fffffffu);
}

// e^x up to 128 log(2), the largest that is a float; 0 below the normal floats. 2^n e^r with |r| <= log(2) / 2; 2^n is added to
// the exponent, of a float that is 1 or more where n is least and less where n is 128.
//
// Sixteen instructions where there are fused multiply-adds, which LLVM makes of these; only the bound must not be taken for one
// that may lose a NaN. log(2) in one part: as a float it is 2e-9 too large, and a product with n is exact in a multiply-add.
// e^r = 1 + r + r^2 q(r), q by minimax of the relative error (3e-9). The last step adds 1, so that only one rounding counts.
Expr exp_of_float(Expr x) {
    const Expr least = Internal::make_const(Float(32), -87.33654f);
    const Expr bounded = strict_float(select(x < least, least, x));
    const Expr n = round(bounded * 1.44269504f), r = bounded - n * 0.693147182f;
    Expr p = 0.0013814544f;
    for (float coefficient : {0.008368711f, 0.041668389f, 0.166665211f, 0.49999994f, 1.0f, 1.0f}) p = p * r + coefficient;
    const Expr result = reinterpret<float>(reinterpret<int32_t>(p) + (cast<int32_t>(n) << 23));
    return select(x < least, 0.0f, result);
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

Expr natural_exp(Expr x) {
    return select(not_a_number(x), x, x > 88.722839f, std::numeric_limits<float>::infinity(), exp_of_float(x));
}

Expr saturated(Expr log_decay) {
    const Expr most = Internal::make_const(Float(32), 83.1776617f);
    return strict_float(select(log_decay > most, most, log_decay));
}

// The argument is bounded, not the result: a minimum with a large float may be simplified away.
Expr decay_of(Expr x) {
    return select(not_a_number(x), x, exp_of_float(min(x, 88.0f)));
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
