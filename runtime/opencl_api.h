// The part of OpenCL 1.2 that the runtime uses, declared here, so that neither headers nor the library are needed to build.
#ifndef HALATION_RUNTIME_OPENCL_API_H
#define HALATION_RUNTIME_OPENCL_API_H

#include "driver_library.h"

#include <cstddef>
#include <cstdint>

namespace halation::runtime::opencl {

struct PlatformObject;
struct DeviceObject;
struct ContextObject;
struct QueueObject;
struct MemoryObject;
struct ProgramObject;
struct KernelObject;
struct EventObject;
using Platform = PlatformObject *;
using DeviceId = DeviceObject *;
using Context = ContextObject *;
using Queue = QueueObject *;
using Memory = MemoryObject *;
using Program = ProgramObject *;
using Kernel = KernelObject *;
using Event = EventObject *;
using Code = int32_t;  // 0: success

constexpr Code device_not_found = -1, memory_object_allocation_failure = -4, out_of_resources = -5, out_of_host_memory = -6,
               platform_not_found = -1001;
constexpr uint64_t device_type_gpu = 1 << 2, device_type_all = 0xFFFFFFFF;
constexpr uint64_t queue_out_of_order = 1;
constexpr uint64_t memory_read_write = 1, memory_write_only = 2, memory_read_only = 4;
constexpr uint64_t host_writes_only = 1 << 7, host_reads_only = 1 << 8, host_has_no_access = 1 << 9;
constexpr uint64_t as_its_parent = 0;  // of a sub-buffer
constexpr uint32_t buffer_create_region = 0x1220;
constexpr intptr_t context_platform = 0x1084;
// What the clGet...Info functions are asked for.
enum Parameter : uint32_t {
    device_type = 0x1000,
    device_block_threads = 0x1004,
    device_block_extents = 0x1005,
    device_base_alignment = 0x1019,  // in bits
    device_memory_bytes = 0x101F,
    device_shared_bytes = 0x1023,
    device_name = 0x102B,
    device_platform = 0x1031,
    context_devices = 0x1081,
    queue_context = 0x1090,
    queue_device = 0x1091,
    queue_properties = 0x1093,
    memory_flags = 0x1101,
    memory_size = 0x1102,
    memory_context = 0x1106,
    memory_parent = 0x1107,
    memory_offset = 0x1108,
    program_build_log = 0x1183,
    kernel_block_threads = 0x11B0,
    event_status = 0x11D3  // 0: complete, negative: failed
};

struct Region {
    size_t origin, size;
};

struct Api {
    Code (*get_platforms)(uint32_t, Platform *, uint32_t *) = nullptr;
    Code (*get_devices)(Platform, uint64_t, uint32_t, DeviceId *, uint32_t *) = nullptr;
    Code (*get_device_info)(DeviceId, uint32_t, size_t, void *, size_t *) = nullptr;
    Context (*create_context)(const intptr_t *, uint32_t, const DeviceId *, void (*)(const char *, const void *, size_t, void *),
                              void *, Code *) = nullptr;
    Code (*retain_context)(Context) = nullptr;
    Code (*release_context)(Context) = nullptr;
    Code (*get_context_info)(Context, uint32_t, size_t, void *, size_t *) = nullptr;
    Queue (*create_queue)(Context, DeviceId, uint64_t, Code *) = nullptr;
    Code (*retain_queue)(Queue) = nullptr;
    Code (*release_queue)(Queue) = nullptr;
    Code (*get_queue_info)(Queue, uint32_t, size_t, void *, size_t *) = nullptr;
    Memory (*create_buffer)(Context, uint64_t, size_t, void *, Code *) = nullptr;
    Memory (*create_sub_buffer)(Memory, uint64_t, uint32_t, const void *, Code *) = nullptr;
    Code (*retain_memory)(Memory) = nullptr;
    Code (*release_memory)(Memory) = nullptr;
    Code (*get_memory_info)(Memory, uint32_t, size_t, void *, size_t *) = nullptr;
    Program (*create_program)(Context, uint32_t, const char **, const size_t *, Code *) = nullptr;
    Code (*build_program)(Program, uint32_t, const DeviceId *, const char *, void (*)(Program, void *), void *) = nullptr;
    Code (*get_build_info)(Program, DeviceId, uint32_t, size_t, void *, size_t *) = nullptr;
    Code (*release_program)(Program) = nullptr;
    Kernel (*create_kernel)(Program, const char *, Code *) = nullptr;
    Code (*get_kernel_info)(Kernel, DeviceId, uint32_t, size_t, void *, size_t *) = nullptr;
    Code (*release_kernel)(Kernel) = nullptr;
    Code (*set_argument)(Kernel, uint32_t, size_t, const void *) = nullptr;
    Code (*enqueue_kernel)(Queue, Kernel, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const Event *,
                           Event *) = nullptr;
    Code (*enqueue_write)(Queue, Memory, uint32_t, size_t, size_t, const void *, uint32_t, const Event *, Event *) = nullptr;
    Code (*enqueue_read)(Queue, Memory, uint32_t, size_t, size_t, void *, uint32_t, const Event *, Event *) = nullptr;
    Code (*get_event_info)(Event, uint32_t, size_t, void *, size_t *) = nullptr;
    Code (*wait_for_events)(uint32_t, const Event *) = nullptr;
    Code (*release_event)(Event) = nullptr;
    Code (*flush)(Queue) = nullptr;
    Code (*finish)(Queue) = nullptr;

    DriverLibrary library{"libOpenCL.so.1", "libOpenCL.so"};

    Api();
};

// Loaded once. Only if its library is usable may the functions be called.
const Api &api();

// "CL_OUT_OF_RESOURCES", for messages; a number where there is no name here.
Text<40> code_name(Code code);

}  // namespace halation::runtime::opencl
#endif
