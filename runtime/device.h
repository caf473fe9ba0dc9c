// A device: what the runtime needs of a GPU's programming interface. Implementations load the driver's library themselves, so
// that a program starts on machines without.
#ifndef HALATION_RUNTIME_DEVICE_H
#define HALATION_RUNTIME_DEVICE_H

#include "halation_kernels.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace halation::runtime {

// Where something lies. Addresses are comparable within one memory.
struct Location {
    const void *memory;  // NULL: there is but one address space
    char *address;
    uint64_t bytes;  // from there to the end of the memory, UINT64_MAX if that is not known
};

// What kernels do with a tensor. States are both: a launch goes on from what one before it has left.
struct Access {
    bool read, written;
};

// What a device can give a launch.
struct LaunchLimits {
    int64_t shared_bytes, threads;  // of a block
    int64_t grid[3], block[3];
};

// All functions that can fail leave the message in halation_last_message(). Calls are serialised by the context's mutex, but for
// release(), which plans and users call at any time.
class Device {
public:
    virtual ~Device() = default;

    const halation_device_info &info() const { return info_; }
    const LaunchLimits &limits() const { return limits_; }
    virtual halation_status set_queue(void *native_queue) = 0;

    // Device code: `load` knows it again by its address. `prepare` does what a launch would do on first use, and no more; it
    // refuses a launch that the function cannot have, as HALATION_UNSUPPORTED.
    virtual halation_status load(const void *code, size_t bytes) = 0;
    virtual halation_status prepare(const halation_launch &launch) = 0;
    virtual halation_status launch(const halation_launch &launch) = 0;
    // After the last launch of a run: the driver should begin.
    virtual halation_status submit() = 0;

    virtual halation_status allocate(size_t bytes, void **data) = 0;
    virtual halation_status release(void *data) = 0;
    virtual halation_status copy_to(void *data, size_t offset, const void *from, size_t bytes) = 0;
    virtual halation_status copy_from(const void *data, size_t offset, void *to, size_t bytes) = 0;
    virtual halation_status synchronize() = 0;

    // Writes a few words in the order of the queue, without waiting. What they are is settled when the call returns, in a graph
    // that is being captured too.
    virtual halation_status put(void *data, const int32_t *words, size_t count) = 0;

    // Whether what is put into the queue is being recorded: nothing may be allocated then.
    virtual bool capturing() = 0;

    // Where byte `offset` of `data`, a DLTensor's, lies; `name` is the tensor's, for messages. Refuses memory that was made for
    // less than `access`.
    virtual halation_status locate(const char *name, void *data, uint64_t offset, const Access &access, Location *location) = 0;

    // The same of memory of the plan's own.
    halation_status locate(const char *name, void *data, Location *location) {
        return locate(name, data, 0, {true, true}, location);
    }

    // The handle by which kernels reach `bytes` bytes from a location on. Each is let go once all launches with it are made.
    virtual halation_status point_to(const char *name, const Location &location, uint64_t bytes, uint64_t *handle) = 0;
    virtual void let_go(uint64_t handle) = 0;

    // Of places within a memory that kernels are pointed to, in bytes.
    virtual size_t alignment() const = 0;
    // Whether a kernel may reach before the place that it is pointed to.
    virtual bool reaches_back() const = 0;

protected:
    halation_device_info info_{};
    LaunchLimits limits_{};
};

// What the runtime knows of a backend: how many devices it has here, what they are, and how one is opened.
struct Backend {
    const char *name;
    DLDeviceType type;
    halation_status (*count)(int32_t *count);
    halation_status (*describe)(int32_t ordinal, halation_device_info *info);
    halation_status (*open)(const halation_device_options &options, std::unique_ptr<Device> *device);
};

extern const Backend cuda_backend, opencl_backend, metal_backend;

// Of the name; NULL if this library has none such.
const Backend *find_backend(const char *name);

}  // namespace halation::runtime
#endif
