// Pieces that the CPU schedules share.
#ifndef HALATION_SCHEDULES_CPU_H
#define HALATION_SCHEDULES_CPU_H

#include "../generators/chunk.h"
#include "machines.h"

#include <functional>

namespace halation {

// Vectorizes every stage of f along `dim`, computing a whole vector at the end of a row. For Funcs that own their
// memory.
void vectorize_stages(Halide::Func &f, const Halide::Var &dim, int lanes);

// The sums over key channels inside a chunk, with a vector of partial sums; computed at m.products.
void product_sums_cpu(Chunk &m, const CpuMachine &machine);

// Computes the Funcs of one kind of decay that a form needs, each where `place` puts it; along `channel` if the decays
// differ by channel. `across_chunks`: with those of the parallel form.
void decays_cpu(DecayFuncs &decays, const Halide::Var *channel, bool between, bool across_chunks, const CpuMachine &machine,
                const std::function<void(Halide::Func &)> &place);

// beta, along the value channels; its place is the caller's to say.
void beta_cpu(Chunk &m, const CpuMachine &machine);

}  // namespace halation
#endif
