// Recurrences whose state elements do not meet: each is decayed and added to by itself, token by token. hgrn
// (arXiv:2311.04823) has one element a channel, ssm (Mamba-1, arXiv:2312.00752) N of them.
#ifndef HALATION_GENERATORS_SCAN_H
#define HALATION_GENERATORS_SCAN_H

#include <Halide.h>

namespace halation {

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
