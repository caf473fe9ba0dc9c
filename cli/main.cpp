#include "commands.h"

int main(int argc, char **argv) {
    CLI::App app("Kernels of recurrent attention: sequence mixers whose memory is a state of fixed size.");
    app.name("halation");
    app.require_subcommand(1);
    app.set_version_flag("--version", "halation " HALATION_PROJECT_VERSION, "Print the version and exit");
    app.footer("'halation COMMAND --help' describes a command. Exit code: 0 if all is right, 1 if not, 2 for a wrong "
               "command line.");
    halation::cli::add_list(app);
    halation::cli::add_run(app);
    halation::cli::add_check(app);
    halation::cli::add_demo(app);
    halation::cli::add_bench(app);
    return halation::cli::run_program(app, argc, argv);
}
