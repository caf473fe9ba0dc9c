// Reads and writes files of the safetensors format: 8 bytes with the length of a JSON header (little endian), the
// header, then the tensors' bytes, without holes, in row-major order.
//
// Everything that is wrong with a file is an Error whose what() is one line that names the file and the tensor.
#ifndef HALATION_SAFETENSORS_H
#define HALATION_SAFETENSORS_H

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace safetensors {

class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

enum class Type { f32, f16, bf16, i32, i64, u8, boolean };

const char *name(Type type);  // as the header spells it: "F32", ...
int64_t bytes(Type type);     // of one element

struct Tensor {
    Type type = Type::f32;
    std::vector<int64_t> shape;  // empty: a scalar
    std::vector<uint8_t> data;   // little endian, compact
};

struct File {
    std::map<std::string, std::string> metadata;
    std::map<std::string, Tensor> tensors;
};

// Reads a whole file into memory. Refuses what the format does not allow (a truncated file, offsets that overlap,
// leave holes or do not match dtype x shape, duplicate names, ...) and dtypes other than those of Type.
File read(const std::string &path);

// Writes beside `path` first and renames when everything is on disk, so that `path` is at no time half written;
// after an Error it is as it was before. Whatever else `path` names (a device, a pipe) is written directly.
void write(const std::string &path, const File &file);

// Values of a tensor, exactly. Booleans are 0 and 1.
std::vector<double> values(const Tensor &tensor);

// A tensor of the values, rounded to nearest even. Only for f32, f16 and bf16.
Tensor tensor(Type type, std::vector<int64_t> shape, const std::vector<double> &values);

// A name as it is shown in a message: in quotes, on one line, whatever is in it.
std::string in_quotes(const std::string &name);

}  // namespace safetensors
#endif
