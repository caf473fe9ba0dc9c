// The state goes round the chunk loop of a GPU kernel in registers. The markers are those of carry.h; a block serves a tile of
// the state for all chunks, and each of its threads keeps the same few elements throughout.
#ifndef HALATION_GENERATORS_CARRY_REGISTERS_H
#define HALATION_GENERATORS_CARRY_REGISTERS_H

#include "state_bits.h"

#include <Halide.h>

#include <map>
#include <string>

namespace halation {

struct CarryRegistersNames {
    // Names of the Funcs, in MemoryType::Stack at the block; empty: there is no state.
    std::string state_before, state_after, final_state_copy;
    std::map<std::string, std::string> copies;  // the Funcs that are copied out, and the outputs they go to
    std::string chunk_loop;                     // the Var of the chunk loop, serial inside a block
    StateBits bits;
};

// Makes one array a thread of SB and S. SB is computed before the chunk loop; the loop ends after the last chunk of the block's
// sequence, beyond which nothing may be copied out; the copy of S follows it. Throws Halide::CompileError if a thread would touch
// an element that is another's, if the chunk loop is not serial or is cut in parts, or if the copy of S does not say which chunk
// is the last, the same for all threads.
Halide::Internal::IRMutator *make_carry_registers_pass(const CarryRegistersNames &names);

}  // namespace halation
#endif
