// halation_generate: makes the kernels of a build.
//
//     halation_generate kernel DIR WORD...                     one object file, of the variant that the words make; for CUDA,
//                                                              ptxas=PROGRAM cuda=80,90 puts machine code into it
//     halation_generate table FUNCTION VARIANTS OUT.cpp       the kernel table of a file of variants, one a line
//     halation_generate recurrences                            the names of those it knows
//     halation_generate -g GENERATOR -o DIR target=TARGET ...   Halide's own generator command line
//
// What goes wrong is said on stderr after the program's name, with exit code 1; 2 for a command line that is none of these.
#include "kernel_files.h"
#include "kernel_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

namespace halation {
namespace {

constexpr const char *usage =
    "usage: halation_generate kernel DIR [ptxas=PROGRAM cuda=80,90] name=NAME recurrence=... form=... isa=... [type=...] ...\n"
    "       halation_generate table FUNCTION VARIANTS OUT.cpp\n"
    "       halation_generate recurrences\n"
    "       halation_generate -g GENERATOR -o DIR target=TARGET ...   (Halide's own options; target=host: this machine)\n";

// Halide's options as they are. Where one that it needs is missing, it fails without a word.
int run_own_options(const std::string &program, const std::vector<std::string> &words) {
    const auto begins = [&](const char *start) {
        return std::any_of(words.begin(), words.end(), [&](const std::string &word) { return word.rfind(start, 0) == 0; });
    };
    if (!begins("-o")) throw Halide::CompileError("Halide's options need -o DIR, the directory to write to");
    if (!begins("target=")) throw Halide::CompileError("Halide's options need target=TARGET; target=host is this machine");
    std::vector<std::string> arguments = {program};
    arguments.insert(arguments.end(), words.begin(), words.end());
    run_halide(arguments);
    return 0;
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

// The first two words, if they say of what machine code is to be made.
Cubins take_cubins(std::vector<std::string> *words) {
    Cubins cubins;
    const auto take = [&](const std::string &key) -> std::string {
        if (words->empty() || words->front().rfind(key, 0) != 0) return "";
        const std::string value = words->front().substr(key.size());
        words->erase(words->begin());
        return value;
    };
    cubins.ptxas = take("ptxas=");
    std::istringstream list(take("cuda="));
    for (std::string word; std::getline(list, word, ',');) {
        const int architecture = std::atoi(word.c_str());
        if (architecture < 50 || std::to_string(architecture) != word)
            throw Halide::CompileError("cuda: got '" + word + "'; may be architectures such as 80 or 90, with commas between");
        cubins.architectures.push_back(architecture);
    }
    if (cubins.ptxas.empty() != cubins.architectures.empty())
        throw Halide::CompileError("ptxas=PROGRAM and cuda=ARCHITECTURE,... are given together or not at all");
    return cubins;
}

int main_or_throw(const std::string &program, const std::vector<std::string> &words) {
    if (words.size() >= 2 && words[0] == "kernel") {
        std::vector<std::string> rest(words.begin() + 2, words.end());
        const Cubins cubins = take_cubins(&rest);
        write_kernel(Variant::parse(rest), words[1], {"object"}, cubins);
        return 0;
    }
    if (words.size() == 1 && words[0] == "recurrences") {
        for (const Recurrence &recurrence : recurrences()) std::cout << recurrence.name << "\n";
        return 0;
    }
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
    const halation::Reporter reporter;
    try {
        return halation::main_or_throw(argv[0], {argv + 1, argv + argc});
    } catch (const Halide::Error &error) {  // which is no std::exception
        return halation::complain(error.what());
    } catch (const std::exception &error) {
        return halation::complain(error.what());
    }
}
