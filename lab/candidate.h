// A candidate goes through two steps, each in a process of its own, so that a schedule that crashes costs that candidate only:
// made and checked, which may run side by side, then timed, which runs alone.
#ifndef HALATION_LAB_CANDIDATE_H
#define HALATION_LAB_CANDIDATE_H

#include "results.h"

namespace halation::lab {

// Makes the kernel in `directory`, loads it and checks it. The status is Status::timed, with times yet to come, if it is right.
Result make_and_check(const Subject &subject, const Parameters &parameters, const std::string &directory, double timeout_seconds);

// Times a candidate that was made in `directory` in turn with another, the shipped schedule as a rule. Fills in the rest of
// `result`.
void time_candidate(const Subject &subject, const std::string &directory, const Subject &other,
                    const Parameters &other_parameters, const std::string &other_directory, double seconds, Result &result);

// Writes files of the kernel, of Halide's kinds (generators/kernel_files.h), named "candidate"; returns its loop nest. Throws
// std::runtime_error.
std::string write_and_show(const Subject &subject, const Parameters &parameters, const std::string &directory,
                           const std::vector<std::string> &kinds);

// What these processes do: the lab's hidden commands. They read from `input` and return their result.
std::string step_make_and_check(const std::string &input);
std::string step_time(const std::string &input);
std::string step_show(const std::string &input);
// What a hidden command prints: the step's result, so that it is found among what a schedule may print.
std::string run_lab_step(std::string (*step)(const std::string &), const std::string &input);

// A folder that is gone when this is; those of processes that were killed go when another is made.
class WorkFolder {
public:
    WorkFolder();
    ~WorkFolder();
    WorkFolder(const WorkFolder &) = delete;
    WorkFolder &operator=(const WorkFolder &) = delete;
    const std::string &path() const { return path_; }
    std::string sub(const std::string &name) const;  // makes it

private:
    std::string path_;
    int lock_ = -1;
};

}  // namespace halation::lab
#endif
