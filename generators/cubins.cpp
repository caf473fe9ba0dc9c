#include "cubins.h"

#include <Halide.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <halation_kernels.h>
#include <regex>
#include <sstream>

namespace halation {
namespace {

using Halide::CompileError;

std::string read_whole(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) throw CompileError("cannot read " + path);
    return text.str();
}

void write_whole(const std::string &path, const std::string &text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw CompileError("cannot write " + path + ": " + std::strerror(errno));
}

// A word of a shell's command line.
std::string quoted(const std::string &word) {
    return "'" + std::regex_replace(word, std::regex("'"), R"('\'')") + "'";
}

// The lines of STEM.registers.txt in what `ptxas -v` says.
std::string registers_of(const std::string &said) {
    const std::regex entry(R"(Compiling entry function '([^']+)' for '([^']+)')"), used(R"(Used (\d+) registers)"),
        bytes(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
    std::string lines, name, stack;
    std::istringstream in(said);
    for (std::string line; std::getline(in, line);) {
        std::smatch found;
        if (std::regex_search(line, found, entry))
            name = found[2].str() + " " + found[1].str();
        else if (std::regex_search(line, found, bytes))
            stack = " stack " + found[1].str() + " spill_stores " + found[2].str() + " spill_loads " + found[3].str();
        else if (std::regex_search(line, found, used))
            lines += name + " registers " + found[1].str() + stack + "\n";
    }
    return lines;
}

struct Files {
    std::string ptx, cubin, said;
    ~Files() {
        std::error_code ignored;
        for (const std::string &file : {ptx, cubin, said}) std::filesystem::remove(file, ignored);
    }
};

std::string cubin_of(const std::string &ptx, const Cubins &cubins, int architecture, const std::string &stem,
                     std::string *registers) {
    const Files files{stem + ".ptx", stem + ".cubin", stem + ".ptxas.txt"};
    write_whole(files.ptx, ptx);
    const std::string command = quoted(cubins.ptxas) + " -v -arch=sm_" + std::to_string(architecture) + " -o " +
                                quoted(files.cubin) + " " + quoted(files.ptx) + " > " + quoted(files.said) + " 2>&1";
    const int status = std::system(command.c_str());
    const std::string said = read_whole(files.said);
    if (status != 0) throw CompileError("ptxas for architecture " + std::to_string(architecture) + ": " + said);
    *registers += registers_of(said);
    return read_whole(files.cubin);
}

void append_words(std::string *to, const void *words, size_t bytes) {
    to->append(static_cast<const char *>(words), bytes);
}

}  // namespace

std::string with_most_registers(const std::string &ptx, int registers) {
    std::string bounded;
    size_t at = 0;
    for (size_t entry; (entry = ptx.find("\n.visible .entry ", at)) != std::string::npos;) {
        const size_t end = ptx.find("\n)", entry);
        if (end == std::string::npos) throw CompileError("PTX has an entry whose parameters do not end");
        bounded += ptx.substr(at, end + 2 - at) + "\n.maxnreg " + std::to_string(registers);
        at = end + 2;
    }
    if (at == 0) throw CompileError("PTX has no entry");
    return bounded + ptx.substr(at);
}

std::string cuda_code(const std::string &ptx, const Cubins &cubins, const std::string &stem) {
    constexpr size_t alignment = 16;
    const std::string text = ptx.substr(0, ptx.find('\0'));
    std::vector<std::pair<uint32_t, std::string>> parts;
    std::string registers;
    for (const int architecture : cubins.architectures)
        parts.emplace_back(architecture, cubin_of(text, cubins, architecture, stem, &registers));
    write_whole(stem + ".registers.txt", registers);
    parts.emplace_back(0, text + '\0');

    halation_device_code head{};
    std::memcpy(head.magic, HALATION_DEVICE_CODE_MAGIC, sizeof head.magic);
    head.part_count = static_cast<uint32_t>(parts.size());
    std::string code, bodies;
    const size_t heads = sizeof head + parts.size() * sizeof(halation_device_code_part);
    const size_t begin = (heads + alignment - 1) / alignment * alignment;
    append_words(&code, &head, sizeof head);
    for (const auto &[architecture, body] : parts) {
        const halation_device_code_part part = {architecture, static_cast<uint32_t>(body.size()), begin + bodies.size()};
        append_words(&code, &part, sizeof part);
        bodies += body;
        bodies.resize((bodies.size() + alignment - 1) / alignment * alignment);
    }
    code.resize(begin);
    return code + bodies;
}

}  // namespace halation
