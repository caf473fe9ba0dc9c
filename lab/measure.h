// The time of kernels on this machine.
#ifndef HALATION_LAB_MEASURE_H
#define HALATION_LAB_MEASURE_H

#include "bench/paired.h"
#include "kernel.h"
#include "results.h"

namespace halation::lab {

// Both kernels in turn on the subject's problem; `seconds` bounds how long that takes, roughly. Nothing else should run.
bench::Paired measure(const LoadedKernel &first, const LoadedKernel &second, const Subject &subject, double seconds);

// The limits of this machine for the subject.
Limit limit_of(const Subject &subject);

// "52 % of the speed that multiply-adds allow"
std::string share_text(const Limit &limit, double seconds);

}  // namespace halation::lab
#endif
