// What a model of a processor says of a loop: llvm-mca, run on the loop's instructions. It is the model's processor, with every
// load from the first-level cache, and not this machine.
#ifndef HALATION_LAB_MACHINE_CODE_ANALYZER_H
#define HALATION_LAB_MACHINE_CODE_ANALYZER_H

#include "assembly.h"

#include <string>
#include <vector>

namespace halation::lab {

// Which program is run, and as which processor.
struct Analyzer {
    std::string program;    // empty: there is none
    std::string processor;  // -mcpu
    std::string model;      // in words, by the units it has: "Ice Lake server"; LLVM takes one model for several processors
    std::string missing;    // why nothing can be analyzed; empty: it can
    Syntax syntax = Syntax::x86;

    bool usable() const { return missing.empty(); }
};

enum class Vendor { intel, amd, apple, other };
struct Host {
    Vendor vendor = Vendor::other;
    int family = 0;  // of AMD: 23 is Zen 1 and 2, 25 is Zen 3 and 4, 26 is Zen 5
};
Host host_of(const std::string &cpuinfo);  // what /proc/cpuinfo says
Host this_host();

// Processors whose models come nearest to a host that runs kernels of an ISA, best first.
std::vector<std::string> processors_for(const std::string &isa, const Host &host);

// The first of these that the program knows and models rightly. `program`: a path or name; empty: llvm-mca, or llvm-mca-NN with
// the greatest NN, whichever is in PATH. Throws nothing.
Analyzer find_analyzer(const std::string &isa, const Host &host = this_host(), const std::string &program = "");

struct Analysis {
    bool known = false;
    std::string reason;  // why it is not known
    std::string processor, model;

    double cycles = 0;      // of one turn of the loop
    double throughput = 0;  // cycles that its instructions need at least ("block reciprocal throughput")
    double micro_operations = 0, instructions_per_cycle = 0;
    int dispatch_width = 0;
    std::string busiest;                                    // the processor's unit, as the model calls it
    double busiest_cycles = 0;                              // for which it is busy, of one turn
    double resource_pressure = 0, dependency_pressure = 0;  // percent of cycles in which these held something back
    double multiply_adds_per_cycle = 0;                     // of numbers, not of vectors
    bool has_calls = false;                                 // which the model knows nothing about
    bool alone = false;                                     // one turn by itself, not turn after turn

    // What it waits for: "multiply-add units, 89 %" of the cycles; "dependency chain of 16 cycles; loads 60 %", where units are
    // not what it waits for, and the busiest is named after it.
    std::string bound;
};

// Loops that have others inside are run through once, as what is around those runs between them.
Analysis analyze(const Loop &loop, const Analyzer &analyzer);

// All that have arithmetic of vectors; of the others nothing is known, for no reason.
std::vector<Analysis> analyze(const std::vector<Loop> &loops, const Analyzer &analyzer);

// From what llvm-mca wrote; nothing is known if it cannot be read.
Analysis parse_analysis(const std::string &report, const Loop &loop);

// "multiply-add units" for ICXPort0; its own name if it is not known.
std::string words_for_unit(const std::string &unit);

}  // namespace halation::lab
#endif
