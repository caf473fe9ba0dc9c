// What a problem's results must be, and how close to it they must come.
#ifndef HALATION_CLI_REFERENCE_H
#define HALATION_CLI_REFERENCE_H

#include "oracle/oracle.h"
#include "problem_file.h"

#include <string>
#include <vector>

namespace halation::cli {

// One tensor that results are held against.
struct Reference {
    std::string output;  // "o", "final_state" or "final_normalizer"
    bool expected;       // from the file's expect.*, not from the oracle
    oracle::Array value;
    double bound;  // largest error allowed
};

// Runs the oracle on the file's own inputs, and adds what the file expects. The bound of float32 outputs is
// max(1e-5, 4 times the error of the same plain loop in float). To it come the roundings of the type: half a unit in
// the last place of an output in F16 (2^-11) or BF16 (2^-8; a final_state may be BF16 too), and the same for a file's
// expect.* in such a type.
// `tolerance`, unless NaN, is the bound instead.
std::vector<Reference> references(const ProblemFile &file, double tolerance);

double error_of(const safetensors::Tensor &result, const Reference &reference);

}  // namespace halation::cli
#endif
