// The commands of `halation`, each in its own file. add_x() declares the command with its options and help, and a
// callback that does the work; main.cpp turns what the callback throws into one line on stderr and exit code 1.
#ifndef HALATION_CLI_COMMANDS_H
#define HALATION_CLI_COMMANDS_H

#include "command_line.h"

namespace halation::cli {

void add_list(CLI::App &app);
void add_run(CLI::App &app);
void add_check(CLI::App &app);
void add_demo(CLI::App &app);
void add_bench(CLI::App &app);

}  // namespace halation::cli
#endif
