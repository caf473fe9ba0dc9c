#include "rounding.h"

namespace oracle {

using safetensors::Type;

Array within_range(Array array, Type type) {
    const std::vector<double> rounded = safetensors::values(safetensors::tensor(type, array.shape, array.values));
    for (size_t i = 0; i < rounded.size(); i++)
        if (std::isinf(rounded[i])) array.values[i] = rounded[i];
    return array;
}

double rounding(Type type, const Array &array) {
    if (type == Type::bf16) return 0x1p-8;
    if (type != Type::f16) return 0;
    double norm = 0;  // below 2^-14 the error of f16 is absolute
    for (double value : array.values)
        if (std::isfinite(value)) norm += value * value;
    return 0x1p-11 + (norm > 0 ? 0x1p-25 * std::sqrt(static_cast<double>(array.values.size()) / norm) : 0);
}

}  // namespace oracle
