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

// Says where a Func is computed.
using Place = std::function<void(Halide::Func &)>;

// The update of f, a sum or maximum over `over`, with a vector of partial results; computed at `at`, f's innermost loop.
void sum_in_lanes(Halide::Func &f, const Halide::RVar &over, const Halide::Var &at, int lanes);

// What is made of a token's key channels: its readers and writers, and their products inside a chunk.
void token_vectors_cpu(Chunk &m, const CpuMachine &machine, const Place &place);

// The normaliser and the denominators, where the row has them.
void normalizer_cpu(Chunk &m, const CpuMachine &machine, const Place &place);

// Computes the Funcs of one kind of decay that a form needs, each where `place` puts it; along `channel` if the decays
// differ by channel. `across_chunks`: with those of the parallel form.
void decays_cpu(DecayFuncs &decays, const Halide::Var *channel, bool between, bool across_chunks, const CpuMachine &machine,
                const Place &place);

// beta, along the value channels; its place is the caller's to say.
void beta_cpu(Chunk &m, const CpuMachine &machine);

}  // namespace halation
#endif
