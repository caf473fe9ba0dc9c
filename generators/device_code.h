// The device code of a GPU kernel: text or machine code that stands in the kernel's module as an image, and goes into its object
// file as it is.
#ifndef HALATION_GENERATORS_DEVICE_CODE_H
#define HALATION_GENERATORS_DEVICE_CODE_H

#include <Halide.h>

#include <functional>
#include <string>

namespace halation {

// The module with what `change` makes of its device code. Throws Halide::CompileError if there is none.
Halide::Module with_device_code(const Halide::Module &module, const std::function<std::string(const std::string &)> &change);

}  // namespace halation
#endif
