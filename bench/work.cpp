#include "work.h"

#include <algorithm>
#include <sstream>

namespace bench {
namespace {

double extent_of(char letter, const halation_problem &problem) {
    switch (letter) {
    case 'H':
        return static_cast<double>(problem.heads);
    case 'G':
        return static_cast<double>(problem.value_heads);
    case 'K':
        return static_cast<double>(problem.key_dim);
    case 'V':
        return static_cast<double>(problem.value_dim);
    default:
        return 1;
    }
}

double elements(const std::string &dims, const halation_problem &problem) {
    double count = 1;
    for (const char letter : dims) count *= extent_of(letter, problem);
    return count;
}

}  // namespace

Work work_of(const halation_row &row, const halation_problem &problem, const Sizes &sizes) {
    Work work{};
    const double tokens = static_cast<double>(sizes.batch * sizes.tokens);
    if (has_letter(row, 'S')) {
        // Every query meets the whole cache and, on average, half of the keys of its own call.
        const double seen = static_cast<double>(sizes.cached) + 0.5 * static_cast<double>(sizes.tokens + 1);
        const double pairs = tokens * seen * elements("G", problem);
        work.multiply_adds = pairs * (elements("K", problem) + elements("V", problem));
        work.exps = pairs;
    } else {
        // bidirectional keeps its state to itself
        const std::string state = row.state_dims ? row.state_dims : "GKV";
        work.multiply_adds = tokens * row.state_products * elements(state, problem);
        std::istringstream all(row.exps ? row.exps : "");
        for (std::string dims; std::getline(all, dims, ',');) work.exps += tokens * elements(dims, problem);
    }
    const auto add = [&](const char *dims, DLDataType type, double times) {
        double bytes = elements(dims, problem) * type.bits / 8;
        for (const char *letter = dims; *letter; letter++) {
            if (*letter == 'B' || *letter == 'N') bytes *= static_cast<double>(sizes.batch);
            if (*letter == 'T') bytes *= static_cast<double>(sizes.tokens);
            if (*letter == 'S') bytes *= static_cast<double>(sizes.cached + sizes.tokens);
        }
        work.bytes += times * bytes;
    };
    for (int i = 0; i < row.input_count; i++) {
        const halation_row_tensor &input = row.inputs[i];
        if (input.otherwise != HALATION_DEFAULT_REQUIRED) continue;
        std::string dims = input.dims;
        if (input.last_axis_optional) dims.pop_back();
        add(dims.c_str(), input.role == HALATION_ROLE_DATA ? problem.type : problem.gate_type, 1);
    }
    add(row.output_dims, problem.type, 1);
    // Read and written.
    if (row.state_dims) add(row.state_dims, problem.state_type, 2);
    if (row.normalizer_dims) add(row.normalizer_dims, halation::float32, 2);
    return work;
}

double Floor::seconds() const {
    return std::max({multiply_adds, exps, bytes});
}

const char *Floor::binding() const {
    return multiply_adds >= exps && multiply_adds >= bytes ? "multiply-adds" : exps >= bytes ? "exps" : "memory";
}

Floor floor_of(const Work &work, const Limits &limits) {
    return {work.multiply_adds / limits.multiply_adds_per_second, work.exps / limits.exps_per_second,
            work.bytes / limits.bytes_per_second};
}

}  // namespace bench
