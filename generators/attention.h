// Attention without a carried state: softmax over a cache, and bidirectional linear attention.
#ifndef HALATION_GENERATORS_ATTENTION_H
#define HALATION_GENERATORS_ATTENTION_H

#include <Halide.h>

#include <vector>

namespace halation {

// o_t = sum_s softmax_s(scale q_t^T k_s) v_s. Var names: s cached token, t query, d key channel, v value channel, h head.
struct Attention {
    Halide::Var s{"s"}, t{"t"}, d{"d"}, v{"v"}, h{"h"};
    Halide::Expr cached;               // S
    Halide::Func queries;              // (d,t,h) scaled, zero beyond K
    Halide::Func keys, values;         // (d,s,h) zero beyond K, (v,s,h)
    Halide::Func scores, masked;       // (s,t,h)
    Halide::Func maxima, sums;         // (t,h)
    Halide::Func weights;              // (s,t,h) exp(score - maximum)
    Halide::Func output_sums, output;  // (v,t,h), (v,h,t)
    Halide::RDom over_keys, over_maxima, over_sums;
    Halide::RDom over_seen_by_all, over_seen_by_some;  // the two updates of output_sums
};

// O = phi(Q) (phi(K)^T V), divided by phi(Q) (phi(K)^T 1) unless phi is the identity.
struct Bidirectional {
    Halide::Var t{"t"}, d{"d"}, v{"v"}, h{"h"};
    Halide::Func queries, keys;  // (d,t,h) phi
    std::vector<Halide::Func> features;
    Halide::Func state;                // (v,d,h)
    Halide::Func normalizer;           // (d,h)
    Halide::Func denominators;         // (t,h)
    Halide::Func output_sums, output;  // (v,t,h), (v,h,t)
    Halide::RDom state_tokens, over_keys;
};

}  // namespace halation
#endif
