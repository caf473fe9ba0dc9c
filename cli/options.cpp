#include "options.h"

namespace halation::cli {
namespace {

const char *const form_names[] = {"auto", "recurrent", "chunkwise", "parallel"};

void add_words(CLI::App &command, const char *name, std::string &value, const std::vector<std::string> &words, const char *help) {
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

}  // namespace

void add_kernel_options(CLI::App &command, KernelOptions &options) {
    add_words(command, "--form", options.form, {"auto", "recurrent", "chunkwise", "parallel"},
              "recurrent: token by token; chunkwise: chunk by chunk, the state\n"
              "carried; parallel: all tokens at once");
    add_words(command, "--backend", options.backend, {"cpu", "cuda", "metal", "opencl"}, "where to run (default: cpu)");
    add_words(command, "--isa", options.isa, {"x86_64", "avx2", "avx512", "neon"}, "instruction set of the kernel");
    add_words(command, "--heads", options.heads, {"grouped", "tiled"},
              "with HV = n H value heads, value head h reads key head h / n\n"
              "(grouped) or h % H (tiled); default: the file's metadata, else\n"
              "grouped");
    command.add_option("--threads", options.threads, "at most so many threads (default: one per processor)")
        ->check(CLI::Range(1, 4096).description(""))
        ->option_text("N");
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
