// How a call fails: a status for the caller, a message for halation_last_message().
#ifndef HALATION_RUNTIME_STATUS_H
#define HALATION_RUNTIME_STATUS_H

#include "halation.h"

#include <new>

namespace halation::runtime {

// Records the message for this thread and returns `status`. Never allocates.
__attribute__((format(printf, 2, 3))) halation_status fail(halation_status status, const char *format, ...);

// Runs the body of a C entry point: whatever C++ throws below it becomes a status.
template<typename Body> halation_status guarded(Body body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return fail(HALATION_OUT_OF_MEMORY, "out of memory for the library's own bookkeeping");
    } catch (...) {
        return fail(HALATION_INTERNAL_ERROR, "an unexpected exception reached the C interface");
    }
}

// Every public struct begins with size and version; both must be those of this library.
template<typename Struct> halation_status check_struct(const Struct *value, const char *name) {
    if (!value) return fail(HALATION_INVALID_ARGUMENT, "%s: is NULL", name);
    if (value->size != sizeof(Struct) || value->version != HALATION_VERSION)
        return fail(HALATION_INVALID_ARGUMENT, "%s: size is %u and version %u; must be %zu and %d (start from HALATION_INIT(%s))",
                    name, value->size, value->version, sizeof(Struct), HALATION_VERSION, name);
    return HALATION_OK;
}

}  // namespace halation::runtime

#define HALATION_TRY(expression)                                            \
    do {                                                                    \
        const halation_status halation_try_status = (expression);           \
        if (halation_try_status != HALATION_OK) return halation_try_status; \
    } while (0)

#endif
