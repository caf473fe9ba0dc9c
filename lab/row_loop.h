// Any row as a plain loop over tokens: what its expressions say, evaluated one number at a time. Slow, and apart from the
// chunk algorithm: it is what kernels of a user's own recurrence are held against. (Halation's own recurrences have loops
// written by hand besides, in oracle/.)
#ifndef HALATION_LAB_ROW_LOOP_H
#define HALATION_LAB_ROW_LOOP_H

#include "generators/row.h"
#include "oracle/oracle.h"

namespace halation::lab {

// `inputs` are as for oracle::run, all tensors of the row among them but those that have a default; heads are grouped.
// Throws std::invalid_argument naming what is missing, or the operation of Halide's that this loop does not know.
oracle::Outputs run_row(const Row &row, const oracle::Inputs &inputs);

// The same in float: what its error allows, a float32 kernel may also take.
oracle::Outputs run_row_in_float(const Row &row, const oracle::Inputs &inputs);

}  // namespace halation::lab
#endif
