// Machine code of CUDA: what ptxas makes of a kernel's PTX, for each of some architectures. With it a kernel starts without the
// driver's compiler, and with the registers that were seen when it was built.
#ifndef HALATION_GENERATORS_CUBINS_H
#define HALATION_GENERATORS_CUBINS_H

#include <string>
#include <vector>

namespace halation {

struct Cubins {
    std::string ptxas;               // the program; empty: no machine code is made
    std::vector<int> architectures;  // compute capabilities: 80 for 8.0, ...
};

// PTX whose kernels take at most so many registers a thread. Throws Halide::CompileError where there is none in it.
std::string with_most_registers(const std::string &ptx, int registers);

// PTX and machine code as one piece of device code (halation_device_code in halation_kernels.h). Files are made beside `stem` and
// removed but for STEM.registers.txt: a line for each architecture and function, with the registers of a thread, bytes of its
// stack, and bytes spilled. Throws Halide::CompileError with what ptxas says.
std::string cuda_code(const std::string &ptx, const Cubins &cubins, const std::string &stem);

}  // namespace halation
#endif
