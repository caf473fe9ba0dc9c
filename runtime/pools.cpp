#include "pools.h"
#include "status.h"

#include <algorithm>

namespace halation::runtime {
namespace {

// The tensors that hold rows of one state.
enum Role { role_initial, role_final, role_snapshot, role_count };
const char *const slots_of_role[role_count] = {"read_slots", "write_slots", "snapshot_slots"};

// Row `slot` of a tensor is row `first + slot` of its pool.
struct Place {
    bool given = false;
    int pool = 0;
    int64_t first = 0, rows = 0;
};

enum class Meeting { apart, one_pool, overlap };

// Whether the rows of `b` are rows of `a`, and then which row of `a` the first of them is.
Meeting meeting_of(const TensorSpec &spec, const TensorView &a, const TensorView &b, int64_t *first) {
    if (apart({a, spec.rank, spec.bytes}, {b, spec.rank, spec.bytes})) return Meeting::apart;
    bool alike = true;
    for (int axis = 1; axis < spec.rank; axis++) alike &= a.stride[axis] == b.stride[axis];
    if (a.extent[0] > 1 && b.extent[0] > 1) alike &= a.stride[0] == b.stride[0];
    const int64_t pitch = (a.extent[0] > 1 ? a.stride[0] : b.stride[0]) * spec.bytes;
    const int64_t distance = static_cast<int64_t>(reinterpret_cast<uintptr_t>(b.data) - reinterpret_cast<uintptr_t>(a.data));
    if (!alike || (pitch == 0 ? distance : distance % pitch) != 0) return Meeting::overlap;
    *first = pitch == 0 ? 0 : distance / pitch;
    // Rows of one pool, if there is one of which both are parts: otherwise a row of one may lie across several of the other.
    TensorView both = a.extent[0] > 1 ? a : b;
    both.extent[0] = std::max(a.extent[0], *first + b.extent[0]) - std::min<int64_t>(0, *first);
    int64_t span;
    return first_axis_that_meets(both, spec.rank, &span) < 0 ? Meeting::one_pool : Meeting::overlap;
}

class Rows {
public:
    Rows(halation_plan *plan, const Arguments &arguments, int carried) : plan_(plan), arguments_(arguments) {
        const int tensors[role_count] = {plan->initial[carried], plan->final[carried], plan->snapshot[carried]};
        std::copy_n(tensors, static_cast<int>(role_count), tensors_);
    }

    halation_status find_pools() {
        for (int role = 0; role < role_count; role++) {
            const TensorView &view = arguments_.tensors[tensors_[role]];
            Place &place = places_[role];
            place.given = view.given && view.data;
            place.pool = role;
            place.rows = view.given ? view.extent[0] : 0;
            for (int other = 0; other < role && place.given; other++) {
                if (!places_[other].given) continue;
                const TensorSpec &spec = plan_->tensors[tensors_[role]], &its = plan_->tensors[tensors_[other]];
                int64_t first = 0;
                const Meeting meeting = meeting_of(spec, arguments_.tensors[tensors_[other]], view, &first);
                if (meeting == Meeting::overlap)
                    return fail(HALATION_INVALID_ARGUMENT,
                                "%s: overlaps %s; they must be apart, or the same rows with the same strides", spec.name,
                                its.name);
                if (meeting == Meeting::one_pool) join(role, other, places_[other].first + first);
            }
        }
        return HALATION_OK;
    }

    halation_status check() {
        const bool reads_a_pool = places_[role_initial].given && in_pool_of_initial(role_final);
        const bool other_rows = arguments_.read_slots.given() || places_[role_final].first != places_[role_initial].first;
        if (!arguments_.write_slots.given() && !arguments_.snapshot_slots.given() && !(reads_a_pool && other_rows))
            return HALATION_OK;  // row n for sequence n
        number_rows();
        HALATION_TRY(mark_final());
        HALATION_TRY(mark_snapshots());
        return check_reads();
    }

private:
    // The first row of `role` is row `first` of the pool that `other` is in. Was it in another, that one becomes part of it.
    void join(int role, int other, int64_t first) {
        const int joined = places_[role].pool, pool = places_[other].pool;
        const int64_t shift = first - places_[role].first;
        for (Place &place : places_)
            if (place.given && place.pool == joined && joined != pool) place.pool = pool, place.first += shift;
    }
    bool in_pool_of_initial(int role) const { return places_[role].given && places_[role].pool == places_[role_initial].pool; }

    // One number for every row of every pool.
    void number_rows() {
        int64_t next = 0;
        for (int pool = 0; pool < role_count; pool++) {
            int64_t low = 0, high = 0;
            for (const Place &place : places_) {
                if (!place.given || place.pool != pool) continue;
                low = std::min(low, place.first);
                high = std::max(high, place.first + place.rows);
            }
            base_[pool] = next - low;
            next += high - low;
        }
        plan_->slot_marks.assign(static_cast<size_t>((next + 63) / 64), 0);
    }
    int64_t number(int role, int64_t slot) const { return base_[places_[role].pool] + places_[role].first + slot; }
    bool marked(int64_t number) const { return plan_->slot_marks[static_cast<size_t>(number / 64)] >> (number % 64) & 1; }

    halation_status mark(int role, int64_t index, int64_t slot) {
        const int64_t row = number(role, slot);
        if (marked(row))
            return fail(HALATION_INVALID_ARGUMENT, "%s[%lld]: slot %lld is written by another sequence or snapshot too",
                        slots_of_role[role], static_cast<long long>(index), static_cast<long long>(slot));
        plan_->slot_marks[static_cast<size_t>(row / 64)] |= uint64_t(1) << (row % 64);
        return HALATION_OK;
    }

    halation_status mark_final() {
        if (!places_[role_final].given) return HALATION_OK;
        for (int64_t n = 0; n < arguments_.sequences; n++) {
            const Sequence sequence = arguments_.sequence(n);
            if (!sequence.skipped) HALATION_TRY(mark(role_final, n, sequence.write_row));
        }
        return HALATION_OK;
    }

    halation_status mark_snapshots() {
        if (!places_[role_snapshot].given) return HALATION_OK;
        for (const int64_t i : plan_->snapshot_order) HALATION_TRY(mark(role_snapshot, i, arguments_.snapshot_slots[i]));
        return HALATION_OK;
    }

    halation_status check_reads() const {
        if (!places_[role_initial].given || !(in_pool_of_initial(role_final) || in_pool_of_initial(role_snapshot)))
            return HALATION_OK;
        for (int64_t n = 0; n < arguments_.sequences; n++) {
            const Sequence sequence = arguments_.sequence(n);
            if (sequence.skipped || sequence.from_zero) continue;
            const int64_t row = number(role_initial, sequence.read_row);
            const bool own = places_[role_final].given && row == number(role_final, sequence.write_row);
            if (!own && marked(row))
                return fail(HALATION_INVALID_ARGUMENT,
                            "read_slots: sequence %lld reads slot %lld, which the same call writes for another sequence or as a "
                            "snapshot",
                            static_cast<long long>(n), static_cast<long long>(sequence.read_row));
        }
        return HALATION_OK;
    }

    halation_plan *plan_;
    const Arguments &arguments_;
    int tensors_[role_count];
    Place places_[role_count];
    int64_t base_[role_count];
};

}  // namespace

halation_status check_pools(halation_plan *plan, const Arguments &arguments) {
    for (int c = 0; c < carried_count; c++) {
        if (plan->initial[c] < 0) continue;
        Rows rows(plan, arguments, c);
        HALATION_TRY(rows.find_pools());
        HALATION_TRY(rows.check());
    }
    return HALATION_OK;
}

}  // namespace halation::runtime
