#include "problem_file.h"

#include "commands.h"
#include "shapes.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace halation::cli {
namespace {

using safetensors::in_quotes;
using safetensors::Tensor;
using safetensors::Type;

// Builds a ProblemFile; every message begins with the file's path.
class Reader {
public:
    Reader(const std::string &path, const std::string &recurrence, const std::string &heads) : file_(safetensors::read(path)) {
        problem_.path = path;
        read_metadata(recurrence, heads);
        sort_tensors();
        check_types();
        check_shapes();
        read_offsets();
        check_states();
    }
    ProblemFile take() { return std::move(problem_); }

private:
    template<typename... Values> [[noreturn]] void refuse(const char *format, const Values &...values) const {
        throw Error(problem_.path + ": " + fmt::format(fmt::runtime(format), values...));
    }

    const std::string *metadata(const char *key) const {
        const auto found = file_.metadata.find(key);
        return found == file_.metadata.end() ? nullptr : &found->second;
    }

    void read_metadata(const std::string &recurrence, const std::string &heads_option) {
        const std::string *named = metadata("recurrence");
        if (!named && recurrence.empty()) refuse("metadata has no 'recurrence', which says what the file is for");
        if (named && !recurrence.empty() && *named != recurrence)
            refuse("metadata says recurrence {}, but {} was asked for", in_quotes(*named), in_quotes(recurrence));
        try {
            problem_.row = &row_named(recurrence.empty() ? *named : recurrence);
        } catch (const Error &error) {  // a name from the command line is no fault of the file
            if (recurrence.empty()) refuse("metadata: {}", error.what());
            throw;
        }

        problem_.scale = std::nan("");
        if (const std::string *scale = metadata("scale")) {
            char *end = nullptr;
            problem_.scale = std::strtod(scale->c_str(), &end);
            if (scale->empty() || *end || !std::isfinite(problem_.scale) ||
                problem_.scale == 0)  // 0 asks the runtime for the default
                refuse("metadata scale is {}, but must be a finite number other than 0", in_quotes(*scale));
        }
        if (const std::string *map = metadata("feature_map")) {
            if (!problem_.row->default_feature_map)
                refuse("metadata feature_map is {}, but {} has no feature map", in_quotes(*map), problem_.row->name);
            if (*map != "elu+1" && *map != "relu" && *map != "softmax" && *map != "identity")
                refuse("metadata feature_map is {}, but must be elu+1, relu, softmax or identity", in_quotes(*map));
            problem_.feature_map = *map;
        }
        const std::string *in_file = metadata("heads");
        if (in_file && *in_file != "grouped" && *in_file != "tiled")
            refuse("metadata heads is {}, but must be grouped or tiled", in_quotes(*in_file));
        if ((heads_option.empty() ? in_file ? *in_file : "grouped" : heads_option) == "tiled")
            problem_.heads = HALATION_HEADS_TILED;
        if (const std::string *causal = metadata("causal")) {
            const bool yes = *causal == "true" || *causal == "True" || *causal == "1";
            if (!yes && *causal != "false" && *causal != "False" && *causal != "0")
                refuse("metadata causal is {}, but must be true or false", in_quotes(*causal));
            problem_.causal = yes;
        }
    }

    const halation_row_tensor *input(const std::string &name) const {
        for (int i = 0; i < problem_.row->input_count; i++)
            if (name == problem_.row->inputs[i].name) return &problem_.row->inputs[i];
        return nullptr;
    }

    const char *state_dims(const std::string &name) const {
        if (name == "initial_state") return problem_.row->state_dims;
        if (name == "initial_normalizer") return problem_.row->normalizer_dims;
        return nullptr;
    }

    bool has_cache() const {
        for (int i = 0; i < problem_.row->input_count; i++)
            if (std::strchr(problem_.row->inputs[i].dims, 'S')) return true;
        return false;
    }

    // All that a file for this recurrence may hold, for messages.
    std::string allowed_names() const {
        const halation_row &row = *problem_.row;
        std::string names;
        for (int i = 0; i < row.input_count; i++) names += std::string(i ? ", " : "") + row.inputs[i].name;
        if (row.state_dims) names += ", initial_state";
        if (row.normalizer_dims) names += ", initial_normalizer";
        names += has_cache() ? ", offsets, cache_offsets, expect.o" : ", offsets, expect.o";
        if (row.state_dims) names += ", expect.final_state";
        if (row.normalizer_dims) names += ", expect.final_normalizer";
        return names;
    }

    void sort_tensors() {
        const halation_row &row = *problem_.row;
        for (auto &[name, tensor] : file_.tensors) {
            if (input(name) || state_dims(name))
                problem_.inputs[name] = std::move(tensor);
            else if (name == "offsets")
                offsets_ = &tensor;
            else if (name == "cache_offsets" && has_cache())
                cache_offsets_ = &tensor;
            else if (name == "expect.o" || (name == "expect.final_state" && row.state_dims) ||
                     (name == "expect.final_normalizer" && row.normalizer_dims))
                problem_.expected[name.substr(7)] = std::move(tensor);
            else
                refuse("tensor {} is none that {} has: {}", in_quotes(name), row.name, allowed_names());
        }
        for (int i = 0; i < row.input_count; i++)
            if (row.inputs[i].otherwise == HALATION_DEFAULT_REQUIRED && !problem_.inputs.count(row.inputs[i].name))
                refuse("tensor '{}' {} is missing, which {} needs", row.inputs[i].name, dims_text(row, row.inputs[i]), row.name);
    }

    static bool is_float(Type type) { return type == Type::f32 || type == Type::f16 || type == Type::bf16; }

    void check_types() {
        const halation_row &row = *problem_.row;
        const char *data = nullptr, *gate = nullptr;  // the first of each role
        for (int i = 0; i < row.input_count; i++) {
            const char *name = row.inputs[i].name;
            const auto found = problem_.inputs.find(name);
            if (found == problem_.inputs.end() || row.inputs[i].role != HALATION_ROLE_DATA) continue;
            const Type type = found->second.type;
            if (!is_float(type)) refuse("tensor '{}' is {}, but must be F32, F16 or BF16", name, safetensors::name(type));
            if (data && type != problem_.type)
                refuse("tensor '{}' is {}, but must be {} as '{}' is", name, safetensors::name(type),
                       safetensors::name(problem_.type), data);
            if (!data) data = name;
            problem_.type = type;
        }
        for (int i = 0; i < row.input_count; i++) {
            const char *name = row.inputs[i].name;
            const auto found = problem_.inputs.find(name);
            if (found == problem_.inputs.end() || row.inputs[i].role == HALATION_ROLE_DATA) continue;
            const Type type = found->second.type;
            const char *name_of_type = safetensors::name(type);
            if (row.inputs[i].role == HALATION_ROLE_STATE) {
                if (type != Type::f32) refuse("tensor '{}' is {}, but must be F32", name, name_of_type);
                continue;
            }
            if (type != Type::f32 && type != problem_.type)
                refuse("tensor '{}' is {}, but must be F32{}", name, name_of_type,
                       problem_.type == Type::f32 ? ""
                                                  : fmt::format(" or {} as '{}' is", safetensors::name(problem_.type), data));
            if (gate && type != problem_.gate_type)
                refuse("tensor '{}' is {}, but must be {} as '{}' is: gates share one type", name, name_of_type,
                       safetensors::name(problem_.gate_type), gate);
            if (!gate) gate = name;
            problem_.gate_type = type;
        }
        if (!gate) problem_.gate_type = gate_type_without_gates();
        const auto state = problem_.inputs.find("initial_state"), normalizer = problem_.inputs.find("initial_normalizer");
        if (state != problem_.inputs.end()) problem_.state_type = state->second.type;
        if (problem_.state_type != Type::f32 && problem_.state_type != Type::bf16)
            refuse("tensor 'initial_state' is {}, but must be F32 or BF16", safetensors::name(problem_.state_type));
        if (normalizer != problem_.inputs.end() && normalizer->second.type != Type::f32)
            refuse("tensor 'initial_normalizer' is {}, but must be F32", safetensors::name(normalizer->second.type));
        for (const auto &[name, tensor] : problem_.expected)
            if (!is_float(tensor.type))
                refuse("tensor 'expect.{}' is {}, but must be F32, F16 or BF16", name, safetensors::name(tensor.type));
    }

    // No gate is given: any type would do, so one that a kernel was compiled for.
    Type gate_type_without_gates() const {
        const halation_kernel_table *table = halation_kernels();
        for (int i = 0; i < table->kernel_count; i++) {
            const halation_kernel &kernel = table->kernels[i];
            const int bits = static_cast<int>(8 * safetensors::bytes(problem_.type));
            const int code = problem_.type == Type::bf16 ? kDLBfloat : kDLFloat;
            if (!std::strcmp(kernel.recurrence, problem_.row->name) && kernel.type.bits == bits && kernel.type.code == code)
                return kernel.gate_type.bits == 32 ? Type::f32 : problem_.type;
        }
        return Type::f32;
    }

    void check_input(const halation_row_tensor &input, const Tensor &tensor) {
        const std::string dims = input.dims;
        const bool short_one = input.last_axis_optional && tensor.shape.size() + 1 == dims.size();
        if (!short_one && tensor.shape.size() != dims.size())
            refuse("tensor '{}' has shape {}, but must be {}", input.name, shape_text(tensor.shape),
                   dims_text(*problem_.row, input));
        check_shape(input.name, tensor, short_one ? dims.substr(0, dims.size() - 1) : dims);
    }

    // Holds a shape against the extents of the letters so far, and learns those that are new.
    void check_shape(const std::string &name, const Tensor &tensor, const std::string &dims) {
        const halation_row &row = *problem_.row;
        if (tensor.shape.size() != dims.size())
            refuse("tensor '{}' has shape {}, but must be {}", name, shape_text(tensor.shape), dims_text(row, dims));
        for (size_t i = 0; i < dims.size(); i++) {
            const int64_t extent = tensor.shape[i];
            const auto [known, is_new] = problem_.extents.emplace(dims[i], extent);
            if (is_new) extent_from_[dims[i]] = name;
            if (is_new && extent < 1 && std::strchr("HGKV", dims[i]))
                refuse("tensor '{}' has shape {}, but {} must be at least 1 in {}", name, shape_text(tensor.shape),
                       letter_text(row, dims[i]), dims_text(row, dims));
            if (known->second != extent)
                refuse("tensor '{}' has shape {}, but must be {} with {} = {}{}", name, shape_text(tensor.shape),
                       dims_text(row, dims), letter_text(row, dims[i]), known->second, source_of(dims[i]));
        }
    }

    std::string source_of(char letter) const {
        const auto found = extent_from_.find(letter);
        return found == extent_from_.end() ? "" : fmt::format(" as in '{}'", found->second);
    }

    void check_shapes() {
        const halation_row &row = *problem_.row;
        for (int i = 0; i < row.input_count; i++) {
            const auto found = problem_.inputs.find(row.inputs[i].name);
            if (found != problem_.inputs.end()) check_input(row.inputs[i], found->second);
        }
        const auto H = problem_.extents.find('H'), G = problem_.extents.find('G');
        if (H != problem_.extents.end() && G != problem_.extents.end() && G->second % H->second != 0)
            refuse("tensor '{}' has HV = {} heads, but must have a multiple of the H = {} of '{}'", extent_from_['G'], G->second,
                   H->second, extent_from_['H']);
    }

    // [N+1] numbers that never fall from 0 to the extent of `letter`.
    std::vector<int64_t> offsets_in(const char *name, const Tensor &tensor, char letter) {
        if (tensor.type != Type::i32 && tensor.type != Type::i64)
            refuse("tensor '{}' is {}, but must be I32 or I64", name, safetensors::name(tensor.type));
        if (tensor.shape.size() != 1 || tensor.shape[0] < 1)
            refuse("tensor '{}' has shape {}, but must be [N+1], N being the number of sequences", name,
                   shape_text(tensor.shape));
        std::vector<int64_t> offsets;
        for (int64_t i = 0; i < tensor.shape[0]; i++) {
            int64_t offset;
            if (tensor.type == Type::i64) {
                std::memcpy(&offset, tensor.data.data() + 8 * i, 8);
            } else {
                int32_t narrow;
                std::memcpy(&narrow, tensor.data.data() + 4 * i, 4);
                offset = narrow;
            }
            if (i == 0 && offset != 0) refuse("tensor '{}' begins with {}, but must begin with 0", name, offset);
            if (i > 0 && offset < offsets.back())
                refuse("tensor '{}' falls from {} to {} at element {}, but must never fall", name, offsets.back(), offset, i);
            offsets.push_back(offset);
        }
        if (offsets.back() != problem_.extents[letter])
            refuse("tensor '{}' ends with {}, but must end with {} = {}", name, offsets.back(), letter, problem_.extents[letter]);
        return offsets;
    }

    void read_offsets() {
        problem_.extents['N'] = problem_.extents['B'];
        extent_from_['N'] = extent_from_['B'];
        if (cache_offsets_ && !offsets_) refuse("there are 'cache_offsets', but no 'offsets' of the queries");
        if (!offsets_) return;
        problem_.offsets = offsets_in("offsets", *offsets_, 'T');
        if (problem_.extents['B'] != 1)
            refuse("tensor '{}' has B = {}, but must have B = 1 because there are 'offsets'", extent_from_['B'],
                   problem_.extents['B']);
        problem_.extents['N'] = offsets_->shape[0] - 1;
        extent_from_['N'] = "offsets";
        if (!has_cache()) return;
        if (!cache_offsets_ && problem_.extents['S'] != problem_.extents['T'])
            refuse("there are 'offsets', but no 'cache_offsets', without which S = {} must be T = {}", problem_.extents['S'],
                   problem_.extents['T']);
        problem_.cache_offsets = cache_offsets_ ? offsets_in("cache_offsets", *cache_offsets_, 'S') : problem_.offsets;
        if (problem_.cache_offsets.size() != problem_.offsets.size())
            refuse("tensor 'cache_offsets' has {} elements, but must have {} as 'offsets' has", problem_.cache_offsets.size(),
                   problem_.offsets.size());
    }

    void check_states() {
        const halation_row &row = *problem_.row;
        for (const char *name : {"initial_state", "initial_normalizer"}) {
            const auto found = problem_.inputs.find(name);
            if (found != problem_.inputs.end()) check_shape(name, found->second, state_dims(name));
        }
        for (const auto &[name, tensor] : problem_.expected) {
            const char *dims = name == "o" ? row.output_dims : name == "final_state" ? row.state_dims : row.normalizer_dims;
            check_shape("expect." + name, tensor, dims);
        }
    }

    safetensors::File file_;
    ProblemFile problem_;
    const Tensor *offsets_ = nullptr, *cache_offsets_ = nullptr;
    std::map<char, std::string> extent_from_;  // the tensor that an extent was first seen in
};

}  // namespace

std::vector<int64_t> ProblemFile::shape(const char *dims) const {
    std::vector<int64_t> shape;
    for (const char *letter = dims; *letter; letter++) shape.push_back(extents.at(*letter));
    return shape;
}

const halation_row &row_named(const std::string &recurrence) {
    const halation_kernel_table *table = halation_kernels();
    std::string names;
    for (int i = 0; i < table->row_count; i++) {
        if (recurrence == table->rows[i].name) return table->rows[i];
        names += std::string(i ? ", " : "") + table->rows[i].name;
    }
    throw Error(fmt::format("there is no recurrence {}; there are {}", in_quotes(recurrence), names));
}

ProblemFile read_problem(const std::string &path, const std::string &recurrence, const std::string &heads) {
    return Reader(path, recurrence, heads).take();
}

}  // namespace halation::cli
