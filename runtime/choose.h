// Which kernels serve a problem: asking, apart from running.
#ifndef HALATION_RUNTIME_CHOOSE_H
#define HALATION_RUNTIME_CHOOSE_H

#include "problem.h"

namespace halation::runtime {

// A sequence of one token goes to `one`, a longer one to `many`; the same kernel unless the form is auto. By the
// sequence's own length, so that a result never depends on its neighbours.
struct Chosen {
    const halation_kernel *one = nullptr, *many = nullptr;
};

// Fills `choice` (except on refusal, where only its reason is set). Among equals the kernel added first wins.
halation_status choose(const Tables &tables, const Problem &problem, Chosen *chosen, halation_choice *choice);

}  // namespace halation::runtime
#endif
