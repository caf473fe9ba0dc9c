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

    // The staged Func that an allocation or producer is of, or null.
    const std::string *staged_func(const std::string &name) const;
};

// Where a thread stores an element of such a Func it stores what it loaded in the chunk before into registers, then loads that of
// the next chunk. Those that a thread computes in a loop, of run-time length, stay as they are. Throws Halide::CompileError for a
// Func that reads what is computed in the loop.
Halide::Internal::IRMutator *make_chunk_ahead_pass(const ChunkAheadNames &names);

}  // namespace halation
#endif
