// A safetensors file as a problem for one recurrence: names, shapes, types and metadata held against its row.
#ifndef HALATION_CLI_PROBLEM_FILE_H
#define HALATION_CLI_PROBLEM_FILE_H

#include "halation.hpp"
#include "halation_kernels.h"
#include "options.h"
#include "safetensors/safetensors.h"

#include <map>
#include <string>
#include <vector>

namespace halation::cli {

struct ProblemFile {
    std::string path;
    const halation_row *row = nullptr;
    std::map<std::string, safetensors::Tensor> inputs;    // of the row, and initial states
    std::map<std::string, safetensors::Tensor> expected;  // "o", "final_state", "final_normalizer", where given
    std::vector<int64_t> offsets, cache_offsets;          // empty: not packed, has no cache
    std::map<char, int64_t> extents;                      // by letter of the row's dims; N: sequences
    safetensors::Type type{}, gate_type{}, state_type{};
    double scale;             // NaN: the default
    std::string feature_map;  // empty: the default
    halation_head_mapping heads = HALATION_HEADS_GROUPED;
    bool causal = true;

    std::vector<int64_t> shape(const char *dims) const;
};

// The row of a recurrence in this build. Throws Error, listing all, if there is none.
const halation_row &row_named(const std::string &recurrence);

// Reads and checks a file. `recurrence` empty: as the metadata says. Throws an exception with one line that names the
// file, the tensor, what it is and what it may be.
ProblemFile read_problem(const std::string &path, const std::string &recurrence, const std::string &heads);

}  // namespace halation::cli
#endif
