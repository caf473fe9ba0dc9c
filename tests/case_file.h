// A safetensors file as the oracle's inputs.
#ifndef HALATION_TESTS_CASE_FILE_H
#define HALATION_TESTS_CASE_FILE_H

#include "oracle/oracle.h"
#include "safetensors/safetensors.h"

#include <string>

inline oracle::Array array_of(const safetensors::Tensor &tensor) {
    return {tensor.shape, safetensors::values(tensor)};
}

inline oracle::Inputs inputs_of(const safetensors::File &file) {
    oracle::Inputs inputs;
    const auto text = [&](const char *key) {
        const auto found = file.metadata.find(key);
        return found == file.metadata.end() ? std::string() : found->second;
    };
    inputs.recurrence = text("recurrence");
    inputs.feature_map = text("feature_map");
    if (!text("scale").empty()) inputs.scale = std::stod(text("scale"));
    if (text("heads") == "tiled") inputs.heads = oracle::Heads::tiled;
    if (text("causal") == "false" || text("causal") == "0") inputs.causal = false;
    for (const auto &[name, tensor] : file.tensors) {
        if (name.rfind("expect.", 0) == 0) continue;
        if (name == "offsets") {
            for (double value : safetensors::values(tensor)) inputs.offsets.push_back(static_cast<int64_t>(value));
        } else {
            inputs.tensors[name] = array_of(tensor);
        }
    }
    return inputs;
}

#endif
