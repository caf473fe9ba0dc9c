// What programs of Halation have in common: how errors are said, and how words and numbers of options are checked.
#ifndef HALATION_CLI_COMMAND_LINE_H
#define HALATION_CLI_COMMAND_LINE_H

#include <CLI/CLI.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace halation::cli {

// Something the user can mend; what() is one line.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The command has reported everything itself, and not all was right: exit code 1 without another line.
struct Failed {};

// Parses and runs a program of commands. Whatever is thrown becomes one line on stderr after the program's name, with exit code
// 1, or 2 if the command line is wrong.
int run_program(CLI::App &app, int argc, char **argv);

// One of these words.
CLI::Validator words(const std::vector<std::string> &allowed);

// An option of one word that must be one of `allowed`.
void add_words(CLI::App &command, const char *name, std::string &value, const std::vector<std::string> &allowed,
               const std::string &help);

// A whole number from `least` to `most`; any number.
CLI::Validator between(int64_t least, int64_t most);
CLI::Validator from_to(double least, double most);

// A path that is not empty, as that of an unset variable would be.
CLI::Validator a_path();

// "2026-11-30 04:15", of this place.
std::string now();

}  // namespace halation::cli
#endif
