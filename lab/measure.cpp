#include "measure.h"

#include "bench/inputs.h"
#include "bench/limits.h"
#include "subject.h"

#include <algorithm>
#include <fmt/format.h>

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
    const double first_seconds = bench::seconds_of(run_first), second_seconds = bench::seconds_of(run_second);
    const double both = std::max(first_seconds, 2e-3) + std::max(second_seconds, 2e-3);
    // Enough pairs for quartiles to mean something, unless the second is so slow that nobody will ask.
    const int fewest = second_seconds > 1.5 * first_seconds ? 3 : 9;
    return bench::time_in_turn(std::clamp(static_cast<int>(seconds / both), fewest, 101), run_first, run_second);
}

Limit limit_of(const Subject &subject) {
    const bench::Limits limits = bench::measure_limits(subject.isa, subject.threads);
    const bench::Work work = work_of(subject);
    return {bench::processor_name(), work.multiply_adds, work.bytes, limits.multiply_adds_per_second, limits.bytes_per_second};
}

std::string share_text(const Limit &limit, double seconds) {
    const double share = limit.seconds() / seconds;
    const bool memory = limit.binding() == std::string("memory");
    if (memory && share > 1) return fmt::format("{:.1f} times the speed that memory allows: it is in a cache", share);
    return fmt::format("{:.0f} % of the speed that {}", 100 * share, memory ? "memory allows" : "multiply-adds allow");
}

}  // namespace halation::lab
