#include "gpu_pieces.h"
#include "snapshots.h"
#include "types.h"

#include <algorithm>

namespace halation::runtime {
namespace {

// A row of a state.
struct Place {
    StateIn tensor;
    int64_t row;  // -1: a zero state, or one that is not wanted

    bool operator==(const Place &other) const { return tensor == other.tensor && row == other.row; }
};

// With a cache: each piece has what its queries see.
void add_queries(const halation_plan &plan, const TableEntry &sequence, int64_t most_tokens, std::vector<Piece> *pieces) {
    const int64_t tokens = sequence.tokens;
    for (int64_t first = 0; first == 0 || first < tokens; first += most_tokens) {
        Piece piece{0, StateIn::initial, StateIn::final, sequence};
        piece.entry.first_token += static_cast<int32_t>(first);
        piece.entry.tokens = static_cast<int32_t>(std::min(most_tokens, tokens - first));
        if (plan.problem.causal) piece.entry.cached -= static_cast<int32_t>(tokens - first - piece.entry.tokens);
        pieces->push_back(piece);
    }
}

// The way of a state along its sequence, from stop to stop. At a stop other pieces may lead aside, from the state there into the
// rows of snapshots that are taken before the next one. These put outputs of their tokens, too, which need not be those of whole
// chunks: the piece along the sequence puts the right ones over them a stage later, when nothing looks at the state at the stop
// any more either, which may then be overwritten in place.
class Way {
public:
    Way(const halation_plan &plan, const BoundKernel &kernel, const Arguments &arguments, const Snapshots &snapshots,
        const TableEntry &sequence, int64_t *kept_rows, std::vector<Piece> *pieces)
        : kernel_(kernel), rounds_(!same_type(plan.problem.state_type, float32)), writes_state_(arguments.writes_state),
          snapshots_(snapshots), sequence_(sequence), kept_rows_(kept_rows), pieces_(pieces) {}

    void go() {
        const int64_t length = sequence_.tokens;
        Place here{StateIn::initial, sequence_.read_row};
        if (length == 0 && writes_state_) add(here, final(), 0, 0);
        for (int64_t token = 0;;) {
            bool aside = false;
            for (; snapshots_.any() && snapshots_.stop(kernel_, length) == token; snapshots_.next()) {
                if (here == snapshot()) continue;  // the way itself leads there
                add(here, snapshot(), token, snapshots_.tokens() - token);
                aside = true;
            }
            if (token == length) return;
            if (aside) stage_++;
            const int64_t next = snapshots_.any() ? snapshots_.stop(kernel_, length) : length;
            const Place there = place_at(next);
            add(here, there, token, next - token);
            stage_++;
            here = there;
            token = next;
        }
    }

private:
    Place final() const { return {StateIn::final, sequence_.write_row}; }
    Place snapshot() const { return {StateIn::snapshot, snapshots_.slot()}; }

    // In a row of the caller's, if there is one that is as exact as need be.
    Place place_at(int64_t token) {
        const bool end = token == sequence_.tokens;
        if (end && writes_state_) return final();
        if (end || !rounds_) {
            if (snapshots_.any() && snapshots_.tokens() == token) return snapshot();
            if (end || writes_state_) return final();
        }
        if (kept_row_ < 0) kept_row_ = (*kept_rows_)++;
        return {StateIn::kept, kept_row_};
    }

    void add(Place from, Place to, int64_t first, int64_t tokens) {
        Piece piece{stage_, from.tensor, to.tensor, sequence_};
        piece.entry.first_token += static_cast<int32_t>(first);
        piece.entry.tokens = static_cast<int32_t>(tokens);
        piece.entry.read_row = static_cast<int32_t>(from.row);
        piece.entry.write_row = static_cast<int32_t>(to.row);
        pieces_->push_back(piece);
    }

    const BoundKernel &kernel_;
    const bool rounds_, writes_state_;  // what it stores with the caller; a final state at all
    Snapshots snapshots_;
    const TableEntry sequence_;
    int64_t *kept_rows_;
    std::vector<Piece> *pieces_;
    int stage_ = 0;
    int64_t kept_row_ = -1;
};

}  // namespace

void add_pieces(const halation_plan &plan, const BoundKernel &kernel, const Arguments &arguments, int64_t n,
                int64_t most_cached_tokens, int64_t *kept_rows, std::vector<Piece> *pieces) {
    const Sequence sequence = arguments.sequence(n);
    const bool carries = kernel.takes_state && !sequence.skipped;
    const bool hands_on = carries && arguments.writes_state;
    const Snapshots snapshots(plan, arguments, n);
    const bool takes_snapshots = carries && snapshots.any();
    if (sequence.length == 0 && !hands_on && !takes_snapshots) return;
    TableEntry entry;
    entry.batch = static_cast<int32_t>(sequence.batch);
    entry.first_token = static_cast<int32_t>(sequence.begin);
    entry.tokens = static_cast<int32_t>(sequence.length);
    entry.read_row = carries && !sequence.from_zero ? static_cast<int32_t>(sequence.read_row) : -1;
    entry.write_row = hands_on ? static_cast<int32_t>(sequence.write_row) : -1;
    entry.flags = sequence.skipped ? 1 : 0;
    entry.first_cached = static_cast<int32_t>(sequence.cache_begin);
    entry.cached = static_cast<int32_t>(sequence.cached);
    if (plan.has_cache)
        add_queries(plan, entry, most_cached_tokens, pieces);
    else if (takes_snapshots)
        Way(plan, kernel, arguments, snapshots, entry, kept_rows, pieces).go();
    else
        pieces->push_back({0, StateIn::initial, StateIn::final, entry});
}

}  // namespace halation::runtime
