#include "status.h"

#include <cstdarg>
#include <cstdio>

namespace halation::runtime {
namespace {

// Plain thread-local storage: no constructor, so a first use on any thread costs nothing and cannot fail.
thread_local char last_message[1024];

}  // namespace

halation_status fail(halation_status status, const char *format, ...) {
    // A message may quote the last one (halation_last_message() as an argument), so it is built aside.
    char text[sizeof last_message];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    snprintf(last_message, sizeof last_message, "%s", text);
    return status;
}

}  // namespace halation::runtime

extern "C" const char *halation_last_message(void) {
    return halation::runtime::last_message;
}
