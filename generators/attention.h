// softmax attention over a cache.
#ifndef HALATION_GENERATORS_ATTENTION_H
#define HALATION_GENERATORS_ATTENTION_H

#include "../schedules/machines.h"

#include <vector>

namespace halation {

// What the queries see of a cache: they are the last `tokens` of the cached tokens.
struct Cache {
    Halide::Expr cached, tokens;  // S, T
    Halide::Expr causal;          // 0: every query sees the whole cache

    // Whether query t sees cached token s.
    Halide::Expr sees(const Halide::Expr &s, const Halide::Expr &t) const {
        return s < cached && (causal == 0 || s <= cached - tokens + t);
    }
    // How many query t sees: the first of the cache.
    Halide::Expr seen_by(const Halide::Expr &t) const {
        return select(causal == 0, cached, clamp(cached - tokens + t + 1, 0, cached));
    }
};

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

// The same with a running maximum, so that nothing of S elements is kept: what a block of keys gives is added to what those
// before gave, both scaled to the larger of their maxima (arXiv:2205.14135). Var names: i query in a tile, j cached token in a
// block of keys, c block of keys in a part of the cache, d key channel, h sequence and value head. Value channel (y lanes + x)
// channels + e: a thread has all e of one x and y, as elements of a Tuple {maximum, sum of weights, sums of values}.
struct OnlineAttention {
    Halide::Var i{"i"}, tile{"tile"}, j{"j"}, c{"c"}, part{"part"}, d{"d"}, x{"x"}, y{"y"}, e{"e"}, v{"v"}, t{"t"}, h{"h"};
    AttentionTile shape;
    Halide::Func queries, keys;        // (d,i,tile,h) scaled, (d,j,c,part,tile,h): zero beyond K
    Halide::Func scores;               // (j,i,c,part,tile,h)
    Halide::Func maxima;               // (i,c,part,tile,h) of a block of keys
    Halide::Func weights;              // (j,i,c,part,tile,h) exp(score - maximum of the block)
    std::vector<Halide::Func> values;  // (x,e,y,j,c,part,tile,h), for each update of block_sums
    Halide::Func block_sums;           // (x,y,i,c,part,tile,h) {sum, sums}
    Halide::Func part_sums;            // (x,y,i,part,tile,h)
    Halide::Func all_sums;             // (x,y,i,tile,h); undefined where a cache has one part
    Halide::Func output;               // (v,h,t)
    Halide::RDom over_keys, over_scores;
    std::vector<Halide::RDom> over_values;  // of the updates of block_sums
    Halide::RDom over_blocks, over_parts;
    // Set by the schedule: loops in which sums grow, and the sums (skip_turns.h); loops, and what is loaded in them a turn ahead
    // (chunk_ahead.h).
    std::vector<std::pair<std::string, std::string>> skipped;
    std::vector<std::pair<std::string, std::vector<std::string>>> ahead;
};

}  // namespace halation
#endif
