// How calls fail: a status of halation.h becomes an exception of its own, with the runtime's message.
#ifndef HALATION_PYTHON_ERRORS_H
#define HALATION_PYTHON_ERRORS_H

#include <halation.h>
#include <nanobind/nanobind.h>

#include <string>

namespace halation::python {

// Error, and a subclass of it and of a built-in exception for each status.
void add_errors(nanobind::module_ &module);

[[noreturn]] void raise(halation_status status, const std::string &message);
[[noreturn]] void raise_type_error(const std::string &message);

// InvalidArgument, with what another library raised as its cause.
[[noreturn]] void raise_invalid_from(nanobind::python_error &cause, const char *name);

// Whether it is one of ours.
bool is_error(const nanobind::python_error &error);

// halation_last_message() is of this thread, which has called nothing since.
inline void check(halation_status status) {
    if (status != HALATION_OK) raise(status, halation_last_message());
}

// As a message shows a value that was given: its repr, if it is short, and its type.
std::string shown(nanobind::handle value);

}  // namespace halation::python
#endif
