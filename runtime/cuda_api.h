// The part of CUDA's driver interface that the runtime uses, declared here, so that neither headers nor the library are needed to
// build.
#ifndef HALATION_RUNTIME_CUDA_API_H
#define HALATION_RUNTIME_CUDA_API_H

#include "driver_library.h"

#include <cstddef>
#include <cstdint>

namespace halation::runtime::cuda {

struct ContextObject;
struct StreamObject;
struct ModuleObject;
struct FunctionObject;
using Context = ContextObject *;
using Stream = StreamObject *;  // NULL: the default stream of the current context
using Module = ModuleObject *;
using Function = FunctionObject *;
using DeviceId = int;
using Address = uint64_t;
using Code = int;  // 0: success

constexpr Code invalid_value = 1, out_of_memory = 2, no_device = 100;
constexpr int jit_error_log_buffer = 5, jit_error_log_buffer_bytes = 6;  // of load_module
constexpr int most_dynamic_shared_bytes = 8;                             // of set_function_attribute
constexpr int most_function_threads = 0;                                 // of get_function_attribute
// Of get_device_attribute; of blocks and grids the first of three.
constexpr int most_block_threads = 1, most_block_extent = 2, most_grid_extent = 5, most_shared_bytes = 97;
constexpr int capability_major = 75, capability_minor = 76;

struct Api {
    Code (*init)(unsigned) = nullptr;
    Code (*get_error_name)(Code, const char **) = nullptr;
    Code (*get_error_string)(Code, const char **) = nullptr;
    Code (*get_device_count)(int *) = nullptr;
    Code (*get_device)(DeviceId *, int) = nullptr;
    Code (*get_device_name)(char *, int, DeviceId) = nullptr;
    Code (*get_total_memory)(size_t *, DeviceId) = nullptr;
    Code (*get_device_attribute)(int *, int, DeviceId) = nullptr;
    Code (*retain_primary_context)(Context *, DeviceId) = nullptr;
    Code (*release_primary_context)(DeviceId) = nullptr;
    Code (*push_context)(Context) = nullptr;
    Code (*pop_context)(Context *) = nullptr;
    Code (*get_context_device)(DeviceId *) = nullptr;
    Code (*load_module)(Module *, const void *, unsigned, int *, void **) = nullptr;
    Code (*unload_module)(Module) = nullptr;
    Code (*get_function)(Function *, Module, const char *) = nullptr;
    Code (*get_function_attribute)(int *, int, Function) = nullptr;
    Code (*set_function_attribute)(Function, int, int) = nullptr;
    Code (*launch_kernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void **,
                          void **) = nullptr;
    Code (*allocate)(Address *, size_t) = nullptr;
    Code (*release)(Address) = nullptr;
    Code (*get_range)(Address *, size_t *, Address) = nullptr;  // of the allocation that an address is in
    Code (*copy_to)(Address, const void *, size_t, Stream) = nullptr;
    Code (*copy_from)(void *, Address, size_t, Stream) = nullptr;
    Code (*synchronize)(Stream) = nullptr;
    Code (*is_capturing)(Stream, int *) = nullptr;
    Code (*get_stream_context)(Stream, Context *) = nullptr;

    DriverLibrary library{"libcuda.so.1", "libcuda.so"};
    Code started = 0;  // what init said

    Api();
};

// Loaded once. Only if its library is usable may the functions be called.
const Api &api();

// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)", for messages.
Text<200> code_text(Code code);

}  // namespace halation::runtime::cuda
#endif
