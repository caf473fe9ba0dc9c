// What the tables of a context say, for a caller to look at.
#ifndef HALATION_PYTHON_RECURRENCES_H
#define HALATION_PYTHON_RECURRENCES_H

#include <halation_kernels.h>
#include <nanobind/nanobind.h>

#include <vector>

namespace halation::python {

void add_recurrences(nanobind::module_ &module);

// By name, in the order of the tables.
nanobind::dict recurrences_of(const std::vector<const halation_kernel_table *> &tables);

}  // namespace halation::python
#endif
