// Rows of the states: which tensors are one pool, and whether any row is written twice, or read while it is written.
#ifndef HALATION_RUNTIME_POOLS_H
#define HALATION_RUNTIME_POOLS_H

#include "arguments.h"

namespace halation::runtime {

halation_status check_pools(halation_plan *plan, const Arguments &arguments);

}  // namespace halation::runtime
#endif
