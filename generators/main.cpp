// halation_generate: makes the kernels of a build.
//
//     halation_generate kernel DIR  RECURRENCE FORM BACKEND ISA TYPE GATE_TYPE FEATURE_MAP   one object file
//     halation_generate table FUNCTION VARIANTS OUT.cpp       the kernel table of a list of variants
//     halation_generate -g halation_chunk ...                 Halide's own generator command line
#include "variant.h"

#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

namespace halation {
namespace {

std::string halide_type(const std::string &type) {
    return type == "f32" ? "float32" : type == "f16" ? "float16" : "bfloat16";
}

// Halide warns of every kernel with 16-bit floats that it converts them; that is what these kernels are for.
class Reporter : public Halide::CompileTimeErrorReporter {
    void warning(const char *message) override {
        if (!std::strstr(message, "(b)float16 type operation is emulated")) std::cerr << message;
    }
    void error(const char *message) override { throw Halide::CompileError(message); }
};

int run_halide(std::vector<std::string> arguments) {
    std::vector<char *> argv;
    for (std::string &argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return Halide::Internal::generate_filter_main(static_cast<int>(arguments.size()), argv.data());
}

int generate_kernel(const std::string &program, const std::string &directory, const std::vector<std::string> &words) {
    const Variant v = Variant::parse(words);
    std::vector<std::string> arguments = {program,
                                          "-g",
                                          recurrence_named(v.recurrence).generator,
                                          "-f",
                                          v.name(),
                                          "-o",
                                          directory,
                                          "-e",
                                          "object",
                                          "recurrence=" + v.recurrence,
                                          "form=" + v.form,
                                          "type=" + halide_type(v.type),
                                          "gate_type=" + halide_type(v.gate_type),
                                          "target=" + v.halide_target()};
    if (v.feature_map != "-") arguments.push_back("feature_map=" + v.feature_map);
    return run_halide(arguments);
}

std::vector<Variant> read_variants(const std::string &path) {
    std::ifstream in(path);
    if (!in) throw Halide::CompileError("cannot read " + path);
    std::vector<Variant> variants;
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        std::vector<std::string> words;
        for (std::string word; fields >> word;) words.push_back(word);
        if (!words.empty()) variants.push_back(Variant::parse(words));
    }
    return variants;
}

int main_or_throw(int argc, char **argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words[0][0] == '-') return Halide::Internal::generate_filter_main(argc, argv);
    if (words.size() >= 2 && words[0] == "kernel") return generate_kernel(argv[0], words[1], {words.begin() + 2, words.end()});
    if (words.size() == 4 && words[0] == "table") {
        std::ofstream out(words[3]);
        write_kernel_table(out, words[1], read_variants(words[2]));
        out.close();
        if (!out) throw Halide::CompileError("cannot write " + words[3]);
        return 0;
    }
    std::cerr << "usage: halation_generate kernel DIR RECURRENCE FORM BACKEND ISA TYPE GATE_TYPE FEATURE_MAP\n"
                 "       halation_generate table FUNCTION VARIANTS OUT.cpp\n"
                 "       halation_generate -g GENERATOR ...   (Halide's own options)\n";
    return 2;
}

}  // namespace
}  // namespace halation

int main(int argc, char **argv) {
    halation::Reporter reporter;
    Halide::set_custom_compile_time_error_reporter(&reporter);
    try {
        return halation::main_or_throw(argc, argv);
    } catch (const std::exception &error) {
        std::cerr << "halation_generate: " << error.what() << "\n";
        return 1;
    }
}
