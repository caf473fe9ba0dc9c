#include "demo_runner.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

namespace halation::demo {
namespace {

Problem problem_of(const Memory &memory, halation_form form) {
    Problem problem(memory.recurrence.c_str(), heads, heads, dim, dim);
    problem.form = form;
    problem.scale = memory.scale;
    if (!memory.feature_map.empty()) problem.feature_map = memory.feature_map.c_str();
    return problem;
}

int64_t extent(char letter) {
    switch (letter) {
    case 'H':
    case 'G':
        return heads;
    case 'K':
    case 'V':
        return dim;
    default:
        return 1;  // one sequence; T and S are set by each run
    }
}

int64_t elements(const char *dims) {
    int64_t count = 1;
    for (const char *letter = dims; *letter; letter++) count *= extent(*letter);
    return count;
}

}  // namespace

const halation_row *find_row(const std::string &recurrence) {
    const halation_kernel_table &table = *halation_kernels();
    for (int32_t i = 0; i < table.row_count; i++) {
        if (recurrence == table.rows[i].name) return &table.rows[i];
    }
    return nullptr;
}

std::string refusal(const Context &context, const Memory &memory, halation_form form) {
    if (!find_row(memory.recurrence)) return "not in this build";
    const Problem problem = problem_of(memory, form);
    if (halation_can_run(context.get(), &problem, nullptr) == HALATION_OK) return "";
    return halation_last_message();
}

Runner::Runner(const Context &context, const Task &task, const Memory &memory, halation_form form)
    : task_(task), memory_(memory), plan_(std::make_unique<Plan>(context, problem_of(memory, form))) {
    const halation_row &row = *find_row(memory.recurrence);
    for (int32_t i = 0; i < row.input_count; i++) {
        const halation_row_tensor &input = row.inputs[i];
        const std::string name = input.name;
        const bool given = name == "q" || name == "k" || name == "v" || memory.gate(name);
        if (!given && input.otherwise != HALATION_DEFAULT_REQUIRED) continue;
        if (!given)
            throw std::runtime_error(fmt::format("the demonstration does not know input '{}' of {}", name, memory.recurrence));
        add(input.name, input.dims);
    }
    add("o", row.output_dims);
    if (row.state_dims) {
        state_.resize(static_cast<size_t>(elements(row.state_dims)));
        add("initial_state", row.state_dims);
        add("final_state", row.state_dims);
    }
    if (row.normalizer_dims) {
        normalizer_.resize(static_cast<size_t>(elements(row.normalizer_dims)));
        add("initial_normalizer", row.normalizer_dims);
        add("final_normalizer", row.normalizer_dims);
    }
    tensors_.resize(arguments_.size());
    for (size_t i = 0; i < arguments_.size(); i++) named_.push_back({arguments_[i].name.c_str(), &tensors_[i]});
}

void Runner::add(const char *name, const std::string &dims) {
    Argument argument;
    argument.name = name;
    for (size_t i = 0; i < dims.size(); i++) {
        argument.shape.push_back(extent(dims[i]));
        if (dims[i] == 'T' || dims[i] == 'S') argument.token_dim = static_cast<int>(i);
        argument.whole_cache |= dims[i] == 'S';
    }
    int64_t stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        argument.strides.insert(argument.strides.begin(), stride);
        stride *= argument.shape[i];
    }
    arguments_.push_back(std::move(argument));
}

void Runner::load(int64_t first, int64_t count) {
    for (Argument &argument : arguments_) {
        const int64_t offset = first * heads * dim;
        argument.first = first;
        if (const Gate *gate = memory_.gate(argument.name)) {
            const bool by_token = argument.token_dim >= 0;
            const int64_t from = argument.whole_cache || !by_token ? 0 : first, to = by_token ? first + count : 1;
            // What is left after the dims of sequence and token: heads, heads and channels, or nothing.
            int64_t per_token = 1, channels = 1;
            for (size_t i = 0; i < argument.shape.size(); i++) {
                if (static_cast<int>(i) != argument.token_dim) per_token *= argument.shape[i];
            }
            if (argument.shape.back() == dim) channels = dim;
            argument.own.resize(static_cast<size_t>((to - from) * per_token));
            float *value = argument.own.data();
            for (int64_t t = from; t < to; t++) {
                for (int64_t i = 0; i < per_token; i++) {
                    *value++ = gate->at(task_, t, static_cast<int>(i / channels), static_cast<int>(i % channels));
                }
            }
            argument.base = argument.own.data();
            argument.first = from;
        } else if (argument.name == "q") {
            argument.base = task_.queries() + offset;
        } else if (argument.name == "k") {
            argument.base = task_.keys() + (argument.whole_cache ? 0 : offset);
        } else if (argument.name == "v") {
            // One vector for all heads: a stride of 0 over heads.
            argument.base = task_.values() + (argument.whole_cache ? 0 : first * dim);
            argument.strides = {0, dim, 0, 1};
        } else if (argument.name.find("state") != std::string::npos) {
            argument.base = state_.data();
        } else if (argument.name.find("normalizer") != std::string::npos) {
            argument.base = normalizer_.data();
        }
    }
}

void Runner::run(int64_t first, int64_t count, float *reads) {
    for (size_t i = 0; i < arguments_.size(); i++) {
        Argument &argument = arguments_[i];
        const float *data = argument.name == "o" ? reads : argument.base;
        if (argument.token_dim >= 0) {
            argument.shape[argument.token_dim] = argument.whole_cache ? first + count : count;
            if (argument.name != "o" && !argument.whole_cache) {
                data += (first - argument.first) * argument.strides[argument.token_dim];
            }
        }
        DLTensor &tensor = tensors_[i];
        tensor.data = const_cast<float *>(data);
        tensor.device = {kDLCPU, 0};
        tensor.ndim = static_cast<int32_t>(argument.shape.size());
        tensor.dtype = float32;
        tensor.shape = argument.shape.data();
        tensor.strides = argument.strides.data();
        tensor.byte_offset = 0;
    }
    auto arguments = HALATION_INIT(halation_arguments);
    arguments.tensors = named_.data();
    arguments.tensor_count = static_cast<int32_t>(named_.size());
    check(halation_run(plan_->get(), &arguments));
}

void Runner::forget() {
    std::fill(state_.begin(), state_.end(), 0.0f);
    std::fill(normalizer_.begin(), normalizer_.end(), 0.0f);
}

double Runner::state_norm() const {
    double squares = 0;
    for (float x : state_) squares += static_cast<double>(x) * x;
    return std::sqrt(squares);
}

}  // namespace halation::demo
