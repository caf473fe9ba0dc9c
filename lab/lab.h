// The lab as a function: the program `halation-lab` is this and nothing else, and so is one that knows recurrences and
// schedules of a user's own besides (halation_add_lab() in cmake/HalationKernels.cmake).
#ifndef HALATION_LAB_LAB_H
#define HALATION_LAB_LAB_H

namespace halation::lab {

int run(int argc, char **argv);

}  // namespace halation::lab
#endif
