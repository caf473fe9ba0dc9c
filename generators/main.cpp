// halation_generate: makes the kernels of a build.
//
//     halation_generate kernel DIR WORD...                     one object file, of the variant that the words make
//     halation_generate table FUNCTION VARIANTS OUT.cpp       the kernel table of a file of variants, one a line
//     halation_generate -g GENERATOR -o DIR target=TARGET ...   Halide's own generator command line
//
// What goes wrong is said on stderr after the program's name, with exit code 1; 2 for a command line that is none of these.
#include "variant.h"

#include <algorithm>
#include <cerrno>
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

constexpr const char *usage =
    "usage: halation_generate kernel DIR name=NAME recurrence=... form=... isa=... [type=...] [gates=...] ...\n"
    "       halation_generate table FUNCTION VARIANTS OUT.cpp\n"
    "       halation_generate -g GENERATOR -o DIR target=TARGET ...   (Halide's own options; target=host: this machine)\n";

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

int run_halide(std::vector<std::string> arguments) {
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
    return 0;
}

// Halide's options as they are. Where one that it needs is missing, it fails without a word.
int run_own_options(const std::string &program, const std::vector<std::string> &words) {
    const auto begins = [&](const char *start) {
        return std::any_of(words.begin(), words.end(), [&](const std::string &word) { return word.rfind(start, 0) == 0; });
    };
    if (!begins("-o")) throw Halide::CompileError("Halide's options need -o DIR, the directory to write to");
    if (!begins("target=")) throw Halide::CompileError("Halide's options need target=TARGET; target=host is this machine");
    std::vector<std::string> arguments = {program};
    arguments.insert(arguments.end(), words.begin(), words.end());
    return run_halide(arguments);
}

int generate_kernel(const std::string &program, const std::string &directory, const std::vector<std::string> &words) {
    const Variant v = Variant::parse(words);
    std::vector<std::string> arguments = {program,
                                          "-g",
                                          recurrence_named(v.recurrence).generator,
                                          "-f",
                                          v.name,
                                          "-o",
                                          directory,
                                          "-e",
                                          "object",
                                          "recurrence=" + v.recurrence,
                                          "form=" + v.form,
                                          "type=" + halide_type(v.type),
                                          "gate_type=" + halide_type(v.gate_type),
                                          "target=" + v.halide_target()};
    const auto add = [&](const char *parameter, const std::string &value) {
        if (!value.empty()) arguments.push_back(std::string(parameter) + "=" + value);
    };
    add("feature_map", v.feature_map);
    add("schedule", v.schedule);
    std::string parameters = v.parameters;  // in which Halide's command line allows no further =
    std::replace(parameters.begin(), parameters.end(), '=', ':');
    add("parameters", parameters);
    if (v.key_dim) add("key_dim", std::to_string(v.key_dim));
    if (v.value_dim) add("value_dim", std::to_string(v.value_dim));
    return run_halide(arguments);
}

std::vector<Variant> read_variants(const std::string &path) {
    std::ifstream in(path);
    if (!in) throw Halide::CompileError("cannot read " + path + ": " + std::strerror(errno));
    std::vector<Variant> variants;
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        std::vector<std::string> words;
        for (std::string word; fields >> word;) words.push_back(word);
        if (!words.empty()) variants.push_back(Variant::parse(words));
    }
    return variants;
}

// Written only once it is known in full, so that a fault in the variants leaves no file behind.
int generate_table(const std::string &function, const std::string &variants, const std::string &output) {
    std::ostringstream source;
    write_kernel_table(source, function, read_variants(variants));
    errno = 0;
    std::ofstream out(output);
    out << source.str();
    out.close();
    if (!out) throw Halide::CompileError("cannot write " + output + ": " + std::strerror(errno));
    return 0;
}

int main_or_throw(const std::string &program, const std::vector<std::string> &words) {
    if (words.size() >= 2 && words[0] == "kernel") return generate_kernel(program, words[1], {words.begin() + 2, words.end()});
    if (words.size() == 4 && words[0] == "table") return generate_table(words[1], words[2], words[3]);
    const bool help = words.size() == 1 && (words[0] == "-h" || words[0] == "--help");
    if (!help && !words.empty() && words[0][0] == '-') return run_own_options(program, words);
    (help ? std::cout : std::cerr) << usage;
    return help ? 0 : 2;
}

int complain(const char *message) {
    std::cerr << "halation_generate: " << message << "\n";
    return 1;
}

}  // namespace
}  // namespace halation

int main(int argc, char **argv) {
    halation::Reporter reporter;
    Halide::set_custom_compile_time_error_reporter(&reporter);
    try {
        return halation::main_or_throw(argv[0], {argv + 1, argv + argc});
    } catch (const Halide::Error &error) {  // which is no std::exception
        return halation::complain(error.what());
    } catch (const std::exception &error) {
        return halation::complain(error.what());
    }
}
