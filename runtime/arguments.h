// The arguments of one call, checked against a plan: views of tensors, sequences, slots.
#ifndef HALATION_RUNTIME_ARGUMENTS_H
#define HALATION_RUNTIME_ARGUMENTS_H

#include "layout.h"
#include "plan.h"

namespace halation::runtime {

// A vector of integers: offsets, slots, flags.
struct IntegerView {
    const char *data = nullptr;
    int64_t count = 0, stride = 0;
    int bytes = 0;  // of an element

    bool given() const { return data != nullptr; }
    int64_t operator[](int64_t index) const {
        const char *at = data + index * stride * bytes;
        if (bytes == 4) return *reinterpret_cast<const int32_t *>(at);
        if (bytes == 8) return *reinterpret_cast<const int64_t *>(at);
        return *reinterpret_cast<const uint8_t *>(at);
    }
};

// One sequence of the batch.
struct Sequence {
    int64_t batch;                // index along B
    int64_t begin;                // first token along T
    int64_t length;               // tokens
    int64_t cache_begin, cached;  // first token along S, and tokens
    int64_t read_row, write_row;  // of the states
    bool skipped;                 // outputs are zero, states untouched
    bool from_zero;               // starts from a zero state
};

struct Arguments {
    int64_t sequences, tokens, cached;
    TensorView tensors[most_tensors];
    IntegerView offsets, cache_offsets, read_slots, write_slots, has_initial_state;
    IntegerView snapshot_sequences, snapshot_tokens, snapshot_slots;
    bool reads_state, writes_state, takes_snapshots;  // any of the initial / final / snapshot tensors given

    // Found by check_sequences, which also puts the snapshots in order: plan->snapshot_order.
    int64_t total_tokens, longest, longest_cache;
    bool any_single, any_longer;  // some sequence has one token, more than one

    Sequence sequence(int64_t index) const {
        Sequence found;
        found.batch = offsets.given() ? 0 : index;
        found.begin = offsets.given() ? offsets[index] : 0;
        found.length = offsets.given() ? offsets[index + 1] - found.begin : tokens;
        found.cache_begin = cache_offsets.given() ? cache_offsets[index] : 0;
        found.cached = cache_offsets.given() ? cache_offsets[index + 1] - found.cache_begin : cached;
        found.read_row = read_slots.given() ? read_slots[index] : index;
        found.write_row = write_slots.given() ? write_slots[index] : index;
        found.skipped = found.read_row < 0 || found.write_row < 0;
        found.from_zero = !reads_state || (has_initial_state.given() && !has_initial_state[index]);
        return found;
    }
};

// Names, shapes, types, strides and overlaps. With `shapes_only`, data may be NULL and is not looked at.
halation_status check_arguments(const halation_plan &plan, const halation_arguments *given, bool shapes_only,
                                Arguments *arguments);

// The values of offsets, slots, flags and snapshots; what they say of lengths goes into `arguments`.
halation_status check_sequences(halation_plan *plan, Arguments *arguments);

}  // namespace halation::runtime
#endif
