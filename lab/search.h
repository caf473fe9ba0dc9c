// Which candidates a sweep tries, and in which order.
#ifndef HALATION_LAB_SEARCH_H
#define HALATION_LAB_SEARCH_H

#include "results.h"

#include <random>
#include <set>

namespace halation::lab {

enum class Search {
    climb,   // from a start, all changes of one parameter, then from the best of them, until none is better
    grid,    // all combinations
    random,  // combinations at random, each once
};

class Candidates {
public:
    // `start`: where a climb begins. The order is the same for the same seed.
    Candidates(Search search, std::vector<Axis> axes, Parameters start, unsigned seed);

    // The next ones, none of which is among `results`, nor was returned before; empty: there are no more.
    std::vector<Parameters> next(const std::vector<Result> &results);

    // All combinations of the axes.
    double combinations() const;

private:
    std::vector<Parameters> round_of_climb(const std::vector<Result> &results);
    Parameters best_steps(const std::vector<Result> &results) const;
    Parameters combination(double index) const;
    bool is_new(const Parameters &parameters);

    Search search_;
    std::vector<Axis> axes_;
    Parameters start_;
    std::mt19937 random_;
    std::set<Parameters> asked_;
    std::vector<Parameters> shuffled_;  // of a grid
    Parameters centre_;                 // of the last round of a climb
    bool climbing_ = false;
};

}  // namespace halation::lab
#endif
