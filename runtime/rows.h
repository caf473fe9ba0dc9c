// Rows and tables as generated libraries hand them over: looked up, and checked before anything relies on them.
#ifndef HALATION_RUNTIME_ROWS_H
#define HALATION_RUNTIME_ROWS_H

#include "halation_kernels.h"

#include <vector>

namespace halation::runtime {

using Tables = std::vector<const halation_kernel_table *>;

constexpr int most_inputs = 16;  // of a row
constexpr int most_axes = 6;     // of a tensor

// The letters of halation_kernels.h.
enum Letter { letter_B, letter_N, letter_T, letter_S, letter_H, letter_G, letter_K, letter_V, letter_count };
constexpr const char letters[] = "BNTSHGKV";

Letter letter_of(char letter);                     // letter_count: not one of them
bool has_letter(const char *dims, Letter letter);  // dims may be NULL

// Whether any tensor of the row, its output or its states, has the letter.
bool row_has_letter(const halation_row &row, Letter letter);

const halation_row *find_row(const Tables &tables, const char *name);

// Refuses a table with parts missing, with a malformed row, or with a row that one of `tables` defines otherwise.
halation_status check_table(const Tables &tables, const halation_kernel_table &table);

}  // namespace halation::runtime
#endif
