#include "tensors.h"

#include <stdexcept>

namespace oracle {

int64_t elements(const Shape &shape) {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    return n;
}

std::string written(const Shape &shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

void refuse(const std::string &message) {
    throw std::invalid_argument(message);
}

bool given(const Inputs &inputs, const std::string &name) {
    return inputs.tensors.count(name) != 0;
}

const Shape &shape_of(const Inputs &inputs, const std::string &name, size_t rank) {
    const auto found = inputs.tensors.find(name);
    if (found == inputs.tensors.end()) refuse(inputs.recurrence + " needs tensor '" + name + "'");
    const Shape &shape = found->second.shape;
    if (shape.size() != rank)
        refuse("tensor '" + name + "' has shape " + written(shape) + " where " + std::to_string(rank) + " dimensions are wanted");
    return shape;
}

void expect_shape(const std::string &name, const Shape &got, const Shape &wanted) {
    if (got != wanted) refuse("tensor '" + name + "' has shape " + written(got) + " where " + written(wanted) + " is wanted");
}

std::vector<Sequence> sequences(const Inputs &inputs, int64_t B, int64_t T) {
    std::vector<Sequence> all;
    if (inputs.offsets.empty()) {
        for (int64_t b = 0; b < B; b++) all.push_back({b, 0, T});
        return all;
    }
    const std::vector<int64_t> &offsets = inputs.offsets;
    if (B != 1) refuse("a packed batch has B = 1, not " + std::to_string(B));
    if (offsets.front() != 0 || offsets.back() != T)
        refuse("offsets run from " + std::to_string(offsets.front()) + " to " + std::to_string(offsets.back()) +
               " where 0 to T = " + std::to_string(T) + " is wanted");
    for (size_t n = 0; n + 1 < offsets.size(); n++) {
        if (offsets[n + 1] < offsets[n]) refuse("offsets fall after sequence " + std::to_string(n));
        all.push_back({0, offsets[n], offsets[n + 1]});
    }
    return all;
}

}  // namespace oracle
