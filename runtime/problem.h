// A problem once its fields are known to be sound and its defaults are filled in.
#ifndef HALATION_RUNTIME_PROBLEM_H
#define HALATION_RUNTIME_PROBLEM_H

#include "rows.h"

namespace halation::runtime {

struct Problem {
    const halation_row *row;
    const char *backend;
    const char *isa;          // NULL: the best
    const char *feature_map;  // NULL: the row has none
    halation_form form;
    halation_head_mapping head_mapping;
    int chunk;  // 0: the schedule's own
    bool causal;
    int64_t heads, value_heads, key_dim, value_dim;
    DLDataType type, gate_type, state_type;
    float scale;
};

// Names of strings are those of the tables or constants, so they outlive the caller's problem.
halation_status check_problem(const Tables &tables, const halation_problem *given, Problem *problem);

}  // namespace halation::runtime
#endif
