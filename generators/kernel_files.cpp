#include "kernel_files.h"

#include "../schedules/machines.h"
#include "device_code.h"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <regex>
#include <sstream>

namespace halation {
namespace {

std::string halide_type(const std::string &type) {
    return type == "f32" ? "float32" : type == "f16" ? "float16" : "bfloat16";
}

// Holds back what is written to std::cerr while it lives.
class Held {
public:
    Held() : screen_(std::cerr.rdbuf(text_.rdbuf())) {}
    ~Held() { std::cerr.rdbuf(screen_); }
    std::string text() const { return text_.str(); }

private:
    std::ostringstream text_;
    std::streambuf *screen_;
};

// Halide's main catches its own errors and writes them to std::cerr, in words that do not say which program failed.
std::string without_preamble(std::string text) {
    for (const std::string preamble : {"Unhandled exception: ", "Error: "}) {
        const size_t at = text.find(preamble);
        if (at != std::string::npos) text.erase(at, preamble.size());
    }
    text.erase(text.find_last_not_of(" \n") + 1);
    return text.empty() ? "Halide refuses these options without a reason" : text;
}

// The parameters of the Halide generator that make the variant.
std::vector<std::pair<std::string, std::string>> generator_parameters(const Variant &v) {
    std::vector<std::pair<std::string, std::string>> all = {
        {"recurrence", v.recurrence}, {"form", v.form}, {"type", halide_type(v.type)}, {"gate_type", halide_type(v.gate_type)}};
    const auto add = [&](const char *parameter, const std::string &value) {
        if (!value.empty()) all.emplace_back(parameter, value);
    };
    add("feature_map", v.feature_map);
    add("schedule", v.schedule);
    std::string parameters = v.parameters;  // in which Halide's command line allows no further =
    std::replace(parameters.begin(), parameters.end(), '=', ':');
    add("parameters", parameters);
    if (v.key_dim) add("key_dim", std::to_string(v.key_dim));
    if (v.value_dim) add("value_dim", std::to_string(v.value_dim));
    return all;
}

Halide::Internal::AbstractGeneratorPtr generator_of(const Variant &v) {
    const Halide::GeneratorContext context(Halide::Target(v.halide_target()));
    auto generator = Halide::Internal::GeneratorRegistry::create(v.generator(), context);
    for (const auto &[name, value] : generator_parameters(v)) generator->set_generatorparam_value(name, value);
    return generator;
}

// See ScanTile.
int most_registers(const Variant &v) {
    if (v.recurrence != "ssm") return 0;
    return gpu_machine(v.backend).ssm(v.form_value() == Form::recurrent, v.key_dim != 0).most_registers;
}

// Halide's generator command line puts into an object file what Halide made of the device code; here it is made more of.
void write_cuda_kernel(const Variant &v, const std::string &directory, const std::vector<std::string> &kinds,
                       const Cubins &cubins) {
    const std::string stem = directory + "/" + v.name;
    const int registers = most_registers(v);
    const Halide::Module module = with_device_code(generator_of(v)->build_module(v.name), [&](const std::string &ptx) {
        return cuda_code(registers > 0 ? with_most_registers(ptx, registers) : ptx, cubins, stem);
    });
    std::map<Halide::OutputFileType, std::string> files;
    for (const auto &[type, info] : Halide::Internal::get_output_info(module.target()))
        if (std::find(kinds.begin(), kinds.end(), info.name) != kinds.end()) files[type] = stem + info.extension;
    module.compile(files);
}

}  // namespace

void Reporter::warning(const char *message) {
    // Halide warns of every kernel with 16-bit floats that it converts them; that is what these kernels are for.
    if (!std::strstr(message, "(b)float16 type operation is emulated")) std::cerr << message;
}

void Reporter::error(const char *message) {
    throw Halide::CompileError(message);
}

void run_halide(std::vector<std::string> arguments) {
    std::vector<char *> argv;
    for (std::string &argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::string said;
    int status;
    {
        const Held held;
        status = Halide::Internal::generate_filter_main(static_cast<int>(arguments.size()), argv.data());
        said = held.text();
    }
    if (status != 0) throw Halide::CompileError(without_preamble(said));
    std::cerr << said;
}

void write_kernel(const Variant &v, const std::string &directory, const std::vector<std::string> &kinds, const Cubins &cubins) {
    if (v.backend == "cuda") return write_cuda_kernel(v, directory, kinds, cubins);
    std::string list;
    for (const std::string &kind : kinds) list += (list.empty() ? "" : ",") + kind;
    std::vector<std::string> arguments = {"halation", "-g", v.generator(), "-f", v.name, "-o", directory, "-e", list};
    for (const auto &[name, value] : generator_parameters(v)) arguments.push_back(name + "=" + value);
    arguments.push_back("target=" + v.halide_target());
    run_halide(arguments);
}

std::string loop_nest_of(const Variant &v) {
    Halide::Pipeline pipeline = generator_of(v)->build_pipeline();
    const Held held;
    pipeline.print_loop_nest();
    return std::regex_replace(held.text(), std::regex(R"(\.[vr][0-9]+\b|\$[0-9]+|_[0-9]+(?=_intm))"), "");
}

}  // namespace halation
