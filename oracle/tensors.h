// Shape checks of the oracle's inputs, and their values in the arithmetic type of a loop.
#ifndef HALATION_ORACLE_TENSORS_H
#define HALATION_ORACLE_TENSORS_H

#include "oracle.h"
#include "state_loops.h"

namespace oracle {

using Shape = std::vector<int64_t>;

int64_t elements(const Shape &shape);
std::string written(const Shape &shape);  // "[2, 75, 3, 48]"

// Throws std::invalid_argument with one line.
[[noreturn]] void refuse(const std::string &message);

// The shape of a required tensor, which has so many dimensions.
const Shape &shape_of(const Inputs &inputs, const std::string &name, size_t rank);
bool given(const Inputs &inputs, const std::string &name);
void expect_shape(const std::string &name, const Shape &got, const Shape &wanted);

// Where the sequences of a batch lie.
struct Sequence {
    int64_t batch, first, last;  // tokens first .. last of row `batch`
};
std::vector<Sequence> sequences(const Inputs &inputs, int64_t B, int64_t T);

// The tensors in type T. Pointers into it stay valid as long as it lives.
template<typename T> class Values {
public:
    explicit Values(const Inputs &inputs) {
        for (const auto &[name, array] : inputs.tensors) {
            if (elements(array.shape) != static_cast<int64_t>(array.values.size()))
                refuse("tensor '" + name + "' has shape " + written(array.shape) + " but " + std::to_string(array.values.size()) +
                       " values");
            values_[name].assign(array.values.begin(), array.values.end());
        }
    }
    const T *operator[](const std::string &name) const { return values_.at(name).data(); }

private:
    std::map<std::string, std::vector<T>> values_;
};

}  // namespace oracle
#endif
