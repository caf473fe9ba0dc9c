// A tensor in guarded memory, laid out in some way.
#ifndef HALATION_TESTS_KERNEL_PLACED_H
#define HALATION_TESTS_KERNEL_PLACED_H

#include "halation.hpp"
#include "kernel_memory.h"
#include "safetensors/safetensors.h"

#include <cstring>
#include <functional>
#include <memory>

namespace kernels {

using safetensors::Tensor;
using safetensors::Type;

DLDataType dl_type(Type type);

struct Placing {
    Meets meets = Meets::end;
    int64_t gap = 0;        // elements between rows, full of NaN
    unsigned seed = 0;      // other than 0: any order of the axes, gaps anywhere, some axes backwards
    bool forwards = false;  // no axis backwards, which some devices do not take
    int broadcast = -1;     // an axis along which the tensor is constant: stride 0
};

class Placed {
public:
    Placed(Type type, std::vector<int64_t> shape, const Placing &placing);

    void put(const Tensor &tensor);
    Tensor get() const;
    // Overwrites the elements, then looks at everything else.
    bool nothing_else_was_written();
    void make_read_only() { memory_->make_read_only(); }
    // From the lowest element to the end of the highest; the element of index 0 is that far from the lowest.
    uint8_t *data() const { return memory_->data(); }
    size_t bytes() const { return static_cast<size_t>(elements_ * width()); }
    size_t first_byte() const { return static_cast<size_t>(first_ * width()); }
    halation::Tensor view() const { return {at(first_), dl_type(type_), shape_, strides_}; }

private:
    int64_t width() const { return safetensors::bytes(type_); }
    uint8_t *at(int64_t element) const { return memory_->data() + element * width(); }
    template<typename Visit> void each_element(Visit visit) const;

    Type type_;
    std::vector<int64_t> shape_, strides_;
    int64_t first_ = 0;     // the element of index 0
    int64_t elements_ = 1;  // from the lowest to the highest
    std::unique_ptr<Guarded> memory_;
};

}  // namespace kernels
#endif
