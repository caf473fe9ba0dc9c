// Options that several commands share: which kernel is wanted, lists, threads.
#ifndef HALATION_CLI_OPTIONS_H
#define HALATION_CLI_OPTIONS_H

#include "command_line.h"
#include "halation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace halation::cli {

struct KernelOptions {
    std::string form;  // empty: not given
    std::string backend = "cpu";
    std::string isa;    // empty: the best
    std::string heads;  // empty: as the file says
    int chunk = 0;      // 0: the schedule's own
    int threads = 0;    // 0: one per processor
    int device = -1;    // of a backend with devices: which; not given: the first
};

// What the help of --form, --isa and --heads says besides what is common to the commands.
struct KernelHelp {
    const char *form, *isa, *heads;
};

// --form, --isa, --heads.
void add_kernel_options(CLI::App &command, KernelOptions &options, const KernelHelp &help);

// --backend, --device.
void add_backend_options(CLI::App &command, KernelOptions &options);

// A wrong command line where options were given that cannot go together, whatever the file.
void refuse_misfits(const KernelOptions &options);

void add_threads_option(CLI::App &command, int &threads);

// Throws an Error if two paths name one file, by whatever links.
void refuse_same_file(const std::string &input, const std::string &output);

const char *name_of(halation_form form);
halation_form form_named(const std::string &name);  // empty: auto

}  // namespace halation::cli
#endif
