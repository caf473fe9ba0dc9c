// Dims strings of halation_kernels.h ("BTHK") as a user reads them.
#ifndef HALATION_CLI_SHAPES_H
#define HALATION_CLI_SHAPES_H

#include "halation_kernels.h"

#include <cstdint>
#include <string>
#include <vector>

namespace halation::cli {

// A letter as it is written in this row's shapes: G is HV. Rows without heads have channels D and states of N
// values a channel, as their papers do.
std::string letter_text(const halation_row &row, char letter);

// "[B,T,HV,K]"
std::string dims_text(const halation_row &row, const std::string &dims);

// The same of an input, which may do without its last axis: "[B,T,HV] or [B,T,HV,V]"
std::string dims_text(const halation_row &row, const halation_row_tensor &input);

// "[2, 75, 3, 48]"
std::string shape_text(const std::vector<int64_t> &shape);

// Product of the extents. Throws Error, saying `what` is too large, beyond what memory can be addressed.
int64_t element_count(const std::vector<int64_t> &shape, const std::string &what);

}  // namespace halation::cli
#endif
