// What barriers of a block of threads order. Where Halide sees no value go through memory from one side of a barrier to the
// other, as at the end of a loop's turn, its barrier is one of threads alone. OpenCL and Metal say nothing of memory at such a
// barrier, and values do pass it: from turn to turn, and from where a pass has put them (chunk_ahead.h).
#ifndef HALATION_GENERATORS_BARRIER_MEMORY_H
#define HALATION_GENERATORS_BARRIER_MEMORY_H

#include <Halide.h>

namespace halation {

// The last passes of every kernel for a GPU: barriers that separate nothing go (needless_barriers.h), the others order memory.
void add_barrier_passes(Halide::Pipeline pipeline);

// Makes every barrier order shared memory, besides what it orders. Throws Halide::CompileError for a barrier of which it is not
// known what it orders.
Halide::Internal::IRMutator *make_barrier_memory_pass();

}  // namespace halation
#endif
