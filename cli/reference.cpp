#include "reference.h"

#include "oracle/rounding.h"

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

}  // namespace

std::vector<Reference> references(const ProblemFile &file, double tolerance) {
    const oracle::Inputs inputs = oracle_inputs(file);
    const oracle::Outputs outputs = oracle::run(inputs);
    const oracle::Bounds bounds =
        std::isnan(tolerance) ? oracle::bound(inputs, outputs) : oracle::Bounds{tolerance, tolerance, tolerance};
    std::vector<Reference> all;
    const auto add = [&](const char *output, const Array &value, double bound, Type type) {
        if (value.shape.empty()) return;
        if (std::isnan(tolerance)) bound += oracle::rounding(type, value);
        all.push_back({output, false, oracle::within_range(value, type), bound});
        const auto found = file.expected.find(output);
        if (found == file.expected.end()) return;
        Array expected{found->second.shape, safetensors::values(found->second)};
        if (std::isnan(tolerance)) bound += oracle::rounding(found->second.type, expected);
        all.push_back({output, true, oracle::within_range(std::move(expected), type), bound});
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
