// What is experimented on, as the generators and as the runtime see it.
#ifndef HALATION_LAB_SUBJECT_H
#define HALATION_LAB_SUBJECT_H

#include "bench/work.h"
#include "generators/variant.h"
#include "results.h"

#include <halation.hpp>

namespace halation::lab {

// The kernel of the subject with these parameters of its schedule. Throws Halide::CompileError.
Variant variant_of(const Subject &subject, const Parameters &parameters);

// That of the schedule that Halation ships: the subject's own schedule, if it has one, is not used.
Variant shipped_variant_of(const Subject &subject);

// Those that the subject's schedule reads.
std::vector<ScheduleParameter> parameters_of(const Subject &subject);

// The problem that is timed. Points into `subject`.
Problem problem_of(const Subject &subject);

// What one call costs at least.
bench::Work work_of(const Subject &subject);

// "gated_delta chunkwise, cpu avx512 f32, B 1  T 4096  H 16  K 128  V 128, 1 thread"
std::string text_of(const Subject &subject);

}  // namespace halation::lab
#endif
