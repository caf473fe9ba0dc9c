#include "shapes.h"

#include "commands.h"

#include <cstring>

namespace halation::cli {

std::string letter_text(const halation_row &row, char letter) {
    const bool heads = std::strchr(row.output_dims, 'G') != nullptr;
    if (letter == 'G') return "HV";
    if (letter == 'N') return "B";  // of a state: as many as there are sequences
    if (!heads && letter == 'V') return "D";
    if (!heads && letter == 'K') return "N";
    return std::string(1, letter);
}

std::string dims_text(const halation_row &row, const std::string &dims) {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); i++) text += (i ? "," : "") + letter_text(row, dims[i]);
    return text + "]";
}

std::string dims_text(const halation_row &row, const halation_row_tensor &input) {
    const std::string dims = input.dims;
    if (!input.last_axis_optional) return dims_text(row, dims);
    return dims_text(row, dims.substr(0, dims.size() - 1)) + " or " + dims_text(row, dims);
}

std::string shape_text(const std::vector<int64_t> &shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

int64_t element_count(const std::vector<int64_t> &shape, const std::string &what) {
    int64_t count = 1;
    bool large = false;
    for (int64_t extent : shape) large = __builtin_mul_overflow(count, extent, &count) || large;
    if (large || count > INT64_MAX / 8) throw Error(what + " would have shape " + shape_text(shape) + ", which is too large");
    return count;
}

}  // namespace halation::cli
