// Kernels' assembly and reports of llvm-mca, cut from real ones, for tests.
#ifndef HALATION_TESTS_LAB_ASSEMBLY_DATA_H
#define HALATION_TESTS_LAB_ASSEMBLY_DATA_H

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace assembly_data {

inline std::string file(const std::string &name) {
    const std::string path = HALATION_TEST_DATA "/assembly/" + name;
    std::ifstream in(path);
    if (!in) throw std::runtime_error("cannot read " + path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

inline std::string with_carriage_returns(const std::string &text) {
    std::string out;
    for (const char c : text) out += c == '\n' ? std::string("\r\n") : std::string(1, c);
    return out;
}

inline std::vector<std::string> lines_of(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// Loops in each other, without a word about them.
inline const char *const nested = "k:\n"
                                  ".LBB0_1:\n"
                                  "\tvmulps\t%ymm0, %ymm1, %ymm2\n"
                                  ".LBB0_2:\n"
                                  "\tvfmadd231ps\t(%rdi), %ymm1, %ymm2\n"
                                  "\taddq\t$32, %rdi\n"
                                  "\tjne\t.LBB0_2\n"
                                  "\tvmovaps\t%ymm2, (%rsi)\n"
                                  "\tjne\t.LBB0_1\n"
                                  "\tretq\n";

}  // namespace assembly_data
#endif
