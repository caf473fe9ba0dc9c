// The commands of `halation-lab`, each in its own file.
#ifndef HALATION_LAB_COMMANDS_H
#define HALATION_LAB_COMMANDS_H

#include "cli/command_line.h"

namespace halation::lab {

void add_list(CLI::App &app);
void add_show(CLI::App &app);
void add_try(CLI::App &app);
void add_compare(CLI::App &app);
void add_sweep(CLI::App &app);
void add_keep(CLI::App &app);

}  // namespace halation::lab
#endif
