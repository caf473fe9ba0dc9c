// How good a memory's answers are: from what was read to probabilities of the next byte.
#ifndef HALATION_CLI_DEMO_SCORE_H
#define HALATION_CLI_DEMO_SCORE_H

#include "demo_task.h"

#include <array>
#include <vector>

namespace halation::demo {

constexpr int64_t most_scored = 4096;  // predictions, or up to a block more

// The tokens at which predictions are scored, as ranges of at most `block` tokens that begin at multiples of it: all
// of them in a short text, every n-th block in a long one, since softmax reads its whole cache for each.
struct Range {
    int64_t first, count;
};
std::vector<Range> scored_ranges(int64_t tokens);

// Share of the scored tokens, from the start, on which the weights are fitted and which is not in the score.
constexpr double fitted_share = 0.1;

struct Score {
    double accuracy = 0;                  // share of bytes that were the most probable one
    double bits = 0;                      // -log2 of the probability given to the byte that came, mean
    std::array<double, heads> weights{};  // w_h below: the inverse temperature of each head
    double prior_weight = 0;              // w_p below
};

// `reads` is [n, heads, dim], what was read at the n scored tokens.
//
// The logit of byte c is sum_h w_h <o_h / |o_h|, embedding of c> + w_p log(share of c among the bytes so far).
// Reads are made unit vectors, as layers of this kind do with a norm after the memory, so that a state that grows does
// not change its own temperature. The prior says which bytes occur at all, which no read says: two random
// embeddings are never quite orthogonal. The weights are fitted by maximum likelihood, a convex problem.
Score score(const Task &task, const std::vector<Range> &ranges, std::vector<float> reads);

// For comparison: the prior alone.
Score score_byte_counts(const Task &task, const std::vector<Range> &ranges);
// And an exact table of everything that followed every context of up to three bytes, which grows with the text.
Score score_context_counts(const Task &task, const std::vector<Range> &ranges);

}  // namespace halation::demo
#endif
