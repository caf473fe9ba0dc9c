// Kernels of a GPU by hand: a host function like those that Halide makes, and OpenCL C. They compute the row `gated` of
// runtime_fakes.h.
#ifndef HALATION_TESTS_DEVICE_FAKES_H
#define HALATION_TESTS_DEVICE_FAKES_H

#include "runtime_fakes.h"

#include <memory>

namespace device_fakes {

// gated, recurrent and chunkwise, for opencl. Rows are those of fakes::table(), which must be added before it.
const halation_kernel_table *table();

// What the kernels were called with since the last reset.
struct Seen {
    int calls = 0, chunkwise_calls = 0, entries = 0, most_tokens = 0;
    bool fail = false;  // the next call leaves its code unloaded
};
extern Seen seen;

// A context with an OpenCL device and all kernels; NULL, having said why, if this machine has none. That is a failure where the
// environment variable HALATION_REQUIRE_OPENCL is set.
std::unique_ptr<halation::Context> opencl_context();

// A cl_mem with flags of its own, made by the driver itself.
class OpenclMemory {
public:
    OpenclMemory(const halation::Context &context, size_t bytes, uint64_t flags);
    ~OpenclMemory();
    OpenclMemory(const OpenclMemory &) = delete;
    OpenclMemory &operator=(const OpenclMemory &) = delete;
    void *get() const { return memory_; }

private:
    void *memory_;
};

// Tensors of one call, in memory of the device.
class OnDevice {
public:
    OnDevice(const halation::Context &context, const fakes::Gated &data);

    halation::NamedTensors tensors(bool with_initial = true, bool with_final = true) const;
    // All of them, but one of one's own.
    halation::NamedTensors tensors_with(const char *name, halation::Tensor own) const;
    halation::Tensor named(const char *name) const;
    std::vector<float> read(const char *name) const;

private:
    struct Placed {
        std::string name;
        halation::DeviceMemory memory;
        std::vector<int64_t> shape;
        size_t count;
    };
    const halation::Context &context_;
    std::vector<Placed> placed_;
};

}  // namespace device_fakes
#endif
