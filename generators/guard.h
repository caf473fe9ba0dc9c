// Loads that never leave a buffer. The last vector of a row may reach past its end: its lanes there must not be read.
//
//     guarded(inside, load)      the load where `inside` holds, 0 elsewhere
//
// A pure extern call that the lowering pass below turns into a predicated load. Clamping the coordinate instead would turn
// every vector load at the end of a row into a gather: decoding at K 37, V 41 took 3.4 times as long (gated, AVX-512, Zen 5).
#ifndef HALATION_GENERATORS_GUARD_H
#define HALATION_GENERATORS_GUARD_H

#include <Halide.h>

namespace halation {

// `load` is one load from an input, whose coordinates come from within().
Halide::Expr guarded(Halide::Expr inside, Halide::Expr load);

// A channel as a coordinate: promised to lie in [0, extent), which guarded() keeps.
Halide::Expr within(Halide::Expr channel, Halide::Expr extent);

// Throws Halide::CompileError if an earlier pass has moved a load out of its guard.
Halide::Internal::IRMutator *make_guard_pass();

}  // namespace halation
#endif
