// What the host code of a GPU kernel is given: its arguments as buffers of device memory, and the functions behind its context.
#ifndef HALATION_RUNTIME_GPU_CALL_H
#define HALATION_RUNTIME_GPU_CALL_H

#include "kernel_call.h"

#include <vector>

namespace halation::runtime {

// Points kernels to memory, as long as this lives.
class Handles {
public:
    explicit Handles(Device &device) : device_(device) {}
    ~Handles() {
        for (const Made &made : made_) device_.let_go(made.handle);
    }
    Handles(const Handles &) = delete;
    Handles &operator=(const Handles &) = delete;

    // The same place gets the same handle.
    halation_status point_to(const char *name, const Location &location, uint64_t bytes, uint64_t *handle);

private:
    struct Made {
        Location location;
        uint64_t bytes, handle;
    };
    Device &device_;
    std::vector<Made> made_;
};

// A call of one kernel. The buffers are filled by the caller.
class GpuCall {
public:
    // What becomes of launches: held against the device's limits; that, and made ready; made. Only the last allocates.
    enum class Mode { check, prepare, launch };
    GpuCall(const halation_plan &plan, const BoundKernel &bound, const Arguments &arguments, Mode mode);

    KernelBuffer &buffer(int tensor) { return call_.buffers[tensor]; }
    KernelBuffer &sequences() { return call_.sequences; }
    void set_most(int32_t tokens, int32_t cached) {
        call_.most_tokens = tokens;
        call_.most_cached = cached;
    }
    // Whether the states in `buffer` are of bfloat16.
    void set_bits(bool initial, bool final) {
        call_.reads_bits = initial;
        call_.writes_bits = final;
    }

    // Its tensors as the row has them; a kernel of a GPU sees every axis.
    static void fill(const TensorSpec &spec, const TensorView &view, uint64_t handle, KernelBuffer *buffer);
    static void fill_sequences(int32_t entries, uint64_t handle, KernelBuffer *buffer);

    halation_status run();

private:
    // Standard layout, so that the pointer that a kernel has leads back to its call.
    struct Interface {
        halation_kernel_context kernel;
        GpuCall *owner;
    };

    static GpuCall &of(halation_kernel_context *kernel) { return *reinterpret_cast<Interface *>(kernel)->owner; }
    halation_status launch(const halation_launch &launch);
    bool dry() const { return mode_ != Mode::launch; }
    // Keeps the first failure, with its message. What host code gets: 0 if all is well.
    int result(halation_status status);

    const halation_plan &plan_;
    const BoundKernel &bound_;
    const Mode mode_;
    Interface interface_;
    KernelCall call_;
    halation_status status_ = HALATION_OK;
    char message_[700] = {};
};

}  // namespace halation::runtime
#endif
