// Rows of the next head are asked for while this one is worked on. The rows of one head lie a page apart, where no processor
// fetches ahead by itself, and are copied in a loop that would wait for most of them.
#ifndef HALATION_SCHEDULES_ROWS_AHEAD_H
#define HALATION_SCHEDULES_ROWS_AHEAD_H

#include <Halide.h>

#include <string>
#include <vector>

namespace halation {

struct RowsAhead {
    struct Tensor {
        // dims innermost first, in the letters of row.h: channels, heads, tokens; or VKG, a state. Others are left alone.
        std::string name, dims;
        int bytes;  // of an element
    };
    std::vector<Tensor> tensors;
    // Vars of the loops over heads, tiles of value channels and, inside that, chunks. Where there is no such loop nothing is
    // done.
    std::string head_loop, tile_loop, chunk_loop;
    int chunk;  // tokens
};

// Puts calls of halation_ask_for_rows() (runtime/kernel_glue.cpp) into the chunk loop: at a chunk, for its rows of the next head
// and for a part of that head's state; every tile asks for its share of the lines. What is asked for may lie behind the tensor,
// which a prefetch may.
Halide::Internal::IRMutator *make_rows_ahead_pass(const RowsAhead &rows);

}  // namespace halation
#endif
