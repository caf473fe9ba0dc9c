// Runs other programs: compilers, linkers, and the lab itself, so that a candidate that crashes takes nothing with it.
#ifndef HALATION_LAB_PROCESS_H
#define HALATION_LAB_PROCESS_H

#include <string>
#include <vector>

namespace halation::lab {

struct Finished {
    int code = 0;            // exit code; -1 if a signal ended it
    int signal = 0;          // that signal
    bool timed_out = false;  // it was killed after timeout_seconds
    std::string out, err;    // what it wrote

    bool succeeded() const { return code == 0 && !timed_out; }
    // Why it did not succeed, in one line: what it said, or what ended it.
    std::string reason() const;
};

// argv[0] is looked for in PATH. Throws std::runtime_error naming the program if it cannot be started. What it has started
// itself is killed with it.
Finished run_process(const std::vector<std::string> &argv, double timeout_seconds, const std::string &input = "");

// Whether a program of that name is in PATH.
bool in_path(const std::string &program);

}  // namespace halation::lab
#endif
