// What a chunk reads from memory is asked for a chunk ahead. In a block of a GPU kernel the chunks follow one another, so that
// nothing else hides the latency of their loads.
#ifndef HALATION_GENERATORS_CHUNK_AHEAD_H
#define HALATION_GENERATORS_CHUNK_AHEAD_H

#include <Halide.h>

#include <string>
#include <vector>

namespace halation {

struct ChunkAheadNames {
    std::string chunk_loop;           // the Var of the chunk loop, serial inside a block
    std::vector<std::string> staged;  // Funcs computed in it, in shared memory, from nothing but the kernel's inputs
    // What the next chunk reads is asked for always, after the last chunk once more what that one read; or where there is a next
    // one; or never, so that all chunks but the first wait for theirs. The latter two are for sequences of few chunks.
    enum class Next { always, if_any, never } next = Next::always;
};

// Where a thread stores an element of such a Func it stores what it loaded in the chunk before into registers, then loads that of
// the next chunk. All of that goes to the beginning of a chunk, between two barriers, for Funcs that have their elements of
// shared memory to themselves (shared_apart.h), as far as the block's code can be followed. Those that load nothing, that a
// thread computes in a loop of run-time length or in one of two cases stay as they are. Conditions around such a Func must hold
// for the first chunks or for none: what a chunk loads ahead is loaded under its own. Throws Halide::CompileError for a Func that
// reads what is computed in the loop.
Halide::Internal::IRMutator *make_chunk_ahead_pass(const ChunkAheadNames &names);

}  // namespace halation
#endif
