// Compiled into generated kernel libraries that have kernels of a GPU: what their host code calls of Halide's runtime, served by
// the halation_kernel_context that the kernel was given. Nothing here knows a GPU's programming interface, so a library of such
// kernels loads on any machine. The library's build makes these symbols local to it.
#include "halation_kernels.h"

#include <HalideRuntime.h>
#include <cstdio>

namespace {

halation_kernel_context *context_of(void *user_context) {
    return static_cast<halation_kernel_context *>(user_context);
}

int report(void *user_context, int code, const char *message) {
    context_of(user_context)->error(context_of(user_context), message);
    return code;
}

// Kernels only hand it on; that it is there tells them apart from kernels without a device.
const halide_device_interface_t interface_of_all{};

// `state` is one word of the library's, shared by all that run the kernel. It gets the code's address, the same each time.
int load(void *user_context, void **state, const char *code, int bytes) {
    __atomic_store_n(state, const_cast<char *>(code), __ATOMIC_RELAXED);
    return context_of(user_context)->load(context_of(user_context), code, static_cast<size_t>(bytes)) == 0
               ? 0
               : halide_error_code_gpu_device_error;
}

int run(void *user_context, void *state, const char *entry, const int (&blocks)[3], const int (&threads)[3], int shared_bytes,
        const size_t *sizes, void **arguments, const int8_t *is_buffer) {
    halation_launch launch;
    launch.code = state;
    launch.entry = entry;
    for (int d = 0; d < 3; d++) launch.grid[d] = blocks[d], launch.block[d] = threads[d];
    launch.shared_bytes = shared_bytes;
    launch.argument_count = 0;
    while (sizes[launch.argument_count] != 0) launch.argument_count++;
    launch.argument_bytes = sizes;
    // Of a buffer they have its halide_buffer_t, which begins with the device handle.
    static_assert(offsetof(halide_buffer_t, device) == 0, "a buffer's argument is its handle's address");
    launch.arguments = arguments;
    launch.is_buffer = is_buffer;
    return context_of(user_context)->launch(context_of(user_context), &launch) == 0 ? 0 : halide_error_code_gpu_device_error;
}

// From the lowest element that a kernel may touch to the highest; buffers that kernels make begin with the lowest.
size_t bytes_of(const halide_buffer_t &buffer) {
    size_t last = 0;
    for (int d = 0; d < buffer.dimensions; d++) {
        if (buffer.dim[d].extent <= 0) return 0;
        last += static_cast<size_t>(buffer.dim[d].extent - 1) * static_cast<size_t>(buffer.dim[d].stride);
    }
    return (last + 1) * static_cast<size_t>(buffer.type.bytes());
}

}  // namespace

#define HALATION_GLUE(backend)                                                                                 \
    const halide_device_interface_t *halide_##backend##_device_interface() {                                   \
        return &interface_of_all;                                                                              \
    }                                                                                                          \
    int halide_##backend##_initialize_kernels(void *user_context, void **state, const char *code, int bytes) { \
        return load(user_context, state, code, bytes);                                                         \
    }                                                                                                          \
    void halide_##backend##_finalize_kernels(void *, void *) {}

#define HALATION_RUN_GLUE(backend)                                                                                               \
    int halide_##backend##_run(void *user_context, void *state, const char *entry, int blocks_x, int blocks_y, int blocks_z,     \
                               int threads_x, int threads_y, int threads_z, int shared_bytes, size_t sizes[], void *arguments[], \
                               int8_t is_buffer[]) {                                                                             \
        return run(user_context, state, entry, {blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}, shared_bytes,  \
                   sizes, arguments, is_buffer);                                                                                 \
    }

extern "C" {

HALATION_GLUE(cuda)
HALATION_GLUE(opencl)
HALATION_GLUE(metal)
HALATION_RUN_GLUE(cuda)
HALATION_RUN_GLUE(opencl)

// Metal's is given the types of arguments, the others their sizes.
int halide_metal_run(void *user_context, void *state, const char *entry, int blocks_x, int blocks_y, int blocks_z, int threads_x,
                     int threads_y, int threads_z, int shared_bytes, halide_type_t types[], void *arguments[],
                     int8_t is_buffer[]) {
    constexpr int most = 256;
    size_t sizes[most + 1];
    int count = 0;
    for (; types[count].as_u32() != 0; count++) {
        if (count == most) return report(user_context, halide_error_code_gpu_device_error, "a launch has over 256 arguments");
        sizes[count] = is_buffer[count] ? sizeof(uint64_t) : static_cast<size_t>(types[count].bytes());
    }
    sizes[count] = 0;
    return run(user_context, state, entry, {blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}, shared_bytes, sizes,
               arguments, is_buffer);
}

// Tensors come with their device memory, what a kernel keeps between launches without.
int halide_device_malloc(void *user_context, halide_buffer_t *buffer, const halide_device_interface_t *interface) {
    if (buffer->device) return 0;
    const size_t bytes = bytes_of(*buffer);
    uint64_t handle = 0;
    if (context_of(user_context)->device_allocate(context_of(user_context), bytes ? bytes : 1, &handle) != 0)
        return halide_error_code_device_malloc_failed;
    buffer->device = handle;
    buffer->device_interface = interface;
    return 0;
}

int halide_device_free(void *user_context, halide_buffer_t *buffer) {
    if (!buffer->device) return 0;
    const uint64_t handle = buffer->device;
    buffer->device = 0;
    buffer->device_interface = nullptr;
    buffer->set_device_dirty(false);
    return context_of(user_context)->device_release(context_of(user_context), handle) == 0 ? 0
                                                                                           : halide_error_code_device_free_failed;
}

void halide_device_free_as_destructor(void *user_context, void *buffer) {
    halide_device_free(user_context, static_cast<halide_buffer_t *>(buffer));
}

// Nothing is ever newer on the host, nor wanted there: a kernel for which that is so was scheduled partly on the CPU.
int halide_copy_to_device(void *user_context, halide_buffer_t *buffer, const halide_device_interface_t *interface) {
    if (buffer->host_dirty())
        return report(user_context, halide_error_code_copy_to_device_failed, "a buffer that a device needs is newer on the host");
    return halide_device_malloc(user_context, buffer, interface);
}

int halide_copy_to_host(void *user_context, halide_buffer_t *buffer) {
    if (!buffer->device_dirty()) return 0;
    return report(user_context, halide_error_code_copy_to_host_failed, "a buffer that the host needs is newer on a device");
}

int halide_device_and_host_malloc(void *user_context, halide_buffer_t *, const halide_device_interface_t *) {
    return report(user_context, halide_error_code_device_malloc_failed, "a buffer is wanted on the host and on a device");
}

int halide_device_and_host_free(void *, halide_buffer_t *) {
    return 0;
}

void halide_device_and_host_free_as_destructor(void *, void *) {}
}
