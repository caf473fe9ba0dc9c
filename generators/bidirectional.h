// Bidirectional linear attention: every token reads all tokens, so the state is one sum.
//     O = phi(Q) (phi(K)^T V), divided by phi(Q) (phi(K)^T 1) unless phi is the identity.
#ifndef HALATION_GENERATORS_BIDIRECTIONAL_H
#define HALATION_GENERATORS_BIDIRECTIONAL_H

#include <Halide.h>

#include <string>
#include <vector>

namespace halation {

// How the tokens of a sequence are shared out, so that one head of one sequence can fill a machine: in parts, which are summed
// each by itself, then together. They depend on the sequence's own length alone: so do its results, to the bit.
struct TokenParts {
    int at_once;               // tokens that are summed in a turn
    int least;                 // tokens in a part at least, a multiple of at_once
    int most;                  // parts at most
    Halide::Expr most_tokens;  // of any sequence

    // Of a sequence of so many tokens.
    Halide::Expr tokens_in_part(const Halide::Expr &tokens) const;
    // Of any sequence.
    Halide::Expr count() const;
    Halide::Expr clamped(const Halide::Expr &token) const;  // to those that a turn of some sequence has
};

struct BidirectionalInputs {
    Halide::Func q, k, v;      // (d,h,t), (d,h,t), (v,h,t); 16-bit types as they are or as bits (math.h)
    Halide::Type type;         // of their elements
    Halide::Type output_type;  // of the output
    Halide::Expr key_dim, value_dim;
    Halide::Expr tokens;  // of the sequence; with parts a function of the Var h
    std::string feature_map;
    Halide::Expr scale;
    const TokenParts *parts = nullptr;  // null: all tokens are summed in order
    int key_slice = 1;                  // key channels are summed up to a multiple of this, with zeros
};

// Var names: t token, d key channel, v value channel, h head, or sequence and head; i token in a turn of a part.
struct Bidirectional {
    Halide::Var t{"t"}, d{"d"}, v{"v"}, h{"h"}, i{"i"}, turn{"turn"}, part{"part"};
    Halide::Func queries, keys, values;   // (d,t,h) phi, zero beyond K and the tokens; (v,t,h)
    std::vector<Halide::Func> features;   // (t,h) what phi needs of all channels
    Halide::Func part_keys, part_values;  // (d,i,turn,part,h), (v,i,turn,part,h); without parts undefined, as all of parts
    // Sums over tokens: of parts, with `part` before h; of all.
    Halide::Func state_parts, state;            // (v,d,h)
    Halide::Func normalizer_parts, normalizer;  // (d,h)
    Halide::Func denominators;                  // (t,h)
    Halide::Func output_sums, output;           // (v,t,h), (v,h,t)
    // state_tokens: of a part, x in a turn and y turn; without parts x is the token.
    Halide::RDom state_tokens, over_parts, over_keys;
    // Set by the schedule: loops in which sums grow, and the sums (skip_turns.h); loops, and what is loaded in them a turn ahead
    // (chunk_ahead.h).
    std::vector<std::pair<std::string, std::string>> skipped;
    std::vector<std::pair<std::string, std::vector<std::string>>> ahead;
};

Bidirectional make_bidirectional(const BidirectionalInputs &inputs);

}  // namespace halation
#endif
