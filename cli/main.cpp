#include "commands.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <new>

namespace {

// Whatever a message holds (a library's, or a file's bytes), an error is one line.
int failure(const char *message, int code) {
    std::string line = message;
    for (char &c : line)
        if (c == '\n' || c == '\r') c = ' ';
    while (!line.empty() && line.back() == ' ') line.pop_back();
    std::fflush(stdout);
    std::fprintf(stderr, "halation: %s\n", line.c_str());  // fmt would throw where this cannot be written
    return code;
}

int run(int argc, char **argv) {
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
    if (argc > 1 && argv[1][0] != '-') {  // the library would only say that a command is missing
        const auto named = [&](const CLI::App *command) { return command->get_name() == argv[1]; };
        if (app.get_subcommands(named).empty())
            return failure(fmt::format("there is no command '{}' (see 'halation --help')", argv[1]).c_str(), 2);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success &asked) {  // for help or the version
        return app.exit(asked);
    } catch (const CLI::ParseError &error) {
        std::string asked = "halation";
        for (const CLI::App *command : app.get_subcommands()) asked += " " + command->get_name();
        return failure(fmt::format("{} (see '{} --help')", error.what(), asked).c_str(), 2);
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like any other, and leaves nothing behind
    try {
        const int code = run(argc, argv);
        if (std::fflush(stdout) != 0 || std::ferror(stdout))
            return failure(fmt::format("standard output cannot be written: {}", std::strerror(errno)).c_str(), 1);
        return code;
    } catch (const halation::cli::Failed &) {
        return 1;
    } catch (const std::bad_alloc &) {
        return failure("not enough memory", 1);
    } catch (const std::length_error &) {
        return failure("not enough memory", 1);
    } catch (const std::exception &error) {
        return failure(error.what(), 1);
    }
}
