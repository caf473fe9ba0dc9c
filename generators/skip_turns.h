// Turns of a loop of a block of threads in which nothing is added to a sum, since RDom::where() says so. Halide puts that
// condition around the sum alone; what is computed in the same turn for nothing but the sum need not be there either.
#ifndef HALATION_GENERATORS_SKIP_TURNS_H
#define HALATION_GENERATORS_SKIP_TURNS_H

#include <Halide.h>

#include <string>
#include <utility>
#include <vector>

namespace halation {

// The loop over a Var, and the Func whose update it is that all else in it is computed for.
using LoopOfSum = std::pair<std::string, std::string>;

// Puts the conditions around all stores to the Func, as far as they are the same for all threads of a block, around the turns of
// the loop, or around the loop if they do not depend on the turn. Throws Halide::CompileError if there is no such condition.
Halide::Internal::IRMutator *make_skip_turns_pass(const std::vector<LoopOfSum> &loops);

}  // namespace halation
#endif
