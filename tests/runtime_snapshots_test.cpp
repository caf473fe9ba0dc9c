// Snapshots of the state at asked tokens, and pools stored in bfloat16.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

using namespace fakes;
using halation::Tensor;

namespace {

// A packed batch of gated with its pool, and the snapshots asked of it.
struct Pool {
    static constexpr int64_t slots = 24;
    std::vector<int32_t> offsets;
    Gated data;
    halation::Context context{2};
    std::vector<float> pool, snapshots;
    std::vector<int32_t> read, write;
    std::vector<int64_t> sequences, tokens, to;
    int64_t row;

    explicit Pool(std::vector<int32_t> given)
        : offsets(std::move(given)), data(1, offsets.back(), 2, 4, 8, 12), pool(slots * 384, 7.f), snapshots(slots * 384, 9.f),
          row(384) {
        context.add_kernels(*table());
        const int n = static_cast<int>(offsets.size()) - 1;
        for (int i = 0; i < n; i++) {
            read.push_back(i);
            write.push_back(i);
        }
        for (size_t i = 0; i < static_cast<size_t>(n * row); i++) pool[i] = 0.01f * static_cast<float>(i % 37);
    }
    std::vector<float> at(const std::vector<float> &where, int64_t slot) const { return fakes::row(where, slot, row); }
    void ask(int64_t sequence, int64_t token, int64_t slot) {
        sequences.push_back(sequence);
        tokens.push_back(token);
        to.push_back(slot);
    }
    Failure run(halation_form form, bool one_pool = false) {
        halation::NamedTensors tensors = data.tensors(false, false);
        tensors.push_back({"initial_state", Tensor(pool.data(), {slots, 4, 8, 12})});
        tensors.push_back({"final_state", Tensor(pool.data(), {slots, 4, 8, 12})});
        halation::Batch batch;
        const int64_t n = static_cast<int64_t>(read.size());
        batch.offsets = Tensor(offsets.data(), {n + 1});
        batch.read_slots = Tensor(read.data(), {n});
        batch.write_slots = Tensor(write.data(), {n});
        if (!to.empty()) {
            const int64_t m = static_cast<int64_t>(to.size());
            tensors.push_back({"snapshot_state", Tensor(one_pool ? pool.data() : snapshots.data(), {slots, 4, 8, 12})});
            batch.snapshot_sequences = Tensor(sequences.data(), {m});
            batch.snapshot_tokens = Tensor(tokens.data(), {m});
            batch.snapshot_slots = Tensor(to.data(), {m});
        }
        return failure_of([&] { halation::Plan(context, gated_problem(data, form)).run(tensors, batch); });
    }
    // The state after so many tokens of a sequence, by the same kernel.
    std::vector<float> prefix(int64_t sequence, int64_t count, halation_form form) const {
        if (count == 0) return at(pool, sequence);
        Gated one(1, count, 2, 4, 8, 12);
        const size_t first = static_cast<size_t>(offsets[static_cast<size_t>(sequence)]);
        const auto part = [&](const std::vector<float> &from, size_t width) {
            return std::vector<float>(from.begin() + static_cast<std::ptrdiff_t>(first * width),
                                      from.begin() + static_cast<std::ptrdiff_t>((first + static_cast<size_t>(count)) * width));
        };
        one.q = part(data.q, 16), one.k = part(data.k, 16), one.v = part(data.v, 48), one.g = part(data.g, 4);
        one.initial = at(pool, sequence);
        halation::Context alone(1);
        alone.add_kernels(*table());
        halation::Plan(alone, gated_problem(one, form)).run(one.tensors());
        return one.final;
    }
};

}  // namespace

TEST_CASE("snapshots are what the kernel would leave after those tokens alone, and change nothing else") {
    for (const halation_form form : {HALATION_FORM_CHUNKWISE, HALATION_FORM_RECURRENT}) {
        Pool plain({0, 0, 5, 5, 20, 21});
        REQUIRE(plain.run(form).message.empty());
        for (const bool one_pool : {false, true}) {
            Pool asked({0, 0, 5, 5, 20, 21});
            // Out of order; twice at one token; at chunks (4 tokens) and between; of a sequence without tokens.
            const std::vector<std::vector<int64_t>> snapshots = {{3, 14, 8},  {1, 3, 9},  {3, 4, 10}, {3, 4, 11}, {0, 0, 12},
                                                                 {3, 15, 13}, {3, 5, 14}, {3, 0, 15}, {4, 1, 16}, {1, 5, -1},
                                                                 {1, 0, 17},  {3, 6, 18}, {3, 7, 19}};
            std::vector<std::vector<float>> expected;
            for (const auto &s : snapshots) {
                asked.ask(s[0], s[1], s[2]);
                expected.push_back(asked.prefix(s[0], s[1], form));
            }
            REQUIRE(asked.run(form, one_pool).message.empty());
            CHECK(same_bits(asked.data.o, plain.data.o));
            const auto &where = one_pool ? asked.pool : asked.snapshots;
            for (size_t i = 0; i < snapshots.size(); i++) {
                INFO("sequence " << snapshots[i][0] << " after " << snapshots[i][1]);
                if (snapshots[i][2] >= 0) CHECK(same_bits(asked.at(where, snapshots[i][2]), expected[i]));
            }
            for (int64_t n = 0; n < 5; n++) CHECK(same_bits(asked.at(asked.pool, n), plain.at(plain.pool, n)));
            for (const int64_t untouched : {5, 6, 7, 20, 23})
                CHECK(same_bits(asked.at(where, untouched), std::vector<float>(384, one_pool ? 7.f : 9.f)));
        }
    }
}

TEST_CASE("a skipped sequence takes no snapshot") {
    Pool asked({0, 5, 12});
    asked.read = {-1, 1};
    asked.ask(0, 2, 8);
    asked.ask(1, 2, 9);
    REQUIRE(asked.run(HALATION_FORM_CHUNKWISE).message.empty());
    CHECK(same_bits(asked.at(asked.snapshots, 8), std::vector<float>(384, 9.f)));
    CHECK(!same_bits(asked.at(asked.snapshots, 9), std::vector<float>(384, 9.f)));
}

TEST_CASE("without tokens, snapshots are taken and shapes still checked") {
    Gated data(1, 0, 1, 1, 2, 2);
    std::vector<float> snapshot(4, 9.f), k(10, 0.f);
    halation::NamedTensors tensors = data.tensors(true, false);
    tensors.push_back({"snapshot_state", Tensor(snapshot.data(), {1, 1, 2, 2})});
    halation::Batch batch;
    std::vector<int32_t> zero = {0};
    batch.snapshot_sequences = batch.snapshot_tokens = batch.snapshot_slots = Tensor(zero.data(), {1});
    halation::Context context(1);
    context.add_kernels(*table());
    halation::Plan plan(context, gated_problem(data));
    plan.run(tensors, batch);
    CHECK(same_bits(snapshot, data.initial));
    tensors[1].second = Tensor(k.data(), {1, 5, 1, 2});
    CHECK(failure_of([&] { plan.run(tensors, batch); }).says("k: shape is [1, 5, 1, 2]"));
}

TEST_CASE("a draft is rolled back to the last accepted token") {
    // Eight draft tokens with a snapshot after each; three are accepted; decoding goes on from the third's slot.
    Pool draft({0, 8});
    for (int64_t t = 1; t <= 8; t++) draft.ask(0, t, 8 + t);
    draft.write = {1};  // the last token's state is of no use
    const auto accepted = draft.prefix(0, 3, HALATION_FORM_RECURRENT);
    const auto before = draft.at(draft.pool, 0);
    REQUIRE(draft.run(HALATION_FORM_RECURRENT, true).message.empty());
    CHECK(same_bits(draft.at(draft.pool, 11), accepted));
    CHECK(same_bits(draft.at(draft.pool, 0), before));
    Pool next({0, 1});
    next.pool = draft.pool;
    next.read = {11};
    REQUIRE(next.run(HALATION_FORM_RECURRENT).message.empty());
}

TEST_CASE("values of snapshots are checked") {
    Pool asked({0, 5, 12});
    std::string words;
    bool one_pool = false;
    asked.ask(1, 2, 9);
    SECTION("no such sequence") {
        asked.ask(2, 1, 8);
        words = "snapshot_sequences[1]: is 2; may be 0 to 1, the last sequence";
    }
    SECTION("more tokens than there are") {
        asked.ask(0, 6, 8);
        words = "snapshot_tokens[1]: is 6; may be 0 to 5, the tokens of sequence 0";
    }
    SECTION("a negative token") {
        asked.ask(0, -1, 8);
        words = "snapshot_tokens[1]: is -1";
    }
    SECTION("no such slot") {
        asked.ask(0, 1, 24);
        words = "snapshot_slots[1]: is 24; may be -1 (skip) to 23, the last of 24 slots";
    }
    SECTION("two in one slot") {
        asked.ask(0, 1, 9);
        words = "snapshot_slots[0]: slot 9 is written by another sequence or snapshot too";
    }
    SECTION("in the slot of a final state") {
        one_pool = true;
        asked.ask(0, 1, 1);
        words = "snapshot_slots[1]: slot 1 is written by another sequence or snapshot too";
    }
    SECTION("in a slot that is read") {
        one_pool = true;
        asked.read = {5, 1};
        asked.ask(0, 1, 5);
        words = "read_slots: sequence 0 reads slot 5, which the same call writes";
    }
    SECTION("vectors of different lengths") {
        asked.sequences.push_back(0);
        asked.tokens.push_back(0);
        asked.to.push_back(8);
        asked.to.push_back(10);
        halation::NamedTensors tensors = asked.data.tensors(false, false);
        tensors.push_back({"snapshot_state", Tensor(asked.snapshots.data(), {24, 4, 8, 12})});
        halation::Batch batch;
        batch.snapshot_sequences = Tensor(asked.sequences.data(), {2});
        batch.snapshot_tokens = Tensor(asked.tokens.data(), {2});
        batch.snapshot_slots = Tensor(asked.to.data(), {3});
        halation::Plan plan(asked.context, gated_problem(asked.data));
        CHECK(failure_of([&] { plan.run(tensors, batch); }).says("snapshot_sequences: shape is [2]; must be [3]"));
        batch.snapshot_sequences = Tensor();
        batch.snapshot_tokens = Tensor(asked.to.data(), {3});
        CHECK(failure_of([&] {
                  plan.run(tensors, batch);
              }).says("snapshots: snapshot_sequences, snapshot_tokens and snapshot_slots must be given together"));
        CHECK(failure_of([&] {
                  plan.run(tensors);
              }).says("snapshot_state: given without snapshot_slots, which say what goes where"));
        return;
    }
    const Failure failure = asked.run(HALATION_FORM_CHUNKWISE, one_pool);
    INFO(failure.message);
    CHECK(failure.status == HALATION_INVALID_ARGUMENT);
    CHECK(failure.says(words.c_str()));
    CHECK(std::isnan(asked.data.o[0]));
}

namespace {

std::vector<uint16_t> to_bfloat16(const std::vector<float> &values) {
    std::vector<uint16_t> result;
    for (const float value : values) {
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        result.push_back(static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16));
    }
    return result;
}

std::vector<float> to_float(const std::vector<uint16_t> &values) {
    std::vector<float> result;
    for (const uint16_t value : values) {
        const uint32_t bits = static_cast<uint32_t>(value) << 16;
        float wide;
        std::memcpy(&wide, &bits, 4);
        result.push_back(wide);
    }
    return result;
}

}  // namespace

TEST_CASE("a pool in bfloat16 is read exactly, computed on in float32 and rounded once") {
    for (const halation_form form : {HALATION_FORM_CHUNKWISE, HALATION_FORM_RECURRENT, HALATION_FORM_AUTO})
        for (const bool in_place : {false, true})
            for (const int64_t T : {1, 7}) {
                Gated data(2, T, 2, 4, 8, 12);
                halation::Context context(1);
                context.add_kernels(*table());
                std::vector<uint16_t> stored = to_bfloat16(data.initial), final(stored.size(), 0);
                data.initial = to_float(stored);
                halation::Problem problem = gated_problem(data, form);
                halation::Plan(context, problem).run(data.tensors());
                const auto o = data.o;
                problem.state_type = halation::bfloat16;
                halation::Plan plan(context, problem);
                auto tensors = data.tensors(false, false);
                void *to = in_place ? stored.data() : final.data();
                tensors.push_back({"initial_state", Tensor(stored.data(), halation::bfloat16, {2, 4, 8, 12})});
                tensors.push_back({"final_state", Tensor(to, halation::bfloat16, {2, 4, 8, 12})});
                plan.run(tensors);
                CHECK(same_bits(data.o, o));
                CHECK((in_place ? stored : final) == to_bfloat16(data.final));
                tensors.back().second = Tensor(data.final.data(), {2, 4, 8, 12});
                CHECK(failure_of([&] {
                          plan.run(tensors);
                      }).says("final_state: type is float32; must be bfloat16, the problem's state_type"));
            }
    Gated data(1, 1, 1, 1, 1, 1);
    halation::Problem problem = gated_problem(data);
    problem.state_type = halation::float16;
    halation::Context context(1);
    context.add_kernels(*table());
    CHECK(failure_of([&] { halation::Plan plan(context, problem); }).says("state_type: got float16; may be float32 or bfloat16"));
    problem.state_type = DLDataType{0, 0, 0};
    halation::Plan plan(context, problem);
}
