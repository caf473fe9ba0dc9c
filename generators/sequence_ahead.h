// What a sequence reads from memory before its first chunk, its state and the inputs of its first tokens, is asked for while the
// sequence before it is served. In a block that serves several of few tokens, one after the other, nothing else hides the latency
// of their loads.
#ifndef HALATION_GENERATORS_SEQUENCE_AHEAD_H
#define HALATION_GENERATORS_SEQUENCE_AHEAD_H

#include <Halide.h>

#include <string>

namespace halation {

struct SequenceAheadNames {
    std::string sequence_loop, chunk_loop;  // Vars, the first a serial loop in each thread of a block, around the second
    std::string table;                      // the buffer that says where a sequence lies (batch.h)
};

// Comes after carry_registers.h and chunk_ahead.h, which load what the first chunk needs into registers in front of the loop over
// chunks, and after all passes that look for barriers. Those loads go to registers of their own, a sequence ahead, and the rows
// of the table to shared memory (sequence_table.h). The first chunk of a sequence comes out of the loop. A sequence must not read
// a state that another of the same call writes; blocks are in no order either. Throws Halide::CompileError if there is not one
// such loop over sequences; if it may have more turns than a row of threads, or a sequence no chunk; if one of the loops is under
// a condition or in another loop; if a load in front of the chunks reads what the loop over sequences stores, or if what it loads
// is touched there otherwise; or if there is none.
Halide::Internal::IRMutator *make_sequence_ahead_pass(const SequenceAheadNames &names);

}  // namespace halation
#endif
