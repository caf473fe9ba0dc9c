// Floats as these kernels need them. A NaN stays one: comparisons of floats may be folded as if there were none, so it is told
// by its bits.
//
// exp and log in float32 to about half a unit in the last place, without bias: an error of the mean decay of 3e-9, as
// Halide's own exp has near zero, adds up to 1e-4 over 65536 tokens.
#ifndef HALATION_GENERATORS_MATH_H
#define HALATION_GENERATORS_MATH_H

#include <Halide.h>

namespace halation {

// e^x. Below the normal floats 0, above them infinity, NaN for NaN.
Halide::Expr natural_exp(Halide::Expr x);

// The logarithm of a decay, at most log(2^120). So a gate far above zero leaves an empty state zero, as infinity would
// not, and there is room for the vector it multiplies; nothing that is still a decay, or a growth anyone could mean, is
// near.
Halide::Expr saturated(Halide::Expr log_decay);

// e^x of a sum of such logarithms, at most the largest float.
Halide::Expr decay_of(Halide::Expr x);
// decay_of(saturated(log_decay)), in fewer instructions; from -87.34 to -87.68 it is below the normal floats.
Halide::Expr saturated_decay(Halide::Expr log_decay);

// The logarithm of a positive, normal x; minus infinity for 0. Relatively precise near 1.
Halide::Expr natural_log(Halide::Expr x);

Halide::Expr not_a_number(Halide::Expr x);

// x / y, 0 where y is 0.
Halide::Expr quotient(Halide::Expr x, Halide::Expr y);

// x as float32, float16 or bfloat16, rounded to nearest.
Halide::Expr narrowed(Halide::Type type, Halide::Expr x);

// The same as bits, and back: for APIs that do not have these types, or not on every device. Float32 stays as it is.
Halide::Type type_of_bits(Halide::Type type);
Halide::Expr bits_of(Halide::Type type, Halide::Expr x);
Halide::Expr float_of_bits(Halide::Type type, Halide::Expr bits);  // or of the float itself

}  // namespace halation
#endif
