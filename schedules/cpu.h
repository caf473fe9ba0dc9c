// Pieces that the CPU schedules share.
#ifndef HALATION_SCHEDULES_CPU_H
#define HALATION_SCHEDULES_CPU_H

#include "../generators/chunk.h"
#include "machines.h"

namespace halation {

// Vectorizes every stage of f along `dim`, computing a whole vector at the end of a row. For Funcs that own their
// memory.
void vectorize_stages(Halide::Func &f, const Halide::Var &dim, int lanes);

// The sums over key channels inside a chunk, with a vector of partial sums; computed at m.products.
void product_sums_cpu(Chunk &m, const CpuMachine &machine);

// beta, along the value channels; its place is the caller's to say.
void beta_cpu(Chunk &m, const CpuMachine &machine);

}  // namespace halation
#endif
