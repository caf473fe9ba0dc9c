#include "lab.h"

#include "candidate.h"
#include "commands.h"
#include "generators/kernel_files.h"
#include "options.h"

#include <cstdio>
#include <iostream>
#include <iterator>

namespace halation::lab {
namespace {

// A step of a candidate, in a process of its own: see candidate.h.
void add_step(CLI::App &app, const char *name, std::string (*step)(const std::string &)) {
    CLI::App *command = app.add_subcommand(name, "")->group("");
    command->callback(guarded([step] {
        const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
        std::cout << run_lab_step(step, input) << std::flush;
    }));
}

}  // namespace

int run(int argc, char **argv) {
    const Reporter reporter;
    CLI::App app(
        "Experiments with the schedules of recurrent attention: look at a kernel's loops, change its tiles, check it, time "
        "it,\nsearch for better ones.");
    const std::string path = argv[0];
    app.name(path.substr(path.find_last_of('/') + 1));
    app.require_subcommand(1);
    app.footer("'" + app.get_name() +
               " COMMAND --help' describes a command. Exit code: 0 if all is right, 1 if not, 2 for a wrong command line.\n"
               "Kernels are linked with the environment's CXX, or c++.");
    add_list(app);
    add_show(app);
    add_try(app);
    add_compare(app);
    add_sweep(app);
    add_keep(app);
    add_step(app, "step-make-and-check", step_make_and_check);
    add_step(app, "step-time", step_time);
    add_step(app, "step-show", step_show);
    return cli::run_program(app, argc, argv);
}

}  // namespace halation::lab
