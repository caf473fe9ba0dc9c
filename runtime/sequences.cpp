// What the values of offsets, slots, flags and snapshots say: where sequences lie, which rows of the states they own.
#include "pools.h"
#include "status.h"

#include <algorithm>

namespace halation::runtime {
namespace {

long long printable(int64_t value) {
    return static_cast<long long>(value);
}

halation_status check_offsets(const char *name, const IntegerView &offsets, int64_t end, char letter) {
    if (!offsets.given()) return HALATION_OK;
    if (offsets[0] != 0) return fail(HALATION_INVALID_ARGUMENT, "%s[0]: is %lld; must be 0", name, printable(offsets[0]));
    const int64_t last = offsets.count - 1;
    for (int64_t n = 0; n < last; n++)
        if (offsets[n + 1] < offsets[n])
            return fail(HALATION_INVALID_ARGUMENT, "%s[%lld]: is %lld, less than %lld before it; offsets may not fall", name,
                        printable(n + 1), printable(offsets[n + 1]), printable(offsets[n]));
    if (offsets[last] != end)
        return fail(HALATION_INVALID_ARGUMENT, "%s[%lld]: is %lld; the last must be %c = %lld", name, printable(last),
                    printable(offsets[last]), letter, printable(end));
    return HALATION_OK;
}

// A causal query is one of the cached tokens.
halation_status check_caches(const halation_plan &plan, const Arguments &arguments) {
    if (!arguments.cache_offsets.given() || !plan.problem.causal) return HALATION_OK;  // else check_batch has looked
    for (int64_t n = 0; n < arguments.sequences; n++) {
        const Sequence sequence = arguments.sequence(n);
        if (sequence.cached < sequence.length)
            return fail(HALATION_INVALID_ARGUMENT,
                        "cache_offsets: sequence %lld has %lld queries, but only %lld tokens are cached; a causal query is one "
                        "of them",
                        printable(n), printable(sequence.length), printable(sequence.cached));
    }
    return HALATION_OK;
}

// Rows of the given tensors among `which`: they all have the same number.
int64_t rows_of(const int *which, const Arguments &arguments) {
    for (int c = 0; c < carried_count; c++)
        if (which[c] >= 0 && arguments.tensors[which[c]].given) return arguments.tensors[which[c]].extent[0];
    return 0;
}

halation_status check_slot_range(const char *name, const IntegerView &slots, int64_t rows) {
    if (!slots.given()) return HALATION_OK;
    for (int64_t n = 0; n < slots.count; n++)
        if (slots[n] < -1 || slots[n] >= rows)
            return fail(HALATION_INVALID_ARGUMENT, "%s[%lld]: is %lld; may be -1 (skip) to %lld, the last of %lld slots", name,
                        printable(n), printable(slots[n]), printable(rows - 1), printable(rows));
    return HALATION_OK;
}

halation_status check_flags(const Arguments &arguments) {
    if (arguments.reads_state || !arguments.has_initial_state.given()) return HALATION_OK;
    for (int64_t n = 0; n < arguments.sequences; n++)
        if (arguments.has_initial_state[n])
            return fail(HALATION_INVALID_ARGUMENT, "has_initial_state[%lld]: is true, but no initial_state is given",
                        printable(n));
    return HALATION_OK;
}

// Checks the snapshots and puts those that are taken in order.
halation_status order_snapshots(halation_plan *plan, const Arguments &arguments) {
    std::vector<int64_t> &order = plan->snapshot_order;
    order.clear();
    const IntegerView &sequences = arguments.snapshot_sequences, &tokens = arguments.snapshot_tokens;
    for (int64_t i = 0; i < sequences.count; i++) {
        if (sequences[i] < 0 || sequences[i] >= arguments.sequences)
            return fail(HALATION_INVALID_ARGUMENT, "snapshot_sequences[%lld]: is %lld; may be 0 to %lld, the last sequence",
                        printable(i), printable(sequences[i]), printable(arguments.sequences - 1));
        const Sequence sequence = arguments.sequence(sequences[i]);
        if (tokens[i] < 0 || tokens[i] > sequence.length)
            return fail(HALATION_INVALID_ARGUMENT,
                        "snapshot_tokens[%lld]: is %lld; may be 0 to %lld, the tokens of sequence %lld", printable(i),
                        printable(tokens[i]), printable(sequence.length), printable(sequences[i]));
        if (!sequence.skipped && arguments.snapshot_slots[i] >= 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return sequences[a] != sequences[b] ? sequences[a] < sequences[b] : tokens[a] < tokens[b];
    });
    return HALATION_OK;
}

void measure_lengths(Arguments *arguments) {
    arguments->total_tokens = arguments->longest = arguments->longest_cache = 0;
    arguments->any_single = arguments->any_longer = false;
    for (int64_t n = 0; n < arguments->sequences; n++) {
        const Sequence sequence = arguments->sequence(n);
        if (sequence.skipped) continue;
        arguments->total_tokens += sequence.length;
        arguments->longest = std::max(arguments->longest, sequence.length);
        arguments->longest_cache = std::max(arguments->longest_cache, sequence.cached);
        arguments->any_single |= sequence.length == 1;
        arguments->any_longer |= sequence.length > 1;
    }
}

}  // namespace

halation_status check_sequences(halation_plan *plan, Arguments *arguments) {
    HALATION_TRY(check_offsets("offsets", arguments->offsets, arguments->tokens, 'T'));
    HALATION_TRY(check_offsets("cache_offsets", arguments->cache_offsets, arguments->cached, 'S'));
    HALATION_TRY(check_caches(*plan, *arguments));
    HALATION_TRY(check_slot_range("read_slots", arguments->read_slots, rows_of(plan->initial, *arguments)));
    HALATION_TRY(check_slot_range("write_slots", arguments->write_slots, rows_of(plan->final, *arguments)));
    HALATION_TRY(check_slot_range("snapshot_slots", arguments->snapshot_slots, rows_of(plan->snapshot, *arguments)));
    HALATION_TRY(check_flags(*arguments));
    HALATION_TRY(order_snapshots(plan, *arguments));
    HALATION_TRY(check_pools(plan, *arguments));
    measure_lengths(arguments);
    return HALATION_OK;
}

}  // namespace halation::runtime
