// Runs a problem read from a file.
#ifndef HALATION_CLI_COMPUTE_H
#define HALATION_CLI_COMPUTE_H

#include "problem_file.h"

namespace halation::cli {

// Points into `file` and `options`, which must outlive it.
Problem problem_of(const ProblemFile &file, const KernelOptions &options);

struct Results {
    std::map<std::string, safetensors::Tensor> tensors;  // o, final_state, final_normalizer
    halation_choice choice{};
};

// Why the problem cannot be run here, with the status; HALATION_OK and no reason if it can.
struct Refusal {
    halation_status status = HALATION_OK;
    std::string reason;
};
Refusal refusal(const Context &context, const Problem &problem);

// Opens the device that the options ask for, if they do. Throws halation::Error where there is none.
void open_device(Context &context, const KernelOptions &options);

// On a device, tensors are copied there and results back. Throws halation::Error where the runtime refuses.
Results compute(const Context &context, const ProblemFile &file, const KernelOptions &options);

}  // namespace halation::cli
#endif
