// Funcs that a block of threads of a GPU computes in several steps, each thread its own elements: sums of a tile that grow while
// the block goes through what is summed. Halide keeps what outlives a step of a block in shared memory; these are kept in
// registers.
#ifndef HALATION_GENERATORS_THREAD_REGISTERS_H
#define HALATION_GENERATORS_THREAD_REGISTERS_H

#include <Halide.h>

#include <string>
#include <vector>

namespace halation {

// Makes an array of each thread's own of each of these Funcs, which are in MemoryType::Stack at a loop of the block. Throws
// Halide::CompileError if one is not, or if a thread would touch an element that is another's.
Halide::Internal::IRMutator *make_thread_registers_pass(const std::vector<std::string> &funcs);

}  // namespace halation
#endif
