// The tensors of a call on random values, such that nothing grows or dies out over many calls.
#ifndef HALATION_BENCH_INPUTS_H
#define HALATION_BENCH_INPUTS_H

#include "halation.hpp"
#include "halation_kernels.h"
#include "safetensors/safetensors.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace bench {

struct Sizes {
    int64_t batch, tokens, cached;  // cached: tokens in the cache of softmax before the queries
};

// What there is besides the inputs that a call needs.
enum class Extent {
    required,  // nothing: optional inputs are left out, states start at zero
    all,       // optional inputs and axes too, and states that are not zero
};

// Whether a tensor of the row has the letter among its dims.
bool has_letter(const halation_row &row, char letter);
bool has_heads(const halation_row &row);

DLDataType type_named(const std::string &name);  // f32, f16, bf16
safetensors::Type stored_type(DLDataType type);

class Inputs {
public:
    // Inputs, the output and, in place as when decoding, the states. Points to `problem`.
    Inputs(const halation_row &row, const halation_problem &problem, const Sizes &sizes, Extent extent = Extent::required);

    const halation::NamedTensors &tensors() const { return tensors_; }

private:
    struct Memory {
        std::unique_ptr<char[]> bytes;
        std::vector<int64_t> shape;
    };
    Memory &allocate(const std::string &name, const char *dims, DLDataType type);
    void add(const std::string &name, const char *dims, DLDataType type);
    void add_state(const char *initial, const char *final, const char *dims, DLDataType type, bool filled);
    void fill(const std::string &name, Memory &memory, DLDataType type);
    std::vector<double> vector_of(const std::string &name, size_t size);

    const halation_problem &problem_;
    Sizes sizes_;
    std::mt19937 random_{1};
    std::vector<Memory> memory_;
    halation::NamedTensors tensors_;
    std::vector<std::vector<double>> reads_;  // rwkv7: the vectors `a`, which `b` depends on
};

}  // namespace bench
#endif
