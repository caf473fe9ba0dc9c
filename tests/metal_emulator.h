// A GPU with Metal where there is none: a program that links this has one under runtime/metal_device.cpp, in the place of Apple's
// libraries (metal_objects.h). Kernels are compiled for the host (metal_library.h) and run when something waits for them, not
// before.
#ifndef HALATION_TESTS_METAL_EMULATOR_H
#define HALATION_TESTS_METAL_EMULATOR_H

#include "metal_objects.h"
#include "metal_threads.h"

#include <string>

namespace metal_emulator {

// What Apple's GPUs have, at least; https://developer.apple.com/metal/Metal-Feature-Set-Tables.pdf. More is refused.
constexpr size_t most_threads = 1024, most_threadgroup_bytes = 32768, most_buffers = 31;

// Of all launches from now on; at first $HALATION_METAL_ORDER, or forward.
void set_order(const Order &order);

// What a program of the system's own would make: [device newCommandQueue], and so on. Retained.
metal_objects::Object new_device(const std::string &name);
metal_objects::Object new_queue(metal_objects::Object device);
// Private: the host may not touch its memory.
metal_objects::Object new_private_buffer(metal_objects::Object device, size_t bytes);

// From now on: the most bytes that a buffer can have, threads that a pipeline can have; whether encoders and queues are made.
struct Limits {
    size_t buffer_bytes = size_t(8) << 30, pipeline_threads = most_threads;
    bool has_queues = true, has_command_buffers = true, has_encoders = true;
};
Limits &limits();

}  // namespace metal_emulator
#endif
