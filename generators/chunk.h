// The chunk algorithm: every recurrence of row.h, C tokens at a time. C = 1 is the recurrent form, a few tokens
// the chunkwise form, all tokens the parallel form; a form is a chunk length with its schedule.
//
// With L(j,i) the product of the decays of tokens j+1..i, P_i the product up to and including token i of the
// chunk, E_i the product before it, R_j the product after token j to the end of the chunk:
//
//     product(x, y)_ij = sum_d x_id y_jd L(j,i)_d                      j <= i (or j < i)
//     additive   u = v
//     delta      (I + beta * strict product(k, k)) u = beta (v - (k P)^T S)
//     low rank   (I - strict product'(a, b)) w = (a E)^T S + strict product'(a, k) v,   product' with L(j,i-1)
//     output     o = (q P)^T S + product(q, k) u [+ product(q, b) w]   before_write: E and product' for q
//     state      S' = P_C S + sum_j (k_j R_j) u_j [+ (b_j R_j) w_j]
//
// The vectors that are multiplied with the state are called readers (q; then k for delta, a for low rank), those
// that are written into it writers (k; then b for low rank). This file says what is computed, never in what
// order: the Funcs below are what schedules/ work on.
#ifndef HALATION_GENERATORS_CHUNK_H
#define HALATION_GENERATORS_CHUNK_H

#include "row.h"

namespace halation {

// The tensors of one kernel call as the generator declares them, and its sizes.
struct ChunkInputs {
    std::map<std::string, Halide::Func> tensors;  // by input name, dims innermost first, without B
    Halide::Func initial_state;                   // (V, K, G) float
    Halide::Expr scale;
    Halide::Type output_type;
    Halide::Expr tokens, key_dim, value_dim;
    int chunk;                // C
    int key_unroll;           // the padded key dimension is a multiple of this
    std::string feature_map;  // "" for none
};

// Var names: d key channel, v value channel, i token within the chunk, j an earlier one, c chunk, h value head,
// r reader, w writer. Funcs left undefined do not occur in the row.
struct Chunk {
    Halide::Var d{"d"}, v{"v"}, i{"i"}, j{"j"}, c{"c"}, h{"h"}, r{"r"}, w{"w"}, t{"t"};
    int chunk, readers, writers;
    bool key_decay;             // decays differ by key channel
    bool value_decay;           // and by value channel
    Halide::Expr padded_key_dim;  // the sums over d run to here; channels beyond key_dim are zero

    // From the token's inputs, padded with zeros beyond T and K.
    Halide::Func reads, writes, values, beta;  // (d,r,i,c,h), (d,w,j,c,h), (v,i,c,h), (i,c,h) or (v,i,c,h)

    // Decays: key_step(i) is the decay at token i, per head (i,c,h) or per key channel (d,i,c,h). The value_ Funcs
    // are the same per value channel (v,i,c,h).
    Halide::Func step, through, before, after, between;  // D_i, P_i, E_i, R_j; between: L(j,i) per head (j,i,c,h)
    Halide::Func carried;                                // (d,w,j,i,c,h) writer j as token i sees it: y_jd L(j,i)_d
    Halide::Func value_step, value_through, value_before, value_after, value_between;

    Halide::Func reads_from_start, writes_to_end;  // x P (or x E) and y R per key channel
    Halide::Func product_sums, products;           // (r,w,j,i,c,h)

    Halide::Func state_before;  // (v,d,c,h), see carry.h
    Halide::Func state_reads;   // (v,r,i,c,h) = reader^T S
    Halide::Func solved;        // (v,i,c,h) u of delta, w of low rank
    Halide::Func written;       // (v,w,j,c,h) the values written: v, u or w
    Halide::Func written_to_end;  // the same, decayed to the end of the chunk where decays are per head or value channel
    Halide::Func output_sums;   // (v,i,c,h)
    Halide::Func state_sums;    // (v,d,c,h)
    Halide::Func state_after;   // (v,d,c,h)
    Halide::Func final_state_copy;  // (v,d,c,h), see carry.h

    // The outputs of the kernel.
    Halide::Func output;       // (v,h,t) of the output type: o
    Halide::Func final_state;  // (v,d,h)

    Halide::RDom over_keys;  // the sum over d in state_reads
    Halide::RDom product_keys;
    Halide::RDom earlier;    // (j,i) of the solve, j < i
    Halide::RDom output_terms, state_terms;  // (w,j)
};

Chunk make_chunk(const Row &row, const ChunkInputs &inputs);

}  // namespace halation
#endif
