// Pools drawn at random: states that lie in one another in any way, against a map of every element.
#include "draw.h"
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

#include <map>

using namespace fakes;
using halation::Tensor;

namespace {

// Rows of 1 x 2 x 2 elements.
struct Rows {
    bool given = false;
    float *data = nullptr;
    int64_t count = 0, stride[4] = {};

    Tensor tensor() const { return {data, {count, 1, 2, 2}, {stride[0], stride[1], stride[2], stride[3]}}; }
    std::vector<float *> elements(int64_t row) const {
        std::vector<float *> all;
        for (int k = 0; k < 2; k++)
            for (int v = 0; v < 2; v++) all.push_back(data + row * stride[0] + k * stride[2] + v * stride[3]);
        return all;
    }
};

struct Case {
    std::vector<int32_t> offsets = {0};
    Rows initial, final, snapshot;
    std::vector<int64_t> read, write, sequences, tokens, slots;
    std::vector<uint8_t> flags;

    int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
    bool skipped(size_t n) const { return (initial.given && read[n] < 0) || (final.given && write[n] < 0); }

    // Whether an element is written for two, or read by one and written for another.
    bool conflicts() const {
        std::map<float *, size_t> owner;
        bool found = false;
        const auto write_to = [&](const std::vector<float *> &elements, size_t by) {
            for (float *element : elements) {
                const auto [at, fresh] = owner.emplace(element, by);
                found |= !fresh && at->second != by;
            }
        };
        for (size_t n = 0; n < static_cast<size_t>(count()); n++)
            if (final.given && !skipped(n)) write_to(final.elements(write[n]), n);
        for (size_t i = 0; i < slots.size(); i++)
            if (!skipped(static_cast<size_t>(sequences[i])) && slots[i] >= 0) write_to(snapshot.elements(slots[i]), 100 + i);
        for (size_t n = 0; n < static_cast<size_t>(count()); n++) {
            if (!initial.given || skipped(n) || (!flags.empty() && !flags[n])) continue;
            const auto elements = initial.elements(read[n]);
            const bool own = final.given && elements == final.elements(write[n]);
            for (float *element : elements) {
                const auto at = owner.find(element);
                found |= at != owner.end() && !(own && at->second == n);
            }
        }
        return found;
    }
};

Case draw_case(Draw &draw, std::vector<float> &memory) {
    Case drawn;
    const int64_t count = draw.number(1, 3);
    while (drawn.count() < count - 1) drawn.offsets.push_back(static_cast<int32_t>(draw.number(drawn.offsets.back(), 6)));
    drawn.offsets.push_back(6);
    const int64_t row = draw.once_in(4) ? 8 : 4;
    const bool rows_innermost = draw.once_in(10);
    const auto rows = [&](bool given) {
        Rows rows;
        rows.given = given;
        rows.count = draw.number(1, 6);
        rows.data = memory.data() + 1000 + draw.number(-3, 3) * (draw.once_in(10) ? 2 : row);
        const int64_t own = draw.once_in(8) ? 12 - row : row;
        const int64_t outermost[] = {own, 4, 2, 1}, innermost[] = {1, 1, 16, 8};
        std::copy_n(rows_innermost ? innermost : outermost, 4, rows.stride);
        return rows;
    };
    drawn.initial = rows(!draw.once_in(5));
    drawn.final = rows(!draw.once_in(5));
    drawn.snapshot = rows(draw.once_in(2));
    for (int64_t n = 0; n < count; n++) {
        drawn.read.push_back(draw.once_in(10) ? -1 : draw.number(0, drawn.initial.count - 1));
        drawn.write.push_back(draw.once_in(10) ? -1 : draw.number(0, drawn.final.count - 1));
    }
    if (drawn.initial.given && draw.once_in(3))
        for (int64_t n = 0; n < count; n++)
            drawn.flags.push_back(static_cast<uint8_t>(draw.number(0, 1) * 2));  // any but 0 is true
    for (int64_t i = draw.number(1, 2); drawn.snapshot.given && i > 0; i--) {
        const int64_t n = draw.number(0, count - 1);
        drawn.sequences.push_back(n);
        drawn.tokens.push_back(draw.number(0, drawn.offsets[static_cast<size_t>(n + 1)] - drawn.offsets[static_cast<size_t>(n)]));
        drawn.slots.push_back(draw.once_in(8) ? -1 : draw.number(0, drawn.snapshot.count - 1));
    }
    return drawn;
}

template<typename T> Tensor vector_of(std::vector<T> &values) {
    return {values.data(), {static_cast<int64_t>(values.size())}};
}

}  // namespace

TEST_CASE("no row that is written twice, or read while it is written, gets past the checks") {
    Draw draw(5);
    Gated data(1, 6, 1, 1, 2, 2);
    halation::Context context(1);
    context.add_kernels(*table());
    halation::Plan plan(context, gated_problem(data, HALATION_FORM_RECURRENT));
    std::vector<float> memory(4000, 0.5f);
    int accepted = 0, missed = 0, refused = 0, sound_refused = 0;
    for (int i = 0; i < 30000; i++) {
        Case drawn = draw_case(draw, memory);
        halation::NamedTensors tensors = data.tensors(false, false);
        halation::Batch batch;
        batch.offsets = vector_of(drawn.offsets);
        if (drawn.initial.given) {
            tensors.push_back({"initial_state", drawn.initial.tensor()});
            batch.read_slots = vector_of(drawn.read);
        }
        if (drawn.final.given) {
            tensors.push_back({"final_state", drawn.final.tensor()});
            batch.write_slots = vector_of(drawn.write);
        }
        if (drawn.snapshot.given) {
            tensors.push_back({"snapshot_state", drawn.snapshot.tensor()});
            batch.snapshot_sequences = vector_of(drawn.sequences);
            batch.snapshot_tokens = vector_of(drawn.tokens);
            batch.snapshot_slots = vector_of(drawn.slots);
        }
        if (!drawn.flags.empty()) batch.has_initial_state = vector_of(drawn.flags);
        const bool ran = failure_of([&] { plan.run(tensors, batch); }).message.empty();
        const bool conflicts = drawn.conflicts();
        (ran ? accepted : refused)++;
        missed += ran && conflicts;
        sound_refused += !ran && !conflicts;
    }
    CHECK(missed == 0);
    CHECK(accepted > 10000);
    CHECK(refused > 5000);
    CHECK(sound_refused < refused / 2);  // views that overlap, though the rows that this call uses do not
}

TEST_CASE("pools interleaved row by row are apart") {
    Gated data(2, 3, 1, 1, 4, 4);
    std::vector<float> both(64), expected, states;
    std::copy_n(data.initial.begin(), 16, both.begin());
    std::copy_n(data.initial.begin() + 16, 16, both.begin() + 32);
    data.reference_all(true, &expected, &states);
    auto tensors = data.tensors(false, false);
    tensors.push_back({"initial_state", Tensor(both.data(), {2, 1, 4, 4}, {32, 16, 4, 1})});
    tensors.push_back({"final_state", Tensor(both.data() + 16, {2, 1, 4, 4}, {32, 16, 4, 1})});
    halation::Plan(context(), gated_problem(data)).run(tensors);
    CHECK(close(data.o, expected));
    CHECK(close(row(both, 1, 16), row(states, 0, 16)));
    CHECK(close(row(both, 3, 16), row(states, 1, 16)));
    CHECK(same_bits(row(both, 2, 16), row(data.initial, 1, 16)));
}
