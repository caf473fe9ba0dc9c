// Which of a kernel's device code a device is given.
#ifndef HALATION_RUNTIME_CUDA_CODE_H
#define HALATION_RUNTIME_CUDA_CODE_H

#include "halation.h"

#include <cstddef>
#include <vector>

namespace halation::runtime::cuda {

// Of device code (halation_device_code, or anything else, which is taken as it is), what a device of that architecture can run:
// machine code for it first, PTX last. Empty parts and parts outside of `bytes` are refused.
halation_status choose_code(const void *code, size_t bytes, int architecture, std::vector<const void *> *choices);

}  // namespace halation::runtime::cuda
#endif
