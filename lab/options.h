// What several commands of the lab ask: what is to be timed, and with which schedule.
#ifndef HALATION_LAB_OPTIONS_H
#define HALATION_LAB_OPTIONS_H

#include "cli/command_line.h"
#include "results.h"

#include <functional>

namespace halation::lab {

struct SubjectOptions {
    Subject subject{"", "", "cpu", "", "f32", "f32", "", "", 1, 0, 16, 0, 128, 128, false, false, 1};
    bool known_dims = false;
    int64_t cached = -1;  // not given
};

// RECURRENCE and the options that say what of it.
void add_subject_options(CLI::App &command, SubjectOptions &options);

// With all that was not said filled in. Throws cli::Error.
Subject subject_of(const SubjectOptions &options);

// A schedule: one of a user's own by its name, or Halation's, with some parameters replaced.
struct Choice {
    std::string schedule;
    Parameters parameters;
};

// From words "chunk=8", "mine" (the name of a schedule), "shipped", and "@FILE" for those that a text file holds, or for the best
// of a sweep's file; commas may stand for blanks. Throws cli::Error.
Choice choice_of(const std::vector<std::string> &words);

std::string text_of(const Choice &choice);  // "mine, chunk=8", or "as shipped"

// The parameters that a schedule of that subject reads are the only ones it may be given, within what they may be, and together
// as they may be. Throws cli::Error, or Halide::CompileError for the last.
void require_parameter(const Subject &subject, const std::string &name, const std::vector<int> &values);
void require_parameters(const Subject &subject, const Parameters &parameters);

// A command's callback: errors of Halide's become those of the command line.
std::function<void()> guarded(std::function<void()> work);

extern const char *const words_help;  // what WORDS may be, for the footer of a command

}  // namespace halation::lab
#endif
