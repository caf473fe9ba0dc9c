// What the values of offsets, slots and flags say: where sequences lie, which rows of the states they own.
#include "arguments.h"
#include "status.h"

#include <algorithm>

namespace halation::runtime {
namespace {

long long printable(int64_t value) {
    return static_cast<long long>(value);
}

halation_status check_offsets(const Arguments &arguments) {
    const IntegerView &offsets = arguments.offsets;
    if (offsets[0] != 0) return fail(HALATION_INVALID_ARGUMENT, "offsets[0]: is %lld; must be 0", printable(offsets[0]));
    for (int64_t n = 0; n < arguments.sequences; n++)
        if (offsets[n + 1] < offsets[n])
            return fail(HALATION_INVALID_ARGUMENT, "offsets[%lld]: is %lld, less than %lld before it; offsets may not fall",
                        printable(n + 1), printable(offsets[n + 1]), printable(offsets[n]));
    if (offsets[arguments.sequences] != arguments.tokens)
        return fail(HALATION_INVALID_ARGUMENT, "offsets[%lld]: is %lld; the last must be T = %lld",
                    printable(arguments.sequences), printable(offsets[arguments.sequences]), printable(arguments.tokens));
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

// How an initial and a final state lie to each other in memory.
struct Meeting {
    bool shared = false;  // row w of the final state is row w + shift of the initial one
    int64_t shift = 0;
};

int64_t span_without_rows(const TensorSpec &spec, const TensorView &view) {
    int64_t span = 1;
    for (int axis = 1; axis < spec.rank; axis++) span += (view.extent[axis] - 1) * view.stride[axis];
    return span * spec.bytes;
}

// Either apart, or rows of one pool; anything between would be overwritten while it is read.
halation_status find_meeting(const TensorSpec &spec, const char *initial_name, const TensorView &initial, const TensorView &final,
                             Meeting *meeting) {
    if (!initial.data || !final.data) return HALATION_OK;  // not given, or empty
    const int64_t row_bytes = span_without_rows(spec, initial), final_row_bytes = span_without_rows(spec, final);
    const int64_t initial_bytes = row_bytes + (initial.extent[0] - 1) * initial.stride[0] * spec.bytes;
    const int64_t final_bytes = final_row_bytes + (final.extent[0] - 1) * final.stride[0] * spec.bytes;
    // Addresses are compared as integers: the two may belong to different allocations.
    const int64_t distance =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(final.data) - reinterpret_cast<uintptr_t>(initial.data));
    if (distance >= initial_bytes || -distance >= final_bytes) return HALATION_OK;

    bool alike = initial.extent[0] == 1 || final.extent[0] == 1 || initial.stride[0] == final.stride[0];
    for (int axis = 1; axis < spec.rank; axis++) alike &= initial.stride[axis] == final.stride[axis];
    const int64_t pitch = std::max(initial.stride[0], final.stride[0]) * spec.bytes;
    const int64_t within = pitch > 0 ? ((distance % pitch) + pitch) % pitch : distance;
    if (alike && within == 0) {
        meeting->shared = true;
        meeting->shift = pitch > 0 ? distance / pitch : 0;
        return HALATION_OK;
    }
    // Two pools interleaved row by row: the rows of one lie in the gaps of the other.
    if (alike && within >= row_bytes && pitch - within >= final_row_bytes) return HALATION_OK;
    return fail(HALATION_INVALID_ARGUMENT, "%s: overlaps %s; they must be apart, or the same rows with the same strides",
                spec.name, initial_name);
}

// No two sequences write one row; none reads a row that another writes in the same call.
halation_status check_rows(halation_plan *plan, const Arguments &arguments, const Meeting &meeting) {
    const bool reads_shared = meeting.shared && (arguments.read_slots.given() || arguments.write_slots.given() || meeting.shift);
    if (!arguments.write_slots.given() && !reads_shared) return HALATION_OK;
    const int64_t rows = rows_of(plan->final, arguments);
    std::vector<uint64_t> &marks = plan->slot_marks;
    marks.assign(static_cast<size_t>((rows + 63) / 64), 0);
    for (int64_t n = 0; n < arguments.sequences; n++) {
        const Sequence sequence = arguments.sequence(n);
        if (sequence.skipped) continue;
        uint64_t &word = marks[static_cast<size_t>(sequence.write_row / 64)];
        const uint64_t bit = uint64_t(1) << (sequence.write_row % 64);
        if (word & bit)
            return fail(HALATION_INVALID_ARGUMENT, "write_slots[%lld]: slot %lld is written by an earlier sequence too",
                        printable(n), printable(sequence.write_row));
        word |= bit;
    }
    if (!reads_shared) return HALATION_OK;
    for (int64_t n = 0; n < arguments.sequences; n++) {
        const Sequence sequence = arguments.sequence(n);
        const int64_t as_written = sequence.read_row - meeting.shift;
        if (sequence.skipped || sequence.from_zero || as_written == sequence.write_row) continue;
        if (as_written < 0 || as_written >= rows) continue;
        if (marks[static_cast<size_t>(as_written / 64)] >> (as_written % 64) & 1)
            return fail(HALATION_INVALID_ARGUMENT,
                        "read_slots: sequence %lld reads slot %lld, which another sequence of the same call writes", printable(n),
                        printable(sequence.read_row));
    }
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

void measure_lengths(Arguments *arguments) {
    arguments->total_tokens = arguments->longest = 0;
    arguments->any_single = arguments->any_longer = false;
    for (int64_t n = 0; n < arguments->sequences; n++) {
        const Sequence sequence = arguments->sequence(n);
        if (sequence.skipped) continue;
        arguments->total_tokens += sequence.length;
        arguments->longest = std::max(arguments->longest, sequence.length);
        arguments->any_single |= sequence.length == 1;
        arguments->any_longer |= sequence.length > 1;
    }
}

}  // namespace

halation_status check_sequences(halation_plan *plan, Arguments *arguments) {
    if (arguments->offsets.given()) HALATION_TRY(check_offsets(*arguments));
    HALATION_TRY(check_slot_range("read_slots", arguments->read_slots, rows_of(plan->initial, *arguments)));
    HALATION_TRY(check_slot_range("write_slots", arguments->write_slots, rows_of(plan->final, *arguments)));
    HALATION_TRY(check_flags(*arguments));
    for (int c = 0; c < carried_count; c++) {
        if (plan->initial[c] < 0) continue;
        Meeting meeting;
        HALATION_TRY(find_meeting(plan->tensors[plan->final[c]], plan->tensors[plan->initial[c]].name,
                                  arguments->tensors[plan->initial[c]], arguments->tensors[plan->final[c]], &meeting));
        if (c == carried_state || meeting.shared) HALATION_TRY(check_rows(plan, *arguments, meeting));
    }
    measure_lengths(arguments);
    return HALATION_OK;
}

}  // namespace halation::runtime
