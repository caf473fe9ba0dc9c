// Funcs of a block of threads with shared memory to themselves. Halide gives shared memory that is no longer needed to what is
// computed next, which then can't be computed any earlier.
#ifndef HALATION_GENERATORS_SHARED_APART_H
#define HALATION_GENERATORS_SHARED_APART_H

#include <Halide.h>

#include <string>
#include <vector>

namespace halation {

// The Funcs are in MemoryType::Stack at the block, and of sizes known when the kernel is made. Each gets a place in front of the
// shared memory that Halide has shared out. For APIs whose kernels have one array of shared memory for all types. Throws
// Halide::CompileError where something is amiss.
Halide::Internal::IRMutator *make_shared_apart_pass(const std::vector<std::string> &funcs);

}  // namespace halation
#endif
