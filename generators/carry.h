// The state goes round the chunk loop. Halide's Funcs are pure in the chunk c, so nothing in the algorithm can say
// that the state before chunk c + 1 is the state after chunk c. It is written with markers, pure extern calls
// that the lowering pass below resolves:
//
//     state_before(S0, v, d)            what SB(v,d,c,h) is: the state before chunk c, S0 before the first
//     state_after(new, v, d, order...)  what S(v,d,c,h) is: `new`, once everything in `order` has been computed
//     copy_out(x, point, inside)        x, stored to an output at `point` where `inside`; that of S after the last chunk
//     copy_out_too(x, point, inside)    the same, but x is stored where it belongs as well (carry_registers.h only)
//     in_order(x, order...)             x, once everything in `order` has been computed
//     last_chunk(c, last)               whether c is the last chunk, of sequences that have chunks of their own (GPUs only)
//
// The pass lets S write into the storage of SB, so that the next chunk finds it there, runs SB's own producer at the
// first chunk only, and the copy to the output at the last chunk only. Where there is one chunk only, SB and S are
// inlined: the markers resolve to their first argument and the caller's state is updated in place.
#ifndef HALATION_GENERATORS_CARRY_H
#define HALATION_GENERATORS_CARRY_H

#include <Halide.h>

#include <map>
#include <string>
#include <vector>

namespace halation {

Halide::Expr mark_state_before(Halide::Expr value, Halide::Expr v, Halide::Expr d);
Halide::Expr mark_state_after(Halide::Expr value, Halide::Expr v, Halide::Expr d, const std::vector<Halide::Expr> &order);
// `too`: copy_out_too.
Halide::Expr mark_copy_out(Halide::Expr value, const std::vector<Halide::Expr> &point, Halide::Expr inside, bool too = false);
Halide::Expr in_order(Halide::Expr value, const std::vector<Halide::Expr> &order);
Halide::Expr mark_last_chunk(Halide::Expr c, Halide::Expr last);
// The last of the chunks of so many tokens; -1: there is none.
Halide::Expr last_chunk_of(Halide::Expr tokens, int chunk);

// For the passes that resolve them.
extern const char *const state_before_marker, *const state_after_marker, *const in_order_marker, *const last_chunk_marker;
extern const char *const copy_out_marker, *const copy_out_too_marker;
bool is_marker(const Halide::Internal::Call *call, const char *marker);
bool is_any_marker(const Halide::Internal::Call *call);

struct CarryNames {
    std::string state_before, state_after, final_state_copy;  // names of the Funcs
    std::map<std::string, std::string> copies;                // the Funcs that are copied out, and the outputs they go to
    std::string chunk_loop;                                   // the Var of the chunk loop; empty: there is one chunk only
    std::string state_reads, state_taken;                     // Funcs where one chunk is read while it is replaced; or empty
};

// Resolves the markers. Throws Halide::CompileError if the chunk loop is not serial or runs more than once over one state, if
// SB and S are not stored alike with one chunk each, or if SB is read after S. It cannot see a read of SB while S is being
// written, at another place than the one that is written: compute all such reads at the chunk loop.
//
// Where the only chunk is read while it is replaced (Chunk::one_pass), state_taken and the copy to the output must be computed
// inside state_reads: the output may be the memory that the state is in.
Halide::Internal::IRMutator *make_carry_pass(const CarryNames &names);

}  // namespace halation
#endif
