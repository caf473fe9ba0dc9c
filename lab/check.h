// Whether a kernel computes what its recurrence says.
#ifndef HALATION_LAB_CHECK_H
#define HALATION_LAB_CHECK_H

#include "kernel.h"
#include "results.h"

namespace halation::lab {

struct Checked {
    double error = 0, allowed = 0;  // of the case that comes closest to what is allowed, or exceeds it by most
    std::string worst;              // that case and tensor
    bool right() const { return error <= allowed; }
};

// Runs the kernel on random inputs of several shapes, the subject's dims among them, and holds outputs and states against a
// plain loop in double. What is allowed is max(1e-5, 4 times the error of the same loop in float), for 16-bit outputs what
// rounding them costs. Throws std::runtime_error where the loop itself overflows or is all rounding errors.
Checked check_kernel(const LoadedKernel &kernel, const Subject &subject);

}  // namespace halation::lab
#endif
