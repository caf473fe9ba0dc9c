// Runs a sweep: makes and checks candidates side by side, times them alone, writes down each as soon as it is known.
#ifndef HALATION_LAB_SWEEP_H
#define HALATION_LAB_SWEEP_H

#include "search.h"

namespace halation::lab {

struct SweepPlan {
    Search search;
    Parameters start;
    unsigned seed;
    int most_candidates;          // 0: as many as the search finds
    double most_seconds;          // 0: until it is done
    double seconds_each;          // of timing
    int jobs;                     // candidates made at once
    std::string results, report;  // files
};

// Goes on with `sweep`, whose results are those of the file. Returns whether it came to its end.
bool run_sweep(Sweep &sweep, const SweepPlan &plan);

}  // namespace halation::lab
#endif
