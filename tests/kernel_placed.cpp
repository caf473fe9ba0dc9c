#include "kernel_placed.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace kernels {

DLDataType dl_type(Type type) {
    if (type == Type::f16) return halation::float16;
    return type == Type::bf16 ? halation::bfloat16 : halation::float32;
}

Placed::Placed(Type type, std::vector<int64_t> shape, const Placing &placing) : type_(type), shape_(std::move(shape)) {
    std::mt19937 generator(placing.seed);
    const auto chance = [&](unsigned percent) { return placing.seed && generator() % 100 < percent; };
    std::vector<size_t> order(shape_.size());  // innermost first
    std::iota(order.rbegin(), order.rend(), size_t(0));
    if (chance(40)) std::shuffle(order.begin(), order.end(), generator);
    strides_.assign(shape_.size(), 1);
    int64_t stride = chance(20) ? 2 : 1;
    for (const size_t axis : order) {
        if (static_cast<int>(axis) == placing.broadcast) {
            strides_[axis] = 0;
            continue;
        }
        strides_[axis] = stride;
        stride *= shape_[axis];
        if (axis == order.front()) stride += placing.gap;
        if (chance(30)) stride += 1 + generator() % 5;
    }
    for (size_t axis = 0; axis < shape_.size(); axis++) {
        if (shape_[axis] == 0) elements_ = 0;
    }
    for (size_t axis = 0; axis < shape_.size() && elements_; axis++) {
        const int64_t reach = (shape_[axis] - 1) * strides_[axis];
        elements_ += reach;
        if (chance(10) && !placing.forwards) {
            strides_[axis] = -strides_[axis];
            first_ += reach;
        }
    }
    memory_ = std::make_unique<Guarded>(static_cast<size_t>(elements_ * width()), placing.meets);
}

template<typename Visit> void Placed::each_element(Visit visit) const {
    if (elements_ == 0) return;
    std::vector<int64_t> index(shape_.size(), 0);
    for (int64_t element = first_;;) {
        visit(at(element));
        size_t axis = shape_.size();
        while (axis-- > 0) {
            element += strides_[axis];
            if (++index[axis] < shape_[axis]) break;
            element -= shape_[axis] * strides_[axis];
            index[axis] = 0;
        }
        if (axis > shape_.size()) return;
    }
}

void Placed::put(const Tensor &tensor) {
    const uint8_t *from = tensor.data.data();
    const size_t bytes = static_cast<size_t>(width());
    each_element([&](uint8_t *to) {
        std::memcpy(to, from, bytes);
        from += bytes;
    });
}

Tensor Placed::get() const {
    Tensor tensor;
    tensor.type = type_;
    tensor.shape = shape_;
    each_element([&](const uint8_t *from) { tensor.data.insert(tensor.data.end(), from, from + width()); });
    return tensor;
}

bool Placed::nothing_else_was_written() {
    each_element([&](uint8_t *to) { std::memset(to, untouched_byte, static_cast<size_t>(width())); });
    for (int64_t i = 0; i < elements_ * width(); i++)
        if (memory_->data()[i] != untouched_byte) return false;
    return memory_->surroundings_are_untouched();
}

}  // namespace kernels
