// The loops of a kernel as plain text of at most 110 columns.
#ifndef HALATION_LAB_LOOP_TABLE_H
#define HALATION_LAB_LOOP_TABLE_H

#include "machine_code_analyzer.h"

#include <string>
#include <vector>

namespace halation::lab {

// `analyses`: one for each loop, in their order; or none. Loops without vector arithmetic are only counted.
std::string describe(const std::vector<Loop> &loops, const std::vector<Analysis> &analyses);

}  // namespace halation::lab
#endif
