// A plan, and the calls that take arguments.
#ifndef HALATION_PYTHON_PLAN_H
#define HALATION_PYTHON_PLAN_H

#include "context.h"

#include <nanobind/nanobind.h>

namespace halation::python {

class Plan {
public:
    Plan(std::shared_ptr<Context> context, nanobind::handle recurrence, const nanobind::kwargs &problem);
    ~Plan();
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;

    halation_choice describe() const;

    // Both take tensors and the vectors of a batch by the names that halation_arguments has for them.
    size_t workspace(const nanobind::kwargs &arguments) const;
    void run(const nanobind::kwargs &arguments) const;

private:
    std::shared_ptr<Context> context_;  // whose libraries have the kernels
    halation_plan *plan_ = nullptr;
};

}  // namespace halation::python
#endif
