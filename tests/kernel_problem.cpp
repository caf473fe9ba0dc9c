#include "kernel_problem.h"
#include "kernel_device.h"

#include "oracle/rounding.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

namespace kernels {
namespace {

const double infinity = std::numeric_limits<double>::infinity();

bool mentions(const char *dims, char letter) {
    return dims && std::strchr(dims, letter);
}

class Draw {
public:
    explicit Draw(unsigned seed) : generator_(seed) {}
    double uniform(double low, double high) { return low + (high - low) * (static_cast<double>(generator_() >> 8) * 0x1p-24); }
    double normal() {
        double sum = -6;  // of twelve: the standard library's own is not the same everywhere
        for (int i = 0; i < 12; i++) sum += uniform(0, 1);
        return sum;
    }
    double log_gate(Gates gates) {
        const double gentle = -std::exp(uniform(std::log(1e-4), 0));
        switch (gates) {
        case Gates::strong: {
            const double choices[] = {-2661, -104, -30, -1e-4, -1e-4, -1e-4, -1e-4, -1e-4};
            return choices[static_cast<int>(uniform(0, 8))];
        }
        case Gates::resets:
            return uniform(0, 1) < .05 ? -infinity : gentle;
        case Gates::scattered_zeros:
            return uniform(0, 1) < .5 ? 0 : gentle;
        case Gates::zero:
            return 0;
        case Gates::gentle:
            break;
        }
        return gentle;
    }

private:
    std::mt19937 generator_;
};

int64_t count_of(const std::vector<int64_t> &shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
}

// Rows of unit length along the innermost axis.
void normalize(std::vector<double> &values, int64_t width) {
    for (size_t at = 0; at + static_cast<size_t>(width) <= values.size(); at += static_cast<size_t>(width)) {
        double sum = 0;
        for (int64_t i = 0; i < width; i++) sum += values[at + i] * values[at + i];
        if (sum == 0) continue;
        for (int64_t i = 0; i < width; i++) values[at + i] /= std::sqrt(sum);
    }
}

class Filler {
public:
    explicit Filler(Problem &problem) : problem_(problem), row_(*problem.recurrence.row), draw_(problem.seed) {}

    void all() {
        for (int i = 0; i < row_.input_count; i++) {
            const halation_row_tensor &input = row_.inputs[i];
            std::string dims = input.dims;
            if (input.last_axis_optional && !problem_.beta_per_value) dims.pop_back();
            put(input.name, input.role == HALATION_ROLE_GATE ? problem_.gate_type : problem_.type, problem_.shape(dims),
                input.name);
        }
        if (!problem_.initial_state) return;
        if (row_.state_dims) put("initial_state", problem_.state_type, problem_.shape(row_.state_dims), "initial_state");
        if (row_.normalizer_dims)
            put("initial_normalizer", Type::f32, problem_.shape(row_.normalizer_dims), "initial_normalizer");
    }

private:
    void put(const std::string &name, Type type, std::vector<int64_t> shape, const std::string &what) {
        std::vector<double> values(static_cast<size_t>(count_of(shape)));
        for (double &value : values) value = element(what);
        const bool low_rank = has_input(row_, "a") && has_input(row_, "b");
        const bool unit_keys = has_input(row_, "beta") || low_rank;
        if ((name == "k" && unit_keys) || (name == "a" && low_rank)) normalize(values, shape.back());
        if (name == "A")  // Mamba's: -1 .. -N for every channel
            for (size_t i = 0; i < values.size(); i++) values[i] = -1. - static_cast<double>(i % shape.back());
        if (name == "b" && low_rank) {
            const std::vector<double> a = safetensors::values(problem_.inputs.at("a"));
            double eta = 0;
            for (size_t i = 0; i < values.size(); i++) {
                if (i % shape.back() == 0) eta = draw_.uniform(0, 1);
                values[i] = -eta * a[i];
            }
        }
        problem_.inputs[name] = safetensors::tensor(type, std::move(shape), values);
    }

    double element(const std::string &name) {
        if (name == "g" || name == "gv") return draw_.log_gate(problem_.gates);
        if (name == "beta") return draw_.uniform(0, problem_.largest_beta);
        if (name == "gamma") return draw_.uniform(.8, 1);
        if (name == "dt") return std::exp(draw_.uniform(std::log(1e-3), std::log(.5)));
        if (name == "initial_normalizer") return draw_.uniform(.1, 2);
        return draw_.normal();
    }

    Problem &problem_;
    const halation_row &row_;
    Draw draw_;
};

int64_t element_bytes(const Tensor &tensor) {
    return safetensors::bytes(tensor.type);
}

// Elements first .. last - 1 along an axis.
Tensor cut_axis(const Tensor &tensor, size_t axis, int64_t first, int64_t last) {
    Tensor result = tensor;
    int64_t outer = 1, inner = element_bytes(tensor);
    for (size_t i = 0; i < axis; i++) outer *= tensor.shape[i];
    for (size_t i = axis + 1; i < tensor.shape.size(); i++) inner *= tensor.shape[i];
    result.shape[axis] = last - first;
    result.data.clear();
    for (int64_t o = 0; o < outer; o++) {
        const auto from = tensor.data.begin() + o * tensor.shape[axis] * inner;
        result.data.insert(result.data.end(), from + first * inner, from + last * inner);
    }
    return result;
}

// Calls visit(tensor, axis) for each input that has the letter; states count as N.
template<typename Visit> void each_with(Problem &problem, char letter, Visit visit) {
    const halation_row &row = *problem.recurrence.row;
    for (auto &[name, tensor] : problem.inputs) {
        const char *dims = name == "initial_state"        ? row.state_dims
                           : name == "initial_normalizer" ? row.normalizer_dims
                                                          : nullptr;
        for (int i = 0; !dims && i < row.input_count; i++)
            if (name == row.inputs[i].name) dims = row.inputs[i].dims;
        if (mentions(dims, letter)) visit(tensor, static_cast<size_t>(std::strchr(dims, letter) - dims));
    }
}

}  // namespace

const char *name_of(Gates gates) {
    const char *const names[] = {"gentle", "strong", "resets", "scattered zeros", "zero"};
    return names[static_cast<int>(gates)];
}

std::vector<Recurrence> all_recurrences() {
    std::vector<Recurrence> all;
    const halation_kernel_table &table = *halation_kernels();
    for (int r = 0; r < table.row_count; r++) {
        std::vector<std::string> maps;
        for (int i = 0; i < table.kernel_count; i++) {
            const halation_kernel &kernel = table.kernels[i];
            if (kernel.backend != tested_backend()) continue;
            const std::string map = kernel.feature_map ? kernel.feature_map : "";
            if (!std::strcmp(kernel.recurrence, table.rows[r].name) && std::find(maps.begin(), maps.end(), map) == maps.end())
                maps.push_back(map);
        }
        for (const std::string &map : maps) all.push_back({&table.rows[r], map});
    }
    return all;
}

bool exists(const std::string &name) {
    for (const Recurrence &candidate : all_recurrences())
        if (name == candidate.row->name) return true;
    return false;
}

Recurrence recurrence(const std::string &name) {
    Recurrence found;
    for (const Recurrence &candidate : all_recurrences()) {
        if (name != candidate.row->name) continue;
        const char *usual = candidate.row->default_feature_map;
        if (!found.row || (usual && candidate.feature_map == usual)) found = candidate;
    }
    if (!found.row) throw std::invalid_argument("no kernel of recurrence " + name + " was built");
    return found;
}

bool has_input(const halation_row &row, const std::string &name) {
    for (int i = 0; i < row.input_count; i++)
        if (name == row.inputs[i].name) return true;
    return false;
}

bool has_letter(const halation_row &row, char letter) {
    for (int i = 0; i < row.input_count; i++)
        if (mentions(row.inputs[i].dims, letter)) return true;
    return mentions(row.output_dims, letter) || mentions(row.state_dims, letter) || mentions(row.normalizer_dims, letter);
}

std::vector<std::pair<Type, Type>> all_types() {
    const auto type_of = [](DLDataType type) {
        return type.bits == 32 ? Type::f32 : type.code == kDLBfloat ? Type::bf16 : Type::f16;
    };
    std::vector<std::pair<Type, Type>> all;
    const halation_kernel_table &table = *halation_kernels();
    for (int i = 0; i < table.kernel_count; i++) {
        if (table.kernels[i].backend != tested_backend()) continue;
        const std::pair<Type, Type> types = {type_of(table.kernels[i].type), type_of(table.kernels[i].gate_type)};
        if (std::find(all.begin(), all.end(), types) == all.end()) all.push_back(types);
    }
    return all;
}

std::vector<int64_t> Problem::shape(const std::string &dims) const {
    std::vector<int64_t> result;
    for (char letter : dims) {
        switch (letter) {
        case 'B':
            result.push_back(B);
            break;
        case 'N':
            result.push_back(sequences());
            break;
        case 'T':
            result.push_back(T);
            break;
        case 'S':
            result.push_back(cache_offsets.empty() ? T + before : cache_offsets.back());
            break;
        case 'H':
            result.push_back(H);
            break;
        case 'G':
            result.push_back(HV);
            break;
        case 'K':
            result.push_back(K);
            break;
        case 'V':
            result.push_back(V);
            break;
        default:
            throw std::invalid_argument("dims " + dims);
        }
    }
    return result;
}

std::string Problem::text() const {
    std::string text = recurrence.row->name;
    if (!recurrence.feature_map.empty()) text += " " + recurrence.feature_map;
    text += std::string(" ") + safetensors::name(type) + " gates " + safetensors::name(gate_type);
    const auto add = [&](const char *name, int64_t value) { text += std::string(" ") + name + std::to_string(value); };
    add("B", B), add("T", T), add("H", H), add("HV", HV), add("K", K), add("V", V);
    if (before) add("before", before);
    if (HV > H) text += heads == HALATION_HEADS_TILED ? " tiled" : " grouped";
    if (!causal) text += " not causal";
    if (!initial_state) text += " no state";
    if (state_type != Type::f32) text += std::string(" states ") + safetensors::name(state_type);
    if (!offsets.empty()) text += " packed";
    return text + ", gates " + name_of(gates) + ", beta to " + std::to_string(largest_beta) + ", seed " + std::to_string(seed);
}

void fill(Problem &problem) {
    const halation_row &row = *problem.recurrence.row;
    if (!has_letter(row, 'G') && !has_letter(row, 'H')) problem.H = problem.HV = 1;
    if (!has_letter(row, 'K')) problem.K = 1;
    if (!has_letter(row, 'S')) problem.before = 0;
    if (!row.state_dims) problem.initial_state = false;
    problem.inputs.clear();
    Filler(problem).all();
}

void each_problem(const Problem &like, const std::function<bool(const halation_row &)> &which,
                  const std::function<void(Problem &)> &body) {
    static size_t turn = 0;
    for (const Recurrence &recurrence : all_recurrences()) {
        if (!which(*recurrence.row)) continue;
        for (const auto &[type, gate_type] : all_types()) {
            if (turn++ % stride_of_sample()) continue;
            Problem problem = like;
            problem.recurrence = recurrence;
            problem.type = type;
            problem.gate_type = gate_type;
            fill(problem);
            body(problem);
        }
    }
}

size_t stride_of_sample() {
    const char *text = std::getenv("HALATION_TEST_SAMPLE");
    return text ? static_cast<size_t>(std::max(1, std::atoi(text))) : 1;
}

bool any(const halation_row &) {
    return true;
}
bool has_state(const halation_row &row) {
    return row.state_dims != nullptr;
}

void edit(Problem &problem, const std::string &input, const std::function<double(const std::vector<int64_t> &, double)> &value) {
    Tensor &tensor = problem.inputs.at(input);
    std::vector<double> values = safetensors::values(tensor);
    std::vector<int64_t> index(tensor.shape.size(), 0);
    for (double &element : values) {
        element = value(index, element);
        for (size_t axis = index.size(); axis-- > 0;) {
            if (++index[axis] < tensor.shape[axis]) break;
            index[axis] = 0;
        }
    }
    tensor = safetensors::tensor(tensor.type, tensor.shape, values);
}

void edit_gates(Problem &problem, const std::function<double(int64_t, int64_t, double)> &value) {
    const halation_row &row = *problem.recurrence.row;
    for (int i = 0; i < row.input_count; i++) {
        const std::string name = row.inputs[i].name, dims = row.inputs[i].dims;
        if (name != "g" && name != "gv") continue;
        const bool channels = dims.back() == 'K' || dims.back() == 'V';
        edit(problem, name,
             [&](const std::vector<int64_t> &index, double old) { return value(index[1], channels ? index.back() : 0, old); });
    }
}

Problem cut(const Problem &problem, int64_t first, int64_t last) {
    Problem result = problem;
    result.T = last - first;
    each_with(result, 'T', [&](Tensor &tensor, size_t axis) { tensor = cut_axis(tensor, axis, first, last); });
    return result;
}

Tensor cut_tokens(const Tensor &outputs, int64_t first, int64_t last) {
    return cut_axis(outputs, 1, first, last);
}

Problem alone(const Problem &problem, int64_t n) {
    Problem result = problem;
    const auto keep = [&](char letter, int64_t first, int64_t last) {
        each_with(result, letter, [&](Tensor &tensor, size_t axis) { tensor = cut_axis(tensor, axis, first, last); });
    };
    keep('N', n, n + 1);
    if (problem.offsets.empty()) {
        keep('B', n, n + 1);
    } else {
        keep('T', problem.offsets[n], problem.offsets[n + 1]);
        if (!problem.cache_offsets.empty()) keep('S', problem.cache_offsets[n], problem.cache_offsets[n + 1]);
        result.T = problem.offsets[n + 1] - problem.offsets[n];
        result.before = problem.cache_offsets.empty() ? 0 : problem.cache_offsets[n + 1] - problem.cache_offsets[n] - result.T;
    }
    result.B = 1;
    result.offsets.clear();
    result.cache_offsets.clear();
    return result;
}

oracle::Inputs oracle_inputs(const Problem &problem) {
    oracle::Inputs inputs;
    inputs.recurrence = problem.recurrence.row->name;
    inputs.scale = problem.scale;
    inputs.feature_map = problem.recurrence.feature_map;
    inputs.heads = problem.heads == HALATION_HEADS_TILED ? oracle::Heads::tiled : oracle::Heads::grouped;
    inputs.causal = problem.causal;
    inputs.offsets = problem.offsets;
    inputs.cache_offsets = problem.cache_offsets;
    for (const auto &[name, tensor] : problem.inputs) inputs.tensors[name] = {tensor.shape, safetensors::values(tensor)};
    return inputs;
}

std::map<std::string, Expected> expected(const Problem &problem) {
    const oracle::Inputs inputs = oracle_inputs(problem);
    oracle::Outputs outputs = oracle::run(inputs);
    const oracle::Bounds bounds = oracle::bound(inputs, outputs);
    std::map<std::string, Expected> all;
    const auto add = [&](const char *name, oracle::Array &value, double bound, Type type) {
        if (value.shape.empty()) return;
        bound += oracle::rounding(type, value);
        all[name] = {oracle::within_range(std::move(value), type), bound};
    };
    add("o", outputs.o, bounds.o, problem.type);
    add("final_state", outputs.final_state, bounds.final_state, problem.state_type);
    add("final_normalizer", outputs.final_normalizer, bounds.final_normalizer, Type::f32);
    return all;
}

}  // namespace kernels
