#include "reference.h"

#include <cmath>

namespace halation::cli {
namespace {

using oracle::Array;
using safetensors::Type;

oracle::Inputs oracle_inputs(const ProblemFile &file) {
    oracle::Inputs inputs;
    inputs.recurrence = file.row->name;
    inputs.scale = file.scale;
    inputs.feature_map = file.feature_map;
    if (file.feature_map.empty() && file.row->default_feature_map) inputs.feature_map = file.row->default_feature_map;
    inputs.heads = file.heads == HALATION_HEADS_TILED ? oracle::Heads::tiled : oracle::Heads::grouped;
    inputs.causal = file.causal;
    inputs.offsets = file.offsets;
    inputs.cache_offsets = file.cache_offsets;
    for (const auto &[name, tensor] : file.inputs) inputs.tensors[name] = {tensor.shape, safetensors::values(tensor)};
    return inputs;
}

// Values beyond the type's range are its infinities: a kernel can do no better.
Array within_range(Array array, Type type) {
    const std::vector<double> rounded = safetensors::values(safetensors::tensor(type, array.shape, array.values));
    for (size_t i = 0; i < rounded.size(); i++)
        if (std::isinf(rounded[i])) array.values[i] = rounded[i];
    return array;
}

// The relative error that rounding to a type makes at most. Float32's is inside every bound already.
double rounding(Type type, const Array &array) {
    if (type == Type::bf16) return 0x1p-8;
    if (type != Type::f16) return 0;
    double norm = 0;  // below 2^-14 the error of F16 is absolute
    for (double value : array.values)
        if (std::isfinite(value)) norm += value * value;
    return 0x1p-11 + (norm > 0 ? 0x1p-25 * std::sqrt(static_cast<double>(array.values.size()) / norm) : 0);
}

}  // namespace

std::vector<Reference> references(const ProblemFile &file, double tolerance) {
    const oracle::Inputs inputs = oracle_inputs(file);
    const oracle::Outputs outputs = oracle::run(inputs);
    const oracle::Bounds bounds =
        std::isnan(tolerance) ? oracle::bound(inputs, outputs) : oracle::Bounds{tolerance, tolerance, tolerance};
    std::vector<Reference> all;
    const auto add = [&](const char *output, const Array &value, double bound, Type type) {
        if (value.shape.empty()) return;
        if (std::isnan(tolerance)) bound += rounding(type, value);
        all.push_back({output, false, within_range(value, type), bound});
        const auto found = file.expected.find(output);
        if (found == file.expected.end()) return;
        Array expected{found->second.shape, safetensors::values(found->second)};
        if (std::isnan(tolerance)) bound += rounding(found->second.type, expected);
        all.push_back({output, true, within_range(std::move(expected), type), bound});
    };
    add("o", outputs.o, bounds.o, file.type);
    add("final_state", outputs.final_state, bounds.final_state, file.state_type);
    add("final_normalizer", outputs.final_normalizer, bounds.final_normalizer, Type::f32);
    return all;
}

double error_of(const safetensors::Tensor &result, const Reference &reference) {
    return oracle::error({result.shape, safetensors::values(result)}, reference.value);
}

}  // namespace halation::cli
