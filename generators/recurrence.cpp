#include "recurrence.h"

namespace halation {

const char *name_of(Form form) {
    switch (form) {
    case Form::recurrent:
        return "recurrent";
    case Form::chunkwise:
        return "chunkwise";
    case Form::parallel:
        return "parallel";
    }
    return "";
}

static Recurrence recurrence_of(const Row &row) {
    Recurrence result;
    result.name = row.name;
    result.formula = row.formula;
    result.generator = "halation_chunk";
    result.inputs = row.inputs;
    result.output_dims = "BTGV";
    result.state_dims = "NGKV";
    result.normalizer_dims = row.normalized ? "NGK" : "";
    result.default_feature_map = row.default_feature_map;
    result.scale_by_key_dim = !row.normalized;
    return result;
}

std::vector<Recurrence> recurrences() {
    std::vector<Recurrence> all;
    for (const Row &row : rows()) all.push_back(recurrence_of(row));
    return all;
}

Recurrence recurrence_named(const std::string &name) {
    std::string known;
    for (const Recurrence &recurrence : recurrences()) {
        if (recurrence.name == name) return recurrence;
        known += (known.empty() ? "" : ", ") + recurrence.name;
    }
    throw Halide::CompileError("no recurrence named '" + name + "'; there are: " + known);
}

}  // namespace halation
