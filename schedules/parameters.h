// What may be changed of a schedule without touching its code: tiles, unrolling, the length of a chunk.
#ifndef HALATION_SCHEDULES_PARAMETERS_H
#define HALATION_SCHEDULES_PARAMETERS_H

#include "machines.h"

#include <vector>

namespace halation {

// The algorithms whose schedules read different parameters.
enum class Scheduled { recurrent, chunkwise, parallel, scan, softmax, bidirectional };

struct ScheduleParameter {
    std::string name;
    int value;                    // what it is unless somebody says otherwise
    int least, most;              // what it may be
    std::vector<int> worthwhile;  // what a search tries
};

// Those that the schedule reads: Halation's on this machine, and those of the schedule of a user's own, if one is named.
std::vector<ScheduleParameter> schedule_parameters(Scheduled scheduled, const CpuMachine &machine, const std::string &schedule);

bool is_identifier(const std::string &text);  // letters, digits and _, not a digit first
std::vector<std::string> names_of_facts();    // the parameters of Halation's own schedules

// A machine with some facts replaced: "chunk=8,segment=128", or "chunk:8,segment:128", which can be a generator's parameter.
// `schedule`: one of a user's own, whose parameters may occur too. Throws Halide::CompileError saying which name or value is
// wrong and what it may be.
CpuMachine machine_with(const CpuMachine &machine, const std::string &parameters, const std::string &schedule = "");

}  // namespace halation
#endif
