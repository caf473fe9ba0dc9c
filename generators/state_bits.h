// States that callers may store as bfloat16. Beside the initial and the final state of float32 a kernel of a GPU has both as
// 16-bit integers: the same rows, of the same strides. Scalars say which of the two is there, so that one kernel serves both, and
// the algorithm knows float32 only.
#ifndef HALATION_GENERATORS_STATE_BITS_H
#define HALATION_GENERATORS_STATE_BITS_H

#include <Halide.h>

#include <string>

namespace halation {

struct StateBits {
    std::string initial_state, initial_state_bits;  // names of the inputs
    std::string final_state, final_state_bits;      // and of the outputs' Funcs
    Halide::Expr reads_bits, writes_bits;           // int32; undefined: there is only float32
};

// Code that loads the initial state, or stores the final one, and what does so in bfloat16 instead, rounded to nearest: one or
// the other runs. Throws Halide::CompileError where nothing loads or stores it: bits would be taken for floats.
Halide::Internal::Stmt read_either(const Halide::Internal::Stmt &loads, const StateBits &bits);
Halide::Internal::Stmt write_either(const Halide::Internal::Stmt &stores, const StateBits &bits);

}  // namespace halation
#endif
