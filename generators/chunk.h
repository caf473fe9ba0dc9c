// The chunk algorithm: every recurrence of row.h, C tokens at a time. A form is a chunk length with its schedule:
// C = 1 is the recurrent form, a few tokens the chunkwise form; the parallel form is one chunk over all tokens, worked
// in blocks of C.
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
// that are written into it writers (k; then b for low rank). Decays are products over just the tokens in between,
// never quotients of, or differences between, running products. These files say what is computed, never in what
// order: the Funcs below are what schedules/ work on.
#ifndef HALATION_GENERATORS_CHUNK_H
#define HALATION_GENERATORS_CHUNK_H

#include "row.h"

namespace halation {

// The tensors of one kernel call as the generator declares them, and its sizes.
struct ChunkInputs {
    std::map<std::string, Halide::Func> tensors;  // by input name, dims innermost first, without B
    std::map<std::string, Halide::Type> types;    // of those that are kept as bits (math.h)
    Halide::Func initial_state;                   // (V, K, G) float
    Halide::Func initial_normalizer;              // (K, G) float, for normalized rows
    std::string feature_map;                      // for rows that have one: elu+1, relu, softmax, identity
    Halide::Expr one_beta_per_head;  // whether the inputs that may be per value channel are not; undefined: there are none
    Halide::Expr scale;
    Halide::Type output_type;
    Halide::Expr tokens, key_dim, value_dim;  // tokens may be a function of the Var h
    Halide::Expr most_tokens;                 // of any h; undefined: tokens
    // Where there are many sequences, functions of the Var h: whether it starts from initial_state, whether its final state is
    // wanted, and where that lies in the outputs, as the last coordinates. Undefined: always, always, {h}.
    Halide::Expr has_initial_state, wants_final_state;
    std::vector<Halide::Expr> final_place;
    // The final state is copied out by whole groups of key channels, of which those beyond K are masked: bounds that can be
    // proved.
    bool copies_padding = false;
    // Of one token on a GPU (carry_registers.h). Its output comes before the new state, which is then summed where it is kept:
    // between the two no vectors are held. The normalizer is copied out where it is computed.
    bool token_in_registers = false;
    int normalizer_chunks = 1;  // the normalizer is computed for a multiple of so many chunks
    // Of the solve inside a chunk. Float(32): in pairs of floats, where it counts.
    Halide::Type solve_type = Halide::Float(64);
    int chunk;             // C
    bool one_pass = true;  // let additive rows of one token read the state as they replace it
    int key_unroll;        // the padded key dimension is a multiple of this
    int key_lanes;         // and what is summed over the key channels of two tokens runs to a multiple of this
};

// One kind of decay. D_i is the decay at token i, the rest are products over just the tokens in between.
struct DecayFuncs {
    Halide::Func log_step, step;          // (i,c,h) log D_i, D_i
    Halide::Func through, before, after;  // (i,c,h) P_i, E_i, R_i
    Halide::Func between;                 // (j,i,c,h) L(j,i); not per key channel, see Chunk::carried
    Halide::Func whole_log, whole;        // (c,h) of all tokens of a chunk: exp of the sum of their logarithms, so that
                                          // only one rounding a chunk adds up over many
    Halide::Func whole_complement;        // (c,h) 1 - whole without cancellation, where the decay itself is given
    // Parallel only: products over whole chunks before and after chunk c.
    Halide::Func before_log, chunks_before, after_log, chunks_after;  // (c,h)
};

// Products of one reader with the writers of all earlier chunks and of its own.
struct ProductsAcross {
    Halide::Func between_log, chunks_between;  // (e,c,h) decays of the chunks between e and c; (d,e,c,h) per key channel
    Halide::Func value_between_log, value_chunks_between;  // (v,e,c,h)
    Halide::Func weighted_writes;                          // (j,d,w,e,c,h) writer j of chunk e as the start of chunk c sees it
    Halide::Func sums, products;                           // (j,i,w,e,c,h)
    Halide::RDom keys;
};

// Var names: d key channel, v value channel, i token within the chunk, j an earlier one, c chunk, e an earlier chunk,
// h value head, r reader, w writer, t token. Funcs left undefined do not occur in the row or the form.
struct Chunk {
    Halide::Var d{"d"}, v{"v"}, i{"i"}, j{"j"}, c{"c"}, e{"e"}, h{"h"}, r{"r"}, w{"w"}, t{"t"};
    // What a schedule calls the loop over chunks of `output`, for carry.h, and that over tiles of value channels around it, for
    // rows_ahead.h.
    Halide::Var chunk_loop{"chunk_loop"}, tile_loop{"tile_loop"};
    int chunk, readers, writers;
    bool key_decay;                    // decays differ by key channel
    bool value_decay;                  // and by value channel
    std::vector<Halide::Func> staged;  // by a GPU schedule, see chunk_ahead.h
    std::vector<Halide::Func> apart;   // likewise, see shared_apart.h
    bool one_pass = false;             // one token, additive: state_reads goes over the state as it is replaced
    Halide::Expr padded_key_dim;       // the sums over d run to here; channels beyond key_dim are zero
    Halide::Expr chunks;               // ceil(T / C)
    Halide::Expr one_beta_per_head;    // see ChunkInputs

    // ---- inside a chunk (chunk_builder.cpp)
    // From the token's inputs, padded with zeros beyond T and K.
    Halide::Func reads, writes, values, beta;      // (d,r,i,c,h), (d,w,j,c,h), (v,i,c,h), (v,i,c,h)
    std::vector<Halide::Func> features;            // (i,c,h) sums and maxima over channels that a feature map needs
    DecayFuncs decays;                             // per head, or per key channel: its Funcs have the dimension d first
    DecayFuncs value_decays;                       // per value channel: v first
    Halide::Func bonus;                            // (d,i,c,h) with a bonus: the weight of the token's own write for its query
    Halide::Func carried;                          // (d,w,j,i,c,h) writer j as token i sees it: y_jd L(j,i)_d
    Halide::Func reads_from_start, writes_to_end;  // x P (or x E) and y R per key channel
    Halide::Func query_sums, solve_sums;           // (w,j,i,c,h) of readers 0 and 1
    Halide::Func products;                         // (w,j,i,c,h) masked; with a solve a tuple of both, see ChunkBuilder::product
    Halide::RDom query_keys, solve_keys;

    // Normalized rows: what chunk c writes to z, z before chunk c = 0 .. chunks (of one token: after it), and
    // q^T z of every token.
    Halide::Func normalizer_writes, normalizer, normalizer_sums, denominators;  // (d,c,h), (d,c,h), (i,c,h), (i,c,h)
    Halide::RDom normalizer_turns, normalizer_keys;
    int normalizer_chunks = 1;  // of which normalizer_turns are a multiple

    // ---- from chunk to chunk
    Halide::Func state_before;      // (v,d,c,h), see carry.h; parallel: the initial state (v,d,h)
    Halide::Func state_taken;       // (v,d,c,h) if one_pass: an element of it, before it is replaced
    Halide::Func state_reads;       // (v,r,i,c,h) = reader^T S
    Halide::Func solved;            // (v,i,c,h) u of delta, w of low rank; see ChunkBuilder::solve_type
    Halide::Func written;           // (v,w,j,c,h) the values written: v, u or w
    Halide::Func written_to_end;    // the same, decayed to the end of the chunk where decays are per head or value channel
    Halide::Func output_sums;       // (v,i,c,h)
    Halide::Func output_values;     // (v,i,c,h) the same, normalized; not in the parallel form
    Halide::Func state_sums;        // (v,d,c,h); parallel (v,d,h)
    Halide::Func state_after;       // (v,d,c,h)
    Halide::Func final_state_copy;  // (v,d,c,h), see carry.h; parallel (v,d,h)
    Halide::RDom over_keys;         // the sum over d in state_reads
    Halide::RDom earlier;           // (j,i), parallel (j,e,i,c): the solve, j before i
    Halide::RDom output_terms, state_terms;  // (w,j), parallel (w,j,e)

    // ---- parallel only (parallel.cpp): decays and products across chunks
    ProductsAcross query, second;  // of reader 0 and 1

    // ---- the outputs of the kernel
    Halide::Func output;                 // (v,h,t) of the output type: o
    Halide::Func final_state;            // (v,d,h)
    Halide::Func final_normalizer;       // (d,h), for normalized rows
    Halide::Func final_normalizer_copy;  // (d,h), see carry.h; not in the parallel form, nor if token_in_registers
};

// Recurrent and chunkwise: the state is carried from chunk to chunk.
Chunk make_chunk(const Row &row, const ChunkInputs &inputs);

// Parallel: what earlier chunks wrote reaches a token through masked products, no state in between.
Chunk make_parallel(const Row &row, const ChunkInputs &inputs);

}  // namespace halation
#endif
