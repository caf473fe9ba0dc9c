// What a call on a GPU makes of a sequence: one piece, or several where its state is wanted on the way.
#ifndef HALATION_RUNTIME_GPU_PIECES_H
#define HALATION_RUNTIME_GPU_PIECES_H

#include "arguments.h"

#include <vector>

namespace halation::runtime {

// One sequence of a launch, or a piece of one, as kernels see it: a column of `sequences`.
struct TableEntry {
    int32_t batch, first_token, tokens;
    int32_t read_row, write_row;  // -1: from zero, not wanted
    int32_t flags;                // 1: skipped
    int32_t first_cached, cached;
};
constexpr int table_words = 8;
static_assert(sizeof(TableEntry) == table_words * sizeof(int32_t), "kernels read it as 8 int32");

// The tensors in which a state lies between launches. `kept`: the plan's own memory.
enum class StateIn { initial, final, snapshot, kept };

struct Piece {
    int stage;         // runs after the pieces of earlier stages, beside others of its own
    StateIn from, to;  // where the rows of its entry are
    TableEntry entry;
};

// Appends the pieces of sequence n, which `kernel` computes. A row of kept memory that they take is added to `kept_rows`. Where
// there is a cache, each query stands alone, and a piece has `most_cached_tokens` at most.
void add_pieces(const halation_plan &plan, const BoundKernel &kernel, const Arguments &arguments, int64_t n,
                int64_t most_cached_tokens, int64_t *kept_rows, std::vector<Piece> *pieces);

}  // namespace halation::runtime
#endif
