// ggml's operators of the same recurrences, where the build was given ggml: -DHALATION_BENCH_GGML=<prefix>.
#ifndef HALATION_BENCH_GGML_PEER_H
#define HALATION_BENCH_GGML_PEER_H

#include "inputs.h"

#include <functional>

namespace bench {

// A call of ggml's operator on inputs of its own, in its own layouts, with as many threads; empty where there is none. gated is
// its Mamba-2 scan with one group of B and C, ssm its Mamba-1 scan.
std::function<void()> ggml_call(const halation_row &row, const halation_problem &problem, const Sizes &sizes, int threads);

// "ggml d99724f", as its library says; empty: there is none.
std::string ggml_version();

}  // namespace bench
#endif
