// Python values as the fields of halation.h's structs, each with a message that names the field.
#ifndef HALATION_PYTHON_FIELDS_H
#define HALATION_PYTHON_FIELDS_H

#include <halation.h>
#include <nanobind/nanobind.h>

namespace halation::python {

int64_t integer_field(const char *name, nanobind::handle value, int64_t least, int64_t most);
double number_field(const char *name, nanobind::handle value);
bool flag_field(const char *name, nanobind::handle value);

// Points into `value`.
const char *text_field(const char *name, nanobind::handle value);

// "float32", "float16" or "bfloat16".
DLDataType type_field(const char *name, nanobind::handle value);
const char *type_name(DLDataType type);

const char *name_of(halation_form form);

// The problem that keywords say. Its strings point into them.
halation_problem problem_of(nanobind::handle recurrence, const nanobind::kwargs &keywords);

}  // namespace halation::python
#endif
