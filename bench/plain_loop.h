// The recurrences as a C++ programmer would write them without a second thought: a loop over tokens, a head's state in memory,
// for the compiler to vectorize. What a kernel has to beat by much to be worth anything.
#ifndef HALATION_BENCH_PLAIN_LOOP_H
#define HALATION_BENCH_PLAIN_LOOP_H

#include "inputs.h"

#include <functional>

namespace bench {

// A call on one thread of the plain loop on these inputs, which it points into; empty where there is none: for rows of the chunk
// algorithm it is there for additive, delta and low-rank writes with decays per head or key channel, in float32.
std::function<void()> plain_loop(const halation_row &row, const halation_problem &problem, const Sizes &sizes,
                                 const Inputs &inputs);

}  // namespace bench
#endif
