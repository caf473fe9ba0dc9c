// Element types: their names, sizes, and conversion from and to double.
#include "safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace safetensors {

const char *name(Type type) {
    switch (type) {
    case Type::f32:
        return "F32";
    case Type::f16:
        return "F16";
    case Type::bf16:
        return "BF16";
    case Type::i32:
        return "I32";
    case Type::i64:
        return "I64";
    case Type::u8:
        return "U8";
    case Type::boolean:
        return "BOOL";
    }
    return "?";
}

int64_t bytes(Type type) {
    switch (type) {
    case Type::f32:
    case Type::i32:
        return 4;
    case Type::f16:
    case Type::bf16:
        return 2;
    case Type::i64:
        return 8;
    case Type::u8:
    case Type::boolean:
        return 1;
    }
    return 0;
}

namespace {

template<typename T> T load(const uint8_t *from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// A small binary floating-point format: one sign bit, exponent, fraction; IEEE 754's rules.
struct Format {
    int exponent_bits, fraction_bits;
    int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    uint32_t infinity() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
};
constexpr Format half{5, 10}, brain{8, 7}, single{8, 23};

double widen(const Format &format, uint32_t bits) {
    const uint32_t sign = bits >> (format.exponent_bits + format.fraction_bits) & 1;
    const uint32_t exponent = bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1);
    const uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
    double value;
    if (exponent == (1u << format.exponent_bits) - 1)
        value = fraction ? std::nan("") : std::numeric_limits<double>::infinity();
    else if (exponent == 0)
        value = std::ldexp(double(fraction), 1 - format.bias() - format.fraction_bits);
    else
        value = std::ldexp(double(fraction | 1u << format.fraction_bits), int(exponent) - format.bias() - format.fraction_bits);
    return sign ? -value : value;
}

// Straight from double, so that nothing is rounded twice.
uint32_t narrow(const Format &format, double value) {
    const uint32_t sign = uint32_t(std::signbit(value)) << (format.exponent_bits + format.fraction_bits);
    if (std::isnan(value)) return sign | format.infinity() | 1u << (format.fraction_bits - 1);
    value = std::fabs(value);
    if (std::isinf(value)) return sign | format.infinity();
    if (value == 0) return sign;
    const int lowest = 1 - format.bias();  // exponent of the smallest normal number, and of all subnormal ones
    const int exponent = std::max(std::ilogb(value), lowest);
    // In units of the last place; carries into the exponent, up to infinity, by itself.
    const double units = std::nearbyint(std::ldexp(value, format.fraction_bits - exponent));
    if (exponent > format.bias()) return sign | format.infinity();
    const uint32_t bits = (uint32_t(exponent - lowest) << format.fraction_bits) + uint32_t(units);
    return sign | bits;
}

}  // namespace

std::vector<double> values(const Tensor &tensor) {
    const int64_t size = bytes(tensor.type);
    std::vector<double> result(tensor.data.size() / static_cast<size_t>(size));
    const uint8_t *from = tensor.data.data();
    for (double &value : result) {
        switch (tensor.type) {
        case Type::f32:
            value = load<float>(from);
            break;
        case Type::f16:
            value = widen(half, load<uint16_t>(from));
            break;
        case Type::bf16:
            value = widen(brain, load<uint16_t>(from));
            break;
        case Type::i32:
            value = load<int32_t>(from);
            break;
        case Type::i64:
            value = static_cast<double>(load<int64_t>(from));
            break;
        case Type::u8:
            value = *from;
            break;
        case Type::boolean:
            value = *from != 0;
            break;
        }
        from += size;
    }
    return result;
}

Tensor tensor(Type type, std::vector<int64_t> shape, const std::vector<double> &values) {
    const Format *format = type == Type::f32 ? &single : type == Type::f16 ? &half : type == Type::bf16 ? &brain : nullptr;
    if (!format) throw Error(std::string("values cannot be rounded to ") + name(type));
    Tensor result{type, std::move(shape), {}};
    const size_t size = static_cast<size_t>(bytes(type));
    result.data.resize(values.size() * size);
    for (size_t i = 0; i < values.size(); i++) {
        const uint32_t bits = narrow(*format, values[i]);
        for (size_t byte = 0; byte < size; byte++) result.data[i * size + byte] = static_cast<uint8_t>(bits >> (8 * byte));
    }
    return result;
}

std::string in_quotes(const std::string &name) {
    std::string text = "'";
    for (const unsigned char c : name.substr(0, 200)) {
        constexpr char digits[] = "0123456789abcdef";
        if (c < 0x20 || c == 0x7f)
            (text += "\\x") += {digits[c >> 4], digits[c & 15]};
        else
            text += static_cast<char>(c);
    }
    return text + (name.size() > 200 ? "...'" : "'");
}

}  // namespace safetensors
