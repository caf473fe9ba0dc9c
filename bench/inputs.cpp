#include "inputs.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace bench {
namespace {

using halation::float32;
using halation::Tensor;

bool is_one_of(const std::string &name, std::initializer_list<const char *> names) {
    for (const char *one : names)
        if (name == one) return true;
    return false;
}

bool begins(const std::string &name, const char *start) {
    return name.rfind(start, 0) == 0;
}

int64_t element_count(const std::vector<int64_t> &shape, const std::string &name) {
    int64_t count = 1;
    bool large = false;
    for (const int64_t extent : shape) large = __builtin_mul_overflow(count, extent, &count) || large;
    if (large || count > INT64_MAX / 8) throw std::runtime_error("the tensor " + name + " would be too large");
    return count;
}

}  // namespace

bool has_letter(const halation_row &row, char letter) {
    for (int i = 0; i < row.input_count; i++)
        if (std::strchr(row.inputs[i].dims, letter)) return true;
    return false;
}

bool has_heads(const halation_row &row) {
    return has_letter(row, 'H') || has_letter(row, 'G');
}

DLDataType type_named(const std::string &name) {
    return name == "f16" ? halation::float16 : name == "bf16" ? halation::bfloat16 : float32;
}

safetensors::Type stored_type(DLDataType type) {
    if (type.bits == 32) return safetensors::Type::f32;
    return type.code == kDLBfloat ? safetensors::Type::bf16 : safetensors::Type::f16;
}

Inputs::Inputs(const halation_row &row, const halation_problem &problem, const Sizes &sizes, Extent extent)
    : problem_(problem), sizes_(sizes) {
    const bool all = extent == Extent::all;
    for (int i = 0; i < row.input_count; i++) {
        const halation_row_tensor &input = row.inputs[i];
        if (!all && input.otherwise != HALATION_DEFAULT_REQUIRED) continue;
        std::string dims = input.dims;
        if (input.last_axis_optional && !all) dims.pop_back();
        add(input.name, dims.c_str(), input.role == HALATION_ROLE_DATA ? problem.type : problem.gate_type);
    }
    Memory &o = allocate("o", row.output_dims, problem.type);
    tensors_.push_back({"o", Tensor(o.bytes.get(), problem.type, o.shape)});
    if (row.state_dims) add_state("initial_state", "final_state", row.state_dims, problem.state_type, all);
    if (row.normalizer_dims) add_state("initial_normalizer", "final_normalizer", row.normalizer_dims, float32, all);
}

Inputs::Memory &Inputs::allocate(const std::string &name, const char *dims, DLDataType type) {
    Memory memory;
    for (const char *letter = dims; *letter; letter++) {
        switch (*letter) {
        case 'B':
        case 'N':
            memory.shape.push_back(sizes_.batch);
            break;
        case 'T':
            memory.shape.push_back(sizes_.tokens);
            break;
        case 'S':
            memory.shape.push_back(sizes_.cached + sizes_.tokens);
            break;
        case 'H':
            memory.shape.push_back(problem_.heads);
            break;
        case 'G':
            memory.shape.push_back(problem_.value_heads);
            break;
        case 'K':
            memory.shape.push_back(problem_.key_dim);
            break;
        default:
            memory.shape.push_back(problem_.value_dim);
        }
    }
    memory.bytes.reset(new char[static_cast<size_t>(element_count(memory.shape, name)) * type.bits / 8]());
    memory_.push_back(std::move(memory));
    return memory_.back();
}

void Inputs::add(const std::string &name, const char *dims, DLDataType type) {
    Memory &memory = allocate(name, dims, type);
    fill(name, memory, type);
    tensors_.push_back({name, Tensor(memory.bytes.get(), type, memory.shape)});
}

// From zero on, the calls that warm up make it what it is.
void Inputs::add_state(const char *initial, const char *final, const char *dims, DLDataType type, bool filled) {
    Memory &memory = allocate(initial, dims, type);
    if (filled) fill(initial, memory, type);
    tensors_.push_back({initial, Tensor(memory.bytes.get(), type, memory.shape)});
    tensors_.push_back({final, tensors_.back().second});
}

// A vector along the last axis at a time.
void Inputs::fill(const std::string &name, Memory &memory, DLDataType type) {
    const int64_t size = memory.shape.back(), count = element_count(memory.shape, name);
    char *to = memory.bytes.get();
    for (int64_t i = 0; size > 0 && i < count / size; i++) {
        const std::vector<double> values = name == "b" && i < static_cast<int64_t>(reads_.size())
                                               ? reads_[static_cast<size_t>(i)]
                                               : vector_of(name, static_cast<size_t>(size));
        const safetensors::Tensor stored = safetensors::tensor(stored_type(type), {size}, values);
        to = std::copy(stored.data.begin(), stored.data.end(), to);
        if (name != "a") continue;
        reads_.push_back(values);  // b = -a/2: a delta rule, under which a state cannot grow
        for (double &value : reads_.back()) value *= -0.5;
    }
}

std::vector<double> Inputs::vector_of(const std::string &name, size_t size) {
    std::vector<double> values(size);
    const auto uniform = [&](double low, double high) {
        std::uniform_real_distribution<double> draw(low, high);
        for (double &value : values) value = draw(random_);
    };
    // Names of gates of a user's own recurrence are understood by their beginnings.
    if (begins(name, "beta")) {
        uniform(0, 1);
    } else if (name == "dt") {
        uniform(0.001, 0.1);
    } else if (name == "A") {
        uniform(-8, -0.5);
    } else if (name == "gamma") {
        uniform(0.9, 1);
    } else if (begins(name, "g")) {
        uniform(-0.1, 0);
    } else if (name == "initial_normalizer") {
        uniform(1, 2);  // a sum of features, none of which is negative
    } else {
        std::normal_distribution<double> draw(0, 1);
        double squares = 0;
        for (double &value : values) {
            value = draw(random_);
            squares += value * value;
        }
        // Unit keys: under a delta rule longer ones would make the state grow.
        const double length = is_one_of(name, {"k", "q", "a", "B", "C"}) ? std::sqrt(squares) : 1;
        for (double &value : values) value /= length;
    }
    return values;
}

}  // namespace bench
