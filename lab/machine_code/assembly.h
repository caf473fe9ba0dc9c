// The loops of a kernel, as the compiler left them: what is in each, from the text of its assembly.
#ifndef HALATION_LAB_ASSEMBLY_H
#define HALATION_LAB_ASSEMBLY_H

#include "instruction.h"

#include <cstdint>
#include <string>
#include <vector>

namespace halation::lab {

// Counts are of instructions in the text. Where a loop branches inside, those of all its paths.
struct Loop {
    std::string name;   // "state_reads over key.ko, update", or its label where Halide's name is not known
    std::string label;  // ".LBB0_382"
    int depth = 0;      // 1: in no other loop
    // Whether no loop is inside. Where there is, all below is what is around those: it runs once for each turn of this loop.
    bool innermost = true;
    Syntax syntax = Syntax::x86;

    int instructions = 0, branches = 0;
    int multiply_adds = 0, multiplies = 0, adds = 0, divides = 0;  // of vectors; fused ones are in the first alone
    int lanes = 0;                                                 // of the widest of these: floats in a vector, or doubles
    int multiply_add_lanes = 0;  // multiply-adds of numbers; without fused ones, pairs of a multiplication and an addition
    int loads = 0, stores = 0, broadcasts = 0;
    int stack_loads = 0, stack_stores = 0;  // of these, those at the stack pointer: spills, and small arrays
    int vector_reloads = 0, vector_spills = 0, scalar_reloads = 0, scalar_spills = 0;
    int vector_registers = 0, registers_there_are = 0;
    std::vector<std::string> calls;  // each function once
    std::vector<std::string> lines;  // as they are in the file

    int vector_arithmetic() const { return multiply_adds + multiplies + adds + divides; }
    int64_t operations = 0;  // on numbers; a multiply-add is two
};

// Of the function that has most instructions, which is the kernel; those with most operations first. Loops that have others
// inside are there if they compute with vectors themselves. Text that is no assembly has none.
std::vector<Loop> loops_of(const std::string &assembly);

// What Halide calls a loop, from what LLVM calls its block: %"46_for_state_reads.s1.key$x.ko.us".
std::string loop_name(const std::string &block);

}  // namespace halation::lab
#endif
