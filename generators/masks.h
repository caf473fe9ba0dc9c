// Conditions that hold in all of a loop. Halide divides a loop over tiles into those that are whole and the last, and takes the
// masks away from the former, but not those that carry.h and guard.h put in after it: this pass does.
#ifndef HALATION_GENERATORS_MASKS_H
#define HALATION_GENERATORS_MASKS_H

#include <Halide.h>

namespace halation {

// Removes the predicates of loads and stores, and the conditions of selects, that are proved to be true of every lane at every
// turn of the loops around them. The last of the passes.
Halide::Internal::IRMutator *make_masks_pass();

}  // namespace halation
#endif
