#include "measure.h"

#include "bench/inputs.h"
#include "bench/limits.h"
#include "subject.h"

namespace halation::lab {

bench::Paired measure(const LoadedKernel &first, const LoadedKernel &second, const Subject &subject, double seconds) {
    const Problem problem = problem_of(subject);
    const bench::Inputs inputs(first.row(), problem, {subject.batch, subject.tokens, subject.cached});
    Context first_context(subject.threads), second_context(subject.threads);
    first_context.add_kernels(first.table());
    second_context.add_kernels(second.table());
    Plan first_plan(first_context, problem), second_plan(second_context, problem);
    const auto run_first = [&] { first_plan.run(inputs.tensors()); };
    const auto run_second = [&] { second_plan.run(inputs.tensors()); };
    run_first(), run_second();
    const double both = std::max({bench::seconds_of(run_first), 2e-3}) + std::max({bench::seconds_of(run_second), 2e-3});
    return bench::time_in_turn(std::clamp(static_cast<int>(seconds / both), 3, 101), run_first, run_second);
}

Limit limit_of(const Subject &subject) {
    const bench::Limits limits = bench::measure_limits(subject.isa, subject.threads);
    const bench::Work work = work_of(subject);
    return {bench::processor_name(), work.multiply_adds, work.bytes, limits.multiply_adds_per_second, limits.bytes_per_second};
}

}  // namespace halation::lab
