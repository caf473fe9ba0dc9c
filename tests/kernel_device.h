// Where the kernels under test run: on the CPU, or on the device of a backend.
#ifndef HALATION_TESTS_KERNEL_DEVICE_H
#define HALATION_TESTS_KERNEL_DEVICE_H

#include "kernel_placed.h"

#include <string>
#include <vector>

namespace kernels {

// "cpu" until the program says otherwise. Whatever is drawn or asked of the kernel table means kernels of this backend.
const std::string &tested_backend();
bool on_device();
// Opens device 0 of the backend, with the kernels of the library; "cpu" closes it.
void test_backend(const std::string &backend);
// The context that has the device.
halation::Context &device_context();

// Device memory that holds what a Placed holds, with NaN on both sides of it.
class DeviceCopy {
public:
    DeviceCopy(const halation::Context &context, const Placed &placed);

    // The same tensor there.
    halation::Tensor view() const { return view_; }
    // Takes what the device left into the Placed, if any; `changed` says whether that differs from what was put there.
    // False if anything around it was written.
    bool fetch(Placed *placed, bool *changed);

private:
    std::vector<uint8_t> sent_;
    halation::DeviceMemory memory_;
    halation::Tensor view_;
};

}  // namespace kernels
#endif
