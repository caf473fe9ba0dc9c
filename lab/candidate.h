// A candidate goes through two steps, each in a process of its own, so that a schedule that crashes costs that candidate only:
// made and checked, which may run side by side, then timed, which runs alone.
#ifndef HALATION_LAB_CANDIDATE_H
#define HALATION_LAB_CANDIDATE_H

#include "results.h"

namespace halation::lab {

struct Candidate {
    Subject subject;
    Parameters parameters;
    std::string directory;  // where its kernel is made
};

// Makes the kernel, loads it and checks it. The status is Status::timed, with times yet to come, if it is right.
Result make_and_check(const Candidate &candidate, double timeout_seconds);

// Times a candidate that was made in turn with another, the shipped schedule as a rule. Fills in the rest of `result`.
void time_candidate(const Candidate &candidate, const Candidate &other, double seconds, Result &result);

// Writes files of the kernel, of Halide's kinds (generators/kernel_files.h), named "candidate"; returns its loop nest. Throws
// std::runtime_error.
std::string write_and_show(const Candidate &candidate, const std::vector<std::string> &kinds);

// What these processes do: the lab's hidden commands. They read from `input` and return their result.
std::string step_make_and_check(const std::string &input);
std::string step_time(const std::string &input);
std::string step_show(const std::string &input);
// What a hidden command prints: the step's result, so that it is found among what a schedule may print.
std::string run_lab_step(std::string (*step)(const std::string &), const std::string &input);

}  // namespace halation::lab
#endif
