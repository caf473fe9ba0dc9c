// bfloat16 is the upper half of a float.
#ifndef HALATION_RUNTIME_BFLOAT16_H
#define HALATION_RUNTIME_BFLOAT16_H

#include <cstdint>
#include <cstring>

namespace halation::runtime {

inline float float_of(uint16_t bfloat16) {
    const uint32_t bits = static_cast<uint32_t>(bfloat16) << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// To nearest, ties to even. A NaN stays one.
inline uint16_t bfloat16_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
    return static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
}

}  // namespace halation::runtime
#endif
