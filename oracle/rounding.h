// What storing a result in 16 bits does to it.
#ifndef HALATION_ORACLE_ROUNDING_H
#define HALATION_ORACLE_ROUNDING_H

#include "oracle.h"
#include "safetensors/safetensors.h"

namespace oracle {

// Values beyond the type's range are its infinities: a kernel can do no better.
Array within_range(Array array, safetensors::Type type);

// The relative error that rounding a whole tensor to a type makes at most. Float32's is inside every bound already.
double rounding(safetensors::Type type, const Array &array);

}  // namespace oracle
#endif
