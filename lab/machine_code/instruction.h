// One line of assembly: what kind of work it is. x86-64 in AT&T's syntax, and 64-bit Arm.
#ifndef HALATION_LAB_INSTRUCTION_H
#define HALATION_LAB_INSTRUCTION_H

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace halation::lab {

enum class Syntax { x86, arm };
Syntax syntax_of(const std::string &assembly);

enum class Work { other, multiply_add, multiply, add, divide };  // of vectors of floating-point numbers

struct Instruction {
    std::string mnemonic;
    std::vector<std::string> operands;  // those in memory with their brackets
    std::string comment;

    Work work = Work::other;
    int lanes = 0;  // numbers in a vector, where it is arithmetic
    bool load = false, store = false;
    bool broadcast = false;  // of one number to all lanes, by an instruction or in an operand
    bool stack = false;      // the memory is the stack's: a spilled register, or a small array
    int spilled_bytes = 0;   // of a register kept on the stack, written or read again
    bool call = false, branch = false;
    std::string target;              // of a call or a branch, where it is a name
    std::set<int> vector_registers;  // by number
    bool beyond_avx2 = false;        // a register that only AVX-512 has: of 512 bits, or with a number above 15

    std::string text() const;  // without the comment
};

// Nothing for a line that is a label, a directive, a comment or empty.
std::optional<Instruction> instruction_of(const std::string &line, Syntax syntax);

// A line's code and its comment, apart.
struct Line {
    std::string code, comment;
};
Line line_of(const std::string &text, Syntax syntax);

}  // namespace halation::lab
#endif
