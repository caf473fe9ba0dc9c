// Compiled into every generated kernel library: the few functions of Halide's runtime that a kernel calls, served by
// the halation_kernel_context that the kernel was given, and one of ours. The library's build makes these symbols local to it.
#include "halation_kernels.h"

#include <HalideRuntime.h>
#include <cstdarg>
#include <cstdio>

namespace {

halation_kernel_context *context_of(void *user_context) {
    return static_cast<halation_kernel_context *>(user_context);
}

// The runtime checks arguments before it calls a kernel, so each of these is a fault of the library.
int report(void *user_context, int code, const char *format, ...) {
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    context_of(user_context)->error(context_of(user_context), message);
    return code;
}

}  // namespace

extern "C" {

// Not Halide's: what schedules/rows_ahead.h lets kernels call. Asks for `lines` lines of 64 bytes of each of `rows` rows, into
// the second-level cache: they are needed a head later, when the first has seen too much else.
int halation_ask_for_rows(const void *tensor, int64_t offset, int64_t row_bytes, int32_t rows, int32_t lines) {
    // As a number: the rows may lie behind the tensor.
    uintptr_t row = reinterpret_cast<uintptr_t>(tensor) + static_cast<uintptr_t>(offset);
    for (int32_t r = 0; r < rows; r++, row += static_cast<uintptr_t>(row_bytes))
        for (int32_t line = 0; line < lines; line++)
            __builtin_prefetch(reinterpret_cast<const void *>(row + 64 * static_cast<uintptr_t>(line)), 0, 2);
    return 0;
}

void *halide_malloc(void *user_context, size_t bytes) {
    return context_of(user_context)->allocate(context_of(user_context), bytes);
}

void halide_free(void *user_context, void *memory) {
    context_of(user_context)->release(context_of(user_context), memory);
}

int halide_error_out_of_memory(void *user_context) {
    return report(user_context, halide_error_code_out_of_memory, "out of memory");
}

int halide_error_buffer_argument_is_null(void *user_context, const char *buffer) {
    return report(user_context, halide_error_code_buffer_argument_is_null, "%s is null", buffer);
}

int halide_error_host_is_null(void *user_context, const char *buffer) {
    return report(user_context, halide_error_code_host_is_null, "%s has no host memory", buffer);
}

int halide_error_bad_type(void *user_context, const char *buffer, uint32_t type, uint32_t correct) {
    return report(user_context, halide_error_code_bad_type, "%s has type 0x%x instead of 0x%x", buffer, type, correct);
}

int halide_error_bad_dimensions(void *user_context, const char *buffer, int32_t dimensions, int32_t correct) {
    return report(user_context, halide_error_code_bad_dimensions, "%s has %d dimensions instead of %d", buffer, dimensions,
                  correct);
}

int halide_error_access_out_of_bounds(void *user_context, const char *buffer, int dimension, int min_touched, int max_touched,
                                      int min_valid, int max_valid) {
    return report(user_context, halide_error_code_access_out_of_bounds,
                  "%s is used at [%d, %d] of dimension %d, which is [%d, %d]", buffer, min_touched, max_touched, dimension,
                  min_valid, max_valid);
}

int halide_error_buffer_allocation_too_large(void *user_context, const char *buffer, uint64_t size, uint64_t max_size) {
    return report(user_context, halide_error_code_buffer_allocation_too_large, "%s takes %llu bytes, more than %llu", buffer,
                  (unsigned long long)size, (unsigned long long)max_size);
}

int halide_error_buffer_extents_negative(void *user_context, const char *buffer, int dimension, int extent) {
    return report(user_context, halide_error_code_buffer_extents_negative, "%s has extent %d in dimension %d", buffer, extent,
                  dimension);
}

int halide_error_buffer_extents_too_large(void *user_context, const char *buffer, int64_t size, int64_t max_size) {
    return report(user_context, halide_error_code_buffer_extents_too_large, "%s has %lld elements, more than %lld", buffer,
                  (long long)size, (long long)max_size);
}

int halide_error_constraint_violated(void *user_context, const char *what, int value, const char *constraint,
                                     int constraint_value) {
    return report(user_context, halide_error_code_constraint_violated, "%s is %d but must be %s = %d", what, value, constraint,
                  constraint_value);
}

int halide_error_constraints_make_required_region_smaller(void *user_context, const char *buffer, int dimension,
                                                          int constrained_min, int constrained_extent, int required_min,
                                                          int required_extent) {
    return report(user_context, halide_error_code_constraints_make_required_region_smaller,
                  "%s needs [%d, +%d] of dimension %d, which is constrained to [%d, +%d]", buffer, required_min, required_extent,
                  dimension, constrained_min, constrained_extent);
}

int halide_error_explicit_bounds_too_small(void *user_context, const char *func, const char *variable, int min_bound,
                                           int max_bound, int min_required, int max_required) {
    return report(user_context, halide_error_code_explicit_bounds_too_small,
                  "%s is needed at [%d, %d] of %s, bounded to [%d, %d]", func, min_required, max_required, variable, min_bound,
                  max_bound);
}

int halide_error_device_dirty_with_no_device_support(void *user_context, const char *buffer) {
    return report(user_context, halide_error_code_device_dirty_with_no_device_support, "%s is newer on a device", buffer);
}
}
