// Rows of the next segment are asked for while this one is worked on. The rows of one head lie a page apart, where no processor
// fetches ahead by itself, and are copied in a loop that would wait for most of them.
#ifndef HALATION_SCHEDULES_ROWS_AHEAD_H
#define HALATION_SCHEDULES_ROWS_AHEAD_H

#include <Halide.h>

#include <string>
#include <vector>

namespace halation {

struct RowsAhead {
    struct Tensor {
        std::string name, dims;  // dims innermost first, in the letters of row.h; those without channels or tokens are left alone
        int bytes;               // of an element
    };
    std::vector<Tensor> tensors;
    // Vars of the loops over heads, tiles of value channels and, inside that, chunks. Where there is no such loop nothing is
    // done.
    std::string head_loop, tile_loop, chunk_loop;
    int chunk;  // tokens
};

// Puts prefetches into the chunk loop: at a chunk, of the rows one call's tokens later; every tile its share of a row's lines.
// What is asked for may lie behind the tensor, which a prefetch may.
Halide::Internal::IRMutator *make_rows_ahead_pass(const RowsAhead &rows);

}  // namespace halation
#endif
