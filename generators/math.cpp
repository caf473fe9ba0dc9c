#include "math.h"

#include <limits>

namespace halation {

using namespace Halide;

namespace {

Expr bits_without_sign(Expr x) {
    return reinterpret<uint32_t>(x) & Internal::make_const(UInt(32), 0x7fffffffu);
}

// |r| <= log(2) / 2: e^r = 1 + r + r^2 q(r), q by minimax of the relative error (3e-9). The last step adds 1, so that only one
// rounding counts.
Expr polynomial_of_exp(const Expr &r) {
    Expr p = 0.0013814544f;
    for (float coefficient : {0.008368711f, 0.041668389f, 0.166665211f, 0.49999994f, 1.0f, 1.0f}) p = p * r + coefficient;
    return p;
}

// e^x up to 128 log(2), the largest that is a float; 0 below the normal floats. 2^n e^r with |r| <= log(2) / 2; 2^n is added to
// the exponent, of a float that is 1 or more where n is least and less where n is 128.
//
// Sixteen instructions where there are fused multiply-adds, which LLVM makes of these; only the bound must not be taken for one
// that may lose a NaN. log(2) in one part: as a float it is 2e-9 too large, and a product with n is exact in a multiply-add.
Expr exp_of_float(Expr x) {
    const Expr least = Internal::make_const(Float(32), -87.33654f);
    const Expr bounded = strict_float(select(x < least, least, x));
    const Expr n = round(bounded * 1.44269504f), r = bounded - n * 0.693147182f;
    const Expr result = reinterpret<float>(reinterpret<int32_t>(polynomial_of_exp(r)) + (cast<int32_t>(n) << 23));
    return select(x < least, 0.0f, result);
}

Expr bfloat16_bits(Expr x) {
    const Expr bits = reinterpret<uint32_t>(x), quiet = (bits >> 16) | 0x40;
    const Expr rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return cast<uint16_t>(select(not_a_number(x), quiet, rounded));
}

// 2^-14 is the least normal float16; below it a unit of the result is 2^-24. From 65520 on the nearest is infinity.
Expr float16_bits(Expr x) {
    const auto bits = [](uint32_t value) { return Internal::make_const(UInt(32), value); };
    const Expr all = reinterpret<uint32_t>(x), size = bits_without_sign(x);
    const Expr normal = (size - bits(112u << 23) + bits(0xfff) + ((size >> 13) & 1)) >> 13;
    const Expr subnormal = cast<uint32_t>(round(reinterpret<float>(min(size, bits(0x38800000u))) * 16777216.0f));
    const Expr result = select(size > bits(0x7f800000u), bits(0x7e00), size >= bits(0x477ff000u), bits(0x7c00),
                               size < bits(0x38800000u), subnormal, normal);
    return cast<uint16_t>(((all >> 16) & 0x8000) | result);
}

Expr float_of_float16_bits(Expr bits) {
    const auto constant = [](uint32_t value) { return Internal::make_const(UInt(32), value); };
    const Expr sign = (bits & 0x8000) << 16, exponent = bits & 0x7c00, rest = (bits & 0x7fff) << 13;
    const Expr subnormal = reinterpret<uint32_t>(cast<float>(bits & 0x3ff) * 5.9604644775390625e-8f);
    const Expr size =
        select(exponent == 0, subnormal, exponent == 0x7c00, rest + constant(224u << 23), rest + constant(112u << 23));
    return reinterpret<float>(sign | size);
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
    return type == BFloat(16) ? reinterpret(BFloat(16), bfloat16_bits(x)) : cast(type, x);
}

Type type_of_bits(Type type) {
    return type.bits() == 16 ? UInt(16) : type;
}

Expr bits_of(Type type, Expr x) {
    return type == BFloat(16) ? bfloat16_bits(x) : type == Float(16) ? float16_bits(x) : x;
}

Expr float_of_bits(Type type, Expr bits) {
    if (bits.type() != UInt(16)) return cast<float>(bits);
    const Expr wide = cast<uint32_t>(bits);
    return type == BFloat(16) ? reinterpret<float>(wide << 16) : float_of_float16_bits(wide);
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

// e^x as in exp_of_float(), in fewer instructions: the argument has a bound above, so that 2^n is a float and a NaN stays one
// throughout. With 1.5 * 2^23 added, the last bits of a float are the nearest integer n; a processor of CUDA rounds and converts
// at an eighth of the rate at which it adds. At the bound below n is -127, for which 2^n comes out as 0.
Expr saturated_decay(Expr log_decay) {
    const auto constant = [](uint32_t value) { return Internal::make_const(UInt(32), value); };
    const Expr least = Internal::make_const(Float(32), -88.0f), shift = Internal::make_const(Float(32), 12582912.0f);
    const Expr above = saturated(log_decay), x = strict_float(select(above < least, least, above));
    const Expr shifted = strict_float(x * 1.44269504f + shift), n = strict_float(shifted - shift);
    const Expr power = reinterpret<float>((reinterpret<uint32_t>(shifted) << 23) + constant(127u << 23));
    return polynomial_of_exp(x - n * 0.693147182f) * power;
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
