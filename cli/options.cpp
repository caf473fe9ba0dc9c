#include "options.h"
#include "commands.h"

#include <filesystem>

namespace halation::cli {
namespace {

const char *const form_names[] = {"auto", "recurrent", "chunkwise", "parallel"};

}  // namespace

void add_words(CLI::App &command, const char *name, std::string &value, const std::vector<std::string> &words,
               const std::string &help) {
    std::string list;
    for (const std::string &word : words) list += (list.empty() ? "" : "|") + word;
    // CLI::IsMember would do, but for a message that lists types and words side by side.
    const auto check = [words, list](std::string &given) {
        for (const std::string &word : words)
            if (word == given) return std::string();
        return "'" + given + "' is none of " + list;
    };
    command.add_option(name, value, help)->check(CLI::Validator(check, ""))->option_text(list);
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

void add_threads_option(CLI::App &command, int &threads) {
    command.add_option("--threads", threads, "at most so many threads (default: 0, which is one per\nprocessor)")
        ->check(between(0, 1024))
        ->option_text("N");
}

void add_kernel_options(CLI::App &command, KernelOptions &options, const KernelHelp &help) {
    add_words(command, "--form", options.form, {"auto", "recurrent", "chunkwise", "parallel"},
              std::string("recurrent: token by token; chunkwise: chunk by chunk, the state\n"
                          "carried; parallel: all tokens at once;\n") +
                  help.form);
    add_words(command, "--backend", options.backend, {"cpu", "cuda", "metal", "opencl"}, "where to run (default: cpu)");
    add_words(command, "--isa", options.isa, {"x86_64", "avx2", "avx512", "neon"},
              std::string("instruction set of the kernels (default: ") + help.isa + ")");
    add_words(command, "--heads", options.heads, {"grouped", "tiled"},
              std::string("with HV = n H heads, head h of HV reads head h / n of H\n"
                          "(grouped) or h % H (tiled); default: ") +
                  help.heads);
    add_threads_option(command, options.threads);
}

void refuse_same_file(const std::string &input, const std::string &output) {
    std::error_code error;  // a file that is not there is no other's
    if (std::filesystem::equivalent(input, output, error)) throw Error(output + ": is both input and output, and would be lost");
}

const char *name_of(halation_form form) {
    return form_names[form];
}

halation_form form_named(const std::string &name) {
    for (int form = 0; form < 4; form++)
        if (name == form_names[form]) return static_cast<halation_form>(form);
    return HALATION_FORM_AUTO;
}

}  // namespace halation::cli
