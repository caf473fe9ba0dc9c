// What a call has to do at least, whatever the kernel: what its time is held against.
#ifndef HALATION_BENCH_WORK_H
#define HALATION_BENCH_WORK_H

#include "inputs.h"
#include "limits.h"

namespace bench {

struct Work {
    double multiply_adds;  // products with the state and writes into it; of softmax, with the keys and values seen
    double exps;           // of gates, or of scores
    double bytes;          // all inputs, outputs and states once
};
Work work_of(const halation_row &row, const halation_problem &problem, const Sizes &sizes);

// Seconds that each takes at best, and which is longest.
struct Floor {
    double multiply_adds, exps, bytes;
    double seconds() const;
    const char *binding() const;  // "multiply-adds", "exps" or "memory"
};
Floor floor_of(const Work &work, const Limits &limits);

}  // namespace bench
#endif
