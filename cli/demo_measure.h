// What the demonstration finds out about one memory: what it reads, how far its forms agree, what it costs.
#ifndef HALATION_CLI_DEMO_MEASURE_H
#define HALATION_CLI_DEMO_MEASURE_H

#include "demo_chart.h"
#include "demo_progress.h"
#include "demo_runner.h"
#include "demo_score.h"

#include <vector>

namespace halation::demo {

constexpr int64_t parallel_tokens = 2048;  // the parallel form is quadratic: compared on this many tokens from the start
constexpr int64_t timed_tokens = 4096;     // context at which prefill and decode are timed

struct Reading {
    std::vector<float> reads;       // [scored tokens, heads, dim]
    std::vector<Point> state_norm;  // after so many tokens; empty without a state
    // ||recurrent - chunkwise|| / ||chunkwise|| over the outputs of the whole text; NaN if one of them is not there.
    double recurrent_to_chunkwise;
    std::string kernel, isa;  // what the reads come from
};

// Reads the whole text, chunkwise where there is such a form, and the recurrent form along with it. A memory without a
// state reads only the scored tokens, from a cache of all that came before.
Reading read_text_through(const Context &context, const Task &task, const Memory &memory, const std::vector<Range> &ranges,
                          Progress &progress);

// Relative differences between the outputs of two forms on the first `parallel_tokens` tokens; NaN if one of them is
// not there.
struct Agreement {
    double recurrent_to_chunkwise, recurrent_to_parallel, chunkwise_to_parallel;
};
Agreement compare_forms(const Context &context, const Task &task, const Memory &memory);

// Medians, in seconds a token with all its heads. NaN if the form is not there.
struct Timing {
    double prefill, decode;
    int64_t state_bytes;  // 0 without a state
};
// Prefill: `length` tokens at once, divided by their number, chunkwise or, without such a form, parallel. Decode: one
// token in a call, after a context of `length` tokens.
Timing time_at(const Context &context, const Task &task, const Memory &memory, int64_t length);

// Where two measured curves over the same lengths first cross, by straight lines between points on logarithmic axes.
// NaN if they do not.
double crossover(const std::vector<Point> &a, const std::vector<Point> &b);

}  // namespace halation::demo
#endif
