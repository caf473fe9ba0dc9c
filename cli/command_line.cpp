#include "command_line.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <system_error>

namespace halation::cli {
namespace {

// Whatever a message holds (a library's, or a file's bytes), an error is one line.
int failure(const std::string &program, std::string line, int code) {
    for (char &c : line)
        if (c == '\n' || c == '\r') c = ' ';
    while (!line.empty() && line.back() == ' ') line.pop_back();
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program.c_str(), line.c_str());  // fmt would throw where this cannot be written
    return code;
}

int parse(CLI::App &app, int argc, char **argv) {
    const std::string program = app.get_name();
    if (argc > 1 && argv[1][0] != '-') {  // the library would only say that a command is missing
        const auto named = [&](const CLI::App *command) { return command->get_name() == argv[1]; };
        if (app.get_subcommands(named).empty())
            return failure(program, "there is no command '" + std::string(argv[1]) + "' (see '" + program + " --help')", 2);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success &asked) {  // for help or the version
        return app.exit(asked);
    } catch (const CLI::ParseError &error) {
        std::string asked = program;
        for (const CLI::App *command : app.get_subcommands()) asked += " " + command->get_name();
        return failure(program, std::string(error.what()) + " (see '" + asked + " --help')", 2);
    }
    return 0;
}

int cannot_write(const std::string &program, int code) {
    return failure(program, std::string("standard output cannot be written: ") + std::strerror(code), 1);
}

}  // namespace

int run_program(CLI::App &app, int argc, char **argv) {
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like any other, and leaves nothing behind
    const std::string program = app.get_name();
    try {
        const int code = parse(app, argc, argv);
        if (std::fflush(stdout) != 0 || std::ferror(stdout)) return cannot_write(program, errno);
        return code;
    } catch (const Failed &) {
        return 1;
    } catch (const std::bad_alloc &) {
        return failure(program, "not enough memory", 1);
    } catch (const std::length_error &) {
        return failure(program, "not enough memory", 1);
    } catch (const std::system_error &error) {  // fmt's, which knows no name of where it wrote to
        return std::ferror(stdout) ? cannot_write(program, error.code().value()) : failure(program, error.what(), 1);
    } catch (const std::exception &error) {
        return failure(program, error.what(), 1);
    }
}

CLI::Validator words(const std::vector<std::string> &allowed) {
    std::string list;
    for (const std::string &word : allowed) list += (list.empty() ? "" : "|") + word;
    // CLI::IsMember would do, but for a message that lists types and words side by side.
    const auto check = [allowed, list](std::string &given) {
        for (const std::string &word : allowed)
            if (word == given) return std::string();
        return "'" + given + "' is none of " + list;
    };
    return CLI::Validator(check, "");
}

void add_words(CLI::App &command, const char *name, std::string &value, const std::vector<std::string> &allowed,
               const std::string &help) {
    std::string list;
    for (const std::string &word : allowed) list += (list.empty() ? "" : "|") + word;
    command.add_option(name, value, help)->check(words(allowed))->option_text(list);
}

CLI::Validator between(int64_t least, int64_t most) {
    // CLI::Range would do, but for a message that takes the text for a number even where it is none.
    const auto check = [least, most](std::string &given) {
        int64_t number = 0;
        const bool good = CLI::detail::lexical_cast(given, number) && least <= number && number <= most;
        return good ? std::string()
                    : "'" + given + "' is no whole number from " + std::to_string(least) + " to " + std::to_string(most);
    };
    return CLI::Validator(check, "");
}

CLI::Validator from_to(double least, double most) {
    // CLI::Range takes nan.
    const auto check = [least, most](std::string &given) {
        double number = 0;
        const bool good = CLI::detail::lexical_cast(given, number) && least <= number && number <= most;
        char range[64];
        std::snprintf(range, sizeof range, "%g to %g", least, most);
        return good ? std::string() : "'" + given + "' is no number from " + range;
    };
    return CLI::Validator(check, "");
}

CLI::Validator a_path() {
    return CLI::Validator([](std::string &given) { return given.empty() ? std::string("names no file") : std::string(); }, "");
}

std::string now() {
    const std::time_t time = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", std::localtime(&time));
    return text;
}

}  // namespace halation::cli
