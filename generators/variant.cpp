#include "variant.h"

#include "../schedules/schedules.h"

#include <algorithm>
#include <cstdlib>

namespace halation {
namespace {

std::string listed(const std::vector<std::string> &words) {
    std::string list;
    for (const std::string &word : words) list += (list.empty() ? "" : ", ") + word;
    return list;
}

void require_one_of(const std::string &what, const std::string &word, const std::vector<std::string> &allowed) {
    if (std::find(allowed.begin(), allowed.end(), word) == allowed.end())
        throw Halide::CompileError("no " + what + " '" + word + "'; there are: " + listed(allowed));
}

int dim_of(const std::string &what, const std::string &word) {
    if (word == "any") return 0;
    char *end = nullptr;
    const long dim = std::strtol(word.c_str(), &end, 10);
    if (word.empty() || *end || dim < 1 || dim > 65536)
        throw Halide::CompileError(what + ": got '" + word + "'; may be any, or 1 to 65536");
    return static_cast<int>(dim);
}

void require_identifier(const std::string &name) {
    if (!is_identifier(name)) throw Halide::CompileError("name: got '" + name + "'; must be a C identifier");
}

// What only kernels of the chunk algorithm can have: dims that are constants, and another schedule.
void require_chunk_words(const Variant &v, const Recurrence &recurrence) {
    if (v.key_dim == 0 && v.value_dim == 0 && v.schedule.empty()) return;
    const bool elements = v.on_gpu() && recurrence.generator == "halation_ssm";  // may have a constant N
    if (recurrence.generator != "halation_chunk" && !(elements && v.value_dim == 0))
        throw Halide::CompileError("key_dim, value_dim, schedule: kernels of recurrence " + v.recurrence +
                                   " are for any dims, with " + "Halation's schedule");
    if (elements) return;
    if (!v.schedule.empty()) schedule_named(v.schedule);
    const int tile = v.machine().value_tile(v.form_value() == Form::recurrent);
    if (v.value_dim % tile != 0)
        throw Halide::CompileError("value_dim: got " + std::to_string(v.value_dim) + "; must be any, or a multiple of " +
                                   std::to_string(tile) + " for isa " + v.isa + ", form " + v.form);
}

}  // namespace

Variant Variant::parse(const std::vector<std::string> &words) {
    Variant v;
    std::string key_dim = "any", value_dim = "any";
    const std::pair<const char *, std::string *> fields[] = {{"name", &v.name},         {"recurrence", &v.recurrence},
                                                             {"form", &v.form},         {"backend", &v.backend},
                                                             {"isa", &v.isa},           {"os", &v.os},
                                                             {"arch", &v.arch},         {"type", &v.type},
                                                             {"gates", &v.gate_type},   {"feature_map", &v.feature_map},
                                                             {"key_dim", &key_dim},     {"value_dim", &value_dim},
                                                             {"schedule", &v.schedule}, {"parameters", &v.parameters}};
    for (const std::string &word : words) {
        const std::string key = word.substr(0, word.find('='));
        std::vector<std::string> known;
        std::string *field = nullptr;
        for (const auto &[name, value] : fields) {
            known.push_back(name);
            if (key == name) field = value;
        }
        if (!field || key == word)
            throw Halide::CompileError("'" + word + "' is no word of a variant; they are " + listed(known) + ", each with =");
        *field = word.substr(key.size() + 1);
    }
    require_identifier(v.name);
    const Recurrence recurrence = recurrence_named(v.recurrence);
    require_one_of("form", v.form, {"recurrent", "chunkwise", "parallel"});
    require_one_of("backend", v.backend, {"cpu", "cuda", "opencl", "metal"});
    require_one_of("arch", v.arch, {"x86", "arm"});
    require_one_of("os", v.os, {"linux", "osx", "ios"});
    require_one_of("type", v.type, {"f32", "f16", "bf16"});
    require_one_of("gate type", v.gate_type,
                   v.type == "f32" ? std::vector<std::string>{"f32"} : std::vector<std::string>{"f32", v.type});
    if (recurrence.default_feature_map.empty())
        require_one_of("feature map", v.feature_map, {""});
    else
        require_one_of("feature map", v.feature_map, {"elu+1", "relu", "softmax", "identity"});
    const std::string &reason = recurrence.refused[static_cast<int>(v.form_value())];
    if (!reason.empty()) throw Halide::CompileError(v.recurrence + " has no " + v.form + " form: " + reason);
    if (v.on_gpu()) {
        require_one_of("isa of a GPU", v.isa, {"gpu"});
        const std::vector<std::string> made = Halide::Internal::GeneratorRegistry::enumerate();
        if (std::find(made.begin(), made.end(), v.generator()) == made.end())
            throw Halide::CompileError(v.recurrence + " has no kernels for GPUs");
        if (recurrence.generator == "halation_chunk") require_one_of("form of a GPU kernel", v.form, {"recurrent", "chunkwise"});
        if (!v.schedule.empty() || !v.parameters.empty())
            throw Halide::CompileError("schedule, parameters: GPU kernels have Halation's schedule");
        v.key_dim = dim_of("key_dim", key_dim);
        v.value_dim = dim_of("value_dim", value_dim);
        if (recurrence.generator != "halation_chunk") require_chunk_words(v, recurrence);
        return v;
    }
    v.machine();
    v.key_dim = dim_of("key_dim", key_dim);
    v.value_dim = dim_of("value_dim", value_dim);
    require_chunk_words(v, recurrence);
    return v;
}

Form Variant::form_value() const {
    return form == "recurrent" ? Form::recurrent : form == "chunkwise" ? Form::chunkwise : Form::parallel;
}

std::string Variant::generator() const {
    return recurrence_named(recurrence).generator + (on_gpu() ? "_gpu" : "");
}

CpuMachine Variant::machine() const {
    return machine_with(cpu_machine(isa), parameters, schedule);
}

Scheduled Variant::scheduled() const {
    const std::string generator = recurrence_named(recurrence).generator;
    if (generator == "halation_softmax") return Scheduled::softmax;
    if (generator == "halation_bidirectional") return Scheduled::bidirectional;
    if (generator != "halation_chunk") return Scheduled::scan;
    return form == "recurrent" ? Scheduled::recurrent : form == "chunkwise" ? Scheduled::chunkwise : Scheduled::parallel;
}

std::string Variant::halide_target() const {
    if (on_gpu()) return arch + "-64-" + os + "-" + gpu_machine(backend).target + "-user_context-no_runtime";
    const std::string features = cpu_machine(isa).target;
    return std::string(isa == "neon" ? "arm-64-" : "x86-64-") + os + (features.empty() ? "" : "-" + features) +
           "-user_context-no_runtime";
}

}  // namespace halation
