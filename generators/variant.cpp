#include "variant.h"

#include "../schedules/machines.h"

#include <algorithm>

namespace halation {
namespace {

void require_one_of(const std::string &what, const std::string &word, const std::vector<std::string> &allowed) {
    if (std::find(allowed.begin(), allowed.end(), word) != allowed.end()) return;
    std::string list;
    for (const std::string &name : allowed) list += (list.empty() ? "" : ", ") + name;
    throw Halide::CompileError("no " + what + " '" + word + "'; there are: " + list);
}

}  // namespace

Variant Variant::parse(const std::vector<std::string> &words) {
    if (words.size() != 7) {
        throw Halide::CompileError("a variant has seven words: recurrence form backend isa type gate_type feature_map; got " +
                                   std::to_string(words.size()));
    }
    Variant v{words[0], words[1], words[2], words[3], words[4], words[5], words[6]};
    const Recurrence recurrence = recurrence_named(v.recurrence);
    require_one_of("form", v.form, {"recurrent", "chunkwise", "parallel"});
    require_one_of("backend", v.backend, {"cpu"});
    cpu_machine(v.isa);
    require_one_of("type", v.type, {"f32", "f16", "bf16"});
    require_one_of("gate type", v.gate_type, {"f32", v.type});
    if (recurrence.default_feature_map.empty()) {
        require_one_of("feature map", v.feature_map, {"-"});
    } else {
        require_one_of("feature map", v.feature_map, {"elu+1", "relu", "softmax", "identity"});
    }
    const std::string &reason = recurrence.refused[static_cast<int>(v.form_value())];
    if (!reason.empty()) throw Halide::CompileError(v.recurrence + " has no " + v.form + " form: " + reason);
    return v;
}

std::string Variant::name() const {
    std::string result = recurrence;
    if (feature_map != "-") result += "_" + (feature_map == "elu+1" ? std::string("elu") : feature_map);
    result += "_" + form + "_" + backend + "_" + isa + "_" + type;
    if (gate_type != "f32") result += "_gates_" + gate_type;
    return result;
}

Form Variant::form_value() const {
    return form == "recurrent" ? Form::recurrent : form == "chunkwise" ? Form::chunkwise : Form::parallel;
}

std::string Variant::halide_target() const {
    const std::string features = cpu_machine(isa).target;
    return std::string(isa == "neon" ? "arm-64-linux" : "x86-64-linux") + (features.empty() ? "" : "-" + features) +
           "-user_context-no_runtime";
}

}  // namespace halation
