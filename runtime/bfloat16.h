// bfloat16 is the upper half of a float. States may be stored so.
#ifndef HALATION_RUNTIME_BFLOAT16_H
#define HALATION_RUNTIME_BFLOAT16_H

#include <cstdint>

namespace halation::runtime {

// Both for elements of any alignment. Rounded to nearest, ties to even; a NaN stays one.
void widen(const char *bfloat16, char *floats, int64_t count);
void narrow(const char *floats, char *bfloat16, int64_t count);

}  // namespace halation::runtime
#endif
