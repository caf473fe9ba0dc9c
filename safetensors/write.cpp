#include "output_file.h"
#include "safetensors.h"

#include <nlohmann/json.hpp>

namespace safetensors {
namespace {

std::string header_of(const std::string &path, const File &file) {
    nlohmann::json header = nlohmann::json::object();
    if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
    uint64_t offset = 0;
    for (const auto &[name, tensor] : file.tensors) {
        uint64_t size = static_cast<uint64_t>(bytes(tensor.type));
        for (int64_t extent : tensor.shape) size *= static_cast<uint64_t>(extent);
        if (size != tensor.data.size())
            throw Error(path + ": tensor " + in_quotes(name) + ": " + std::to_string(tensor.data.size()) +
                        " bytes of data where dtype and shape make " + std::to_string(size));
        header[name] = {
            {"dtype", safetensors::name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + size}}};
        offset += size;
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception &) {
        throw Error(path + ": a name or metadata to be written is not valid UTF-8");
    }
    text.append((8 - text.size() % 8) % 8, ' ');  // tensors start aligned
    return text;
}

}  // namespace

void write(const std::string &path, const File &file) {
    const std::string header = header_of(path, file);
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = static_cast<uint8_t>(header.size() >> (8 * i));
    OutputFile output(path);
    output.write(prefix, 8);
    output.write(header.data(), header.size());
    for (const auto &[name, tensor] : file.tensors) output.write(tensor.data.data(), tensor.data.size());
    output.keep();
}

}  // namespace safetensors
