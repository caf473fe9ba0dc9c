// Options that say which kernel is wanted; `run` and `check` share them.
#ifndef HALATION_CLI_OPTIONS_H
#define HALATION_CLI_OPTIONS_H

#include "halation.h"

#include <CLI/CLI.hpp>

#include <string>

namespace halation::cli {

struct KernelOptions {
    std::string form;  // empty: not given
    std::string backend = "cpu";
    std::string isa;    // empty: the best
    std::string heads;  // empty: as the file says
    int chunk = 0;      // 0: the schedule's own
    int threads = 0;    // 0: one per processor
};

// --form, --backend, --isa, --threads, --heads.
void add_kernel_options(CLI::App &command, KernelOptions &options);

const char *name_of(halation_form form);
halation_form form_named(const std::string &name);  // empty: auto

}  // namespace halation::cli
#endif
