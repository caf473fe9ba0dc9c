// The page of a sweep: one file of HTML that loads nothing.
#ifndef HALATION_LAB_REPORT_H
#define HALATION_LAB_REPORT_H

#include "lab/results.h"

#include <string>

namespace halation::lab {

// The loop nests are texts as Halide prints them; an empty one was not printed.
std::string report_page(const Sweep &sweep, const std::string &loop_nest_of_best, const std::string &loop_nest_of_shipped);

}  // namespace halation::lab
#endif
