// The recurrences of scan.h, C tokens at a time, where one machine has many threads: the elements of a channel's state lie in
// groups of a few, each of which goes through the tokens of a chunk by itself. What a token reads of the groups is summed
// afterwards, for all tokens of the chunk at once. Recurrent: chunks of one token.
#ifndef HALATION_GENERATORS_SCAN_CHUNK_H
#define HALATION_GENERATORS_SCAN_CHUNK_H

#include "scan.h"

namespace halation {

struct ScanChunkInputs {
    std::vector<RowInput> inputs;
    // By name, coordinates innermost first; of those that differ by sequence h is the last (batch.h).
    std::map<std::string, Halide::Func> tensors;
    std::map<std::string, Halide::Type> types;  // of their elements, of 16 bits kept as bits (math.h)
    Halide::Func initial_state;                 // (v,n,h), (v,h) where a channel has one element
    std::map<std::string, Halide::Expr> scalars;
    Halide::Expr channels, elements;  // V, N; elements undefined: one
    Halide::Expr sequences;           // how many there are
    // Functions of the Var h: tokens, whether it starts from initial_state, whether its final state is wanted, and where that
    // lies in the output.
    Halide::Expr tokens, has_initial_state, wants_final_state, final_row;
    int chunk, rows;  // C, and elements in a group
};

// Var names: v channel, r element in its group, g group, i token within the chunk, c chunk, h sequence, t token.
struct ScanChunk {
    Halide::Var v{"v"}, r{"r"}, g{"g"}, i{"i"}, c{"c"}, h{"h"}, t{"t"};
    // What a schedule calls the loops of the output over chunks, over a block's sequences around it and over tiles of channels.
    Halide::Var chunk_loop{"chunk_loop"}, sequence_loop{"sequence_loop"}, tile_loop{"tile_loop"};
    int chunk, rows;
    Halide::Expr groups, channels, sequences;  // how many there are

    // From a token's inputs. Where a channel has one element, channel_inputs are its decay and what is written, and the other two
    // are undefined.
    Halide::Func channel_inputs, element_inputs;  // tuples: (v,i,c,h), (r,i,g,c,h)
    Halide::Func rates;                           // (v,r,g) A of ssm
    std::vector<Halide::Func> channel_constants;  // (v) D of ssm
    Halide::Func state_before;                    // (v,r,g,c,h), see carry.h
    Halide::Func decays;                          // (v,r,i,g,c,h) of elements; undefined where a channel has one
    // (v,r,i,g,c,h) an element after token i, and the sum of what this token reads of its group up to it.
    Halide::Func scanned;
    Halide::RDom within;              // r and i of it, token after token
    Halide::Func group_reads, reads;  // (v,i,g,c,h), (v,i,c,h) their sum
    Halide::RVar over_groups;
    Halide::Func outputs;           // (v,i,c,h)
    Halide::Func state_after;       // (v,r,g,c,h)
    Halide::Func final_state_copy;  // (v,r,g,c,h), see carry.h
    Halide::Func output;            // (v,h,t)

    // By the schedule: those that get shared memory to themselves (shared_apart.h), and those that a thread has in registers
    // (thread_registers.h).
    std::vector<Halide::Func> apart, kept;
};

ScanChunk make_scan_chunk(const ScanRow &row, const ScanChunkInputs &inputs);

}  // namespace halation
#endif
