#include "options.h"
#include "commands.h"

#include <filesystem>

namespace halation::cli {
namespace {

const char *const form_names[] = {"auto", "recurrent", "chunkwise", "parallel"};

}  // namespace

void add_threads_option(CLI::App &command, int &threads) {
    command.add_option("--threads", threads, "at most so many threads (default: 0, which is one per\nprocessor)")
        ->check(between(0, 1024))
        ->option_text("N");
}

void add_backend_options(CLI::App &command, KernelOptions &options) {
    add_words(command, "--backend", options.backend, {"cpu", "cuda", "metal", "opencl"}, "where to run (default: cpu)");
    command
        .add_option("--device", options.device,
                    "which device of a backend but the CPU, as 'halation list' counts\nthem (default: 0)")
        ->check(between(0, 1000))
        ->option_text("N");
}

void refuse_misfits(const KernelOptions &options) {
    if (options.backend == "cpu" && options.device >= 0)
        throw CLI::ValidationError("--device", "got " + std::to_string(options.device) +
                                                   "; must be left out with --backend cpu, which has no devices");
    if (options.backend != "cpu" && !options.isa.empty())
        throw CLI::ValidationError("--isa", "got '" + options.isa + "', which is of the CPU; must be left out with --backend " +
                                                options.backend);
}

void add_kernel_options(CLI::App &command, KernelOptions &options, const KernelHelp &help) {
    add_words(command, "--form", options.form, {"auto", "recurrent", "chunkwise", "parallel"},
              std::string("recurrent: token by token; chunkwise: chunk by chunk, the state\n"
                          "carried; parallel: all tokens at once, where there is a\n"
                          "state on CPUs only;\n") +
                  help.form);
    add_words(command, "--isa", options.isa, {"x86_64", "avx2", "avx512", "neon"},
              std::string("instruction set of the kernels (default: ") + help.isa + ")");
    add_words(command, "--heads", options.heads, {"grouped", "tiled"},
              std::string("with HV = n H heads, head h of HV reads head h / n of H\n"
                          "(grouped) or h % H (tiled); default: ") +
                  help.heads);
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
