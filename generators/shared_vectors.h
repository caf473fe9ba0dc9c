// Neighbouring floats of a block's shared memory, which each of its threads loads, are loaded four at a time.
#ifndef HALATION_GENERATORS_SHARED_VECTORS_H
#define HALATION_GENERATORS_SHARED_VECTORS_H

#include <Halide.h>

#include <string>

namespace halation {

// LLVM makes vectors of loads of neighbours, but not where their addresses are constants. Where the Func is computed, constant
// places of shared memory become sums with something that LLVM does not know to be 0: a multiple of four floats, so that it sees
// which of them begin at a multiple of 16 bytes. For APIs whose kernels have one array of shared memory.
Halide::Internal::IRMutator *make_shared_vectors_pass(const std::string &func);

}  // namespace halation
#endif
