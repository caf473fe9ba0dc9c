// Recurrences whose state elements do not meet: each is decayed and added to by itself, token by token. hgrn
// (arXiv:2311.04823) has one element a channel, ssm (Mamba-1, arXiv:2312.00752) N of them.
#ifndef HALATION_GENERATORS_SCAN_H
#define HALATION_GENERATORS_SCAN_H

#include "row.h"

namespace halation {

// What a recurrence does with a token, as expressions of its inputs for a channel v and an element n of its state: token["x"] is
// a float, token["scale"] too, token["has_NAME"] an int32, 0 where the caller left the optional input NAME out.
struct ScanRow {
    using OfToken = std::function<Halide::Expr(const Token &, const Halide::Expr &)>;
    TokenExpr decay, write;              // S_t = decay S_{t-1} + write
    OfToken read;                        // what is read of an element of S_t, to be summed over n
    OfToken output;                      // o of that sum
    std::vector<std::string> asked_for;  // the inputs NAME of which it uses token["has_NAME"]
};
const ScanRow &scan_row(const std::string &recurrence);

// Var names: v channel, n element of a channel's state, c token (the chunk loop of carry.h, chunks being single tokens).
struct Scan {
    Halide::Var v{"v"}, n{"n"}, c{"c"}, t{"t"};
    Halide::Expr elements;             // N
    Halide::Func rates;                // (v,n) A of ssm, transposed; undefined for hgrn
    Halide::Func state_before;         // (v,n,c), see carry.h
    Halide::Func state_after;          // (v,n,c)
    Halide::Func reads;                // (v,c) sum over n of what is read from the state
    Halide::Func final_state_copy;     // (v,n,c)
    Halide::Func output, final_state;  // (v,t), (v,n) or (v)
    Halide::RDom over_elements;
};

// Adds the passes of carry.h and guard.h for this scan.
void resolve_markers(Halide::Pipeline pipeline, const Scan &scan);

}  // namespace halation
#endif
