// Snapshots on a device: into how many launches a call falls that takes some, and in which memory states lie between them.
#include "device_fakes.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace device_fakes;
using fakes::close;
using fakes::failure_of;
using fakes::Gated;
using fakes::same_bits;
using halation::Tensor;

namespace {

constexpr int64_t slots = 24, row = 2 * 4 * 4;

// A packed batch of gated, whose chunkwise kernel has chunks of 16 tokens, with a pool of states on the device.
class Batch {
public:
    Batch(const halation::Context &context, std::vector<int32_t> offsets)
        : context_(context), offsets_(std::move(offsets)), data(1, offsets_.back(), 1, 2, 4, 4), there_(context, data),
          pool_(slots * row, 7.f), pool_memory_(context, pool_.size() * 4), snapshot_memory_(context, pool_.size() * 4) {
        for (int32_t n = 0; n + 1 < static_cast<int32_t>(offsets_.size()); n++) {
            rows.push_back(n);
            for (size_t i = 0; i < row; i++) pool_[static_cast<size_t>(n * row) + i] = 0.01f * static_cast<float>(n * 5 + i % 7);
        }
    }

    void ask(int64_t sequence, int64_t token, int64_t slot) {
        sequences.push_back(sequence);
        tokens.push_back(token);
        to.push_back(slot);
    }

    // Of the plain loop.
    std::vector<float> state_after(int64_t sequence, int64_t count) const {
        std::vector<float> state = fakes::row(pool_, sequence, row), o(data.o.size());
        const int32_t first = offsets_[static_cast<size_t>(sequence)];
        data.reference(0, first, first + count, &state, &o);
        return state;
    }

    void run(halation_form form, bool one_pool, bool final = true, bool initial = true) {
        const std::vector<float> nines(pool_.size(), 9.f);
        pool_memory_.copy_from(pool_.data(), pool_.size() * 4);
        snapshot_memory_.copy_from(nines.data(), nines.size() * 4);
        const auto states = [&](const halation::DeviceMemory &memory) {
            return Tensor(memory.data(), halation::float32, {slots, 2, 4, 4}).on(context_.device().device);
        };
        halation::NamedTensors tensors = there_.tensors(false, false);
        halation::Batch batch;
        const auto vector = [](auto &values) { return Tensor(values.data(), {static_cast<int64_t>(values.size())}); };
        batch.offsets = vector(offsets_);
        if (initial) tensors.emplace_back("initial_state", states(pool_memory_));
        if (initial) batch.read_slots = vector(rows);
        if (final) tensors.emplace_back("final_state", states(pool_memory_));
        if (final) batch.write_slots = vector(rows);
        if (!to.empty()) {
            tensors.emplace_back("snapshot_state", states(one_pool ? pool_memory_ : snapshot_memory_));
            batch.snapshot_sequences = vector(sequences);
            batch.snapshot_tokens = vector(tokens);
            batch.snapshot_slots = vector(to);
        }
        halation::Problem problem = fakes::gated_problem(data, form);
        problem.backend = "opencl";
        halation::Plan plan(context_, problem);
        seen = {};
        plan.run(tensors, batch);
        pool.resize(pool_.size());
        snapshots.resize(pool_.size());
        pool_memory_.copy_to(pool.data(), pool.size() * 4);
        snapshot_memory_.copy_to(snapshots.data(), snapshots.size() * 4);
        o = there_.read("o");
        if (one_pool) snapshots = pool;
    }

private:
    const halation::Context &context_;
    std::vector<int32_t> offsets_;

public:
    const Gated data;
    std::vector<int64_t> rows, sequences, tokens, to;
    std::vector<float> pool, snapshots, o;  // what the last run left

private:
    OnDevice there_;
    std::vector<float> pool_;
    halation::DeviceMemory pool_memory_, snapshot_memory_;
};

}  // namespace

TEST_CASE("snapshots on a device, in the pool of the final states or apart", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE})
        for (const bool one_pool : {false, true})
            for (const bool final : {false, true}) {
                CAPTURE(form, one_pool, final);
                Batch batch(*context, {0, 0, 5, 5, 45, 46});
                batch.run(form, one_pool, final);
                const std::vector<float> o = batch.o, after = batch.pool;
                const std::vector<std::vector<int64_t>> asked = {{3, 20, 8},  {1, 3, 9},  {3, 16, 10}, {3, 16, 11}, {0, 0, 12},
                                                                 {3, 40, 13}, {3, 5, 14}, {3, 0, 15},  {4, 1, 16},  {1, 5, -1},
                                                                 {1, 0, 17},  {3, 6, 18}, {3, 39, 19}, {4, 0, 20},  {3, 32, 21}};
                for (const auto &one : asked) batch.ask(one[0], one[1], one[2]);
                batch.run(form, one_pool, final);
                CHECK(same_bits(batch.o, o));
                for (const auto &one : asked) {
                    INFO("sequence " << one[0] << " after " << one[1] << " tokens");
                    if (one[2] >= 0) CHECK(close(fakes::row(batch.snapshots, one[2], row), batch.state_after(one[0], one[1])));
                }
                const std::vector<float> untouched(row, one_pool ? 7.f : 9.f);
                for (const int64_t slot : {5, 6, 7, 22, 23}) CHECK(same_bits(fakes::row(batch.snapshots, slot, row), untouched));
                for (int64_t slot = 0; slot < 8; slot++)
                    CHECK(same_bits(fakes::row(batch.pool, slot, row), fakes::row(after, slot, row)));
            }
}

TEST_CASE("a call on a device falls into as many launches as its snapshots need", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Batch batch(*context, {0, 40, 80, 120});
    const auto launches = [&](halation_form form, bool final = true) {
        batch.run(form, false, final);
        for (size_t i = 0; i < batch.to.size(); i++)
            CHECK(close(fakes::row(batch.snapshots, batch.to[i], row), batch.state_after(batch.sequences[i], batch.tokens[i])));
        return seen.calls;
    };
    CHECK(launches(HALATION_FORM_CHUNKWISE) == 1);
    SECTION("at whole chunks: the way leads through their rows") {
        batch.ask(0, 16, 8), batch.ask(1, 32, 9);
        CHECK(launches(HALATION_FORM_CHUNKWISE) == 3);  // 0, 1: into snapshots, 2: into its end; 0, 1: from snapshots
        CHECK(seen.entries == 5);
    }
    SECTION("at the end of every sequence, no final state") {
        for (int64_t n = 0; n < 3; n++) batch.ask(n, 40, 8 + n);
        CHECK(launches(HALATION_FORM_CHUNKWISE, false) == 1);
        CHECK(launches(HALATION_FORM_CHUNKWISE) == 2);
    }
    SECTION("in the first chunk: aside from the initial states") {
        for (int64_t n = 0; n < 3; n++) batch.ask(n, 4 + n, 8 + n), batch.ask(n, 3, 12 + n);
        for (const bool final : {true, false}) {
            CHECK(launches(HALATION_FORM_CHUNKWISE, final) == 2);
            CHECK(seen.entries == 9);
        }
    }
    SECTION("in a later chunk: aside from the final state's row, or from the plan's memory") {
        for (int64_t n = 0; n < 3; n++) batch.ask(n, 20, 8 + n);
        for (const bool final : {true, false}) CHECK(launches(HALATION_FORM_CHUNKWISE, final) == 3);
    }
    SECTION("after every token") {
        for (int64_t t = 1; t <= 8; t++) batch.ask(1, t, 8 + t);
        CHECK(launches(HALATION_FORM_RECURRENT) == 1 + 9);
    }
    SECTION("of a sequence that starts from zero") {
        batch.ask(2, 0, 8);
        batch.run(HALATION_FORM_CHUNKWISE, false, true, false);
        CHECK(same_bits(fakes::row(batch.snapshots, 8, row), std::vector<float>(row)));
    }
}

TEST_CASE("pieces of sequences fall into launches where they would be 2^31 elements apart, had each a row of o", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    constexpr int64_t T = 17, apart = 72'000'000, aside = 15;  // that many snapshots inside the first chunk
    static_assert(2 * aside * apart > INT32_MAX && (2 * aside - 1) * apart <= INT32_MAX, "just too many for one launch");
    const Gated data(2, T, 1, 1, 4, 4);
    OnDevice there(*context, data);
    const DLDevice device = context->device().device;
    const halation::DeviceMemory o(*context, (apart + T * 4) * sizeof(float));  // of which little is touched
    std::vector<float> states(2 * aside * 16);
    const halation::DeviceMemory snapshots(*context, states.data(), states.size() * sizeof(float));
    std::vector<int64_t> sequences, tokens, to;
    for (int64_t n = 0; n < 2 * aside; n++) sequences.push_back(n / aside), tokens.push_back(n % aside + 1), to.push_back(n);
    const auto vector = [](const std::vector<int64_t> &values) { return Tensor(values.data(), {2 * aside}); };
    halation::Batch batch;
    batch.snapshot_sequences = vector(sequences);
    batch.snapshot_tokens = vector(tokens);
    batch.snapshot_slots = vector(to);
    halation::NamedTensors tensors = there.tensors(false, false);
    for (auto &[name, tensor] : tensors)
        if (name == "o") tensor = Tensor(o.data(), halation::float32, {2, T, 1, 4}, {apart, 4, 4, 1}).on(device);
    tensors.emplace_back("snapshot_state", Tensor(snapshots.data(), halation::float32, {2 * aside, 1, 4, 4}).on(device));
    halation::Problem problem = fakes::gated_problem(data, HALATION_FORM_CHUNKWISE);
    problem.backend = "opencl";
    halation::Plan plan(*context, problem);
    seen = {};
    plan.run(tensors, batch);
    CHECK(seen.calls == 2 + 1);
    CHECK(seen.entries == 2 * aside + 2);
    snapshots.copy_to(states.data(), states.size() * sizeof(float));
    std::vector<float> expected(data.o.size()), found(T * 4);
    for (int64_t n = 0; n < 2; n++) {
        std::vector<float> state(16);
        for (int64_t t = 0; t < T; t++) {
            data.reference(n, t, t + 1, &state, &expected);
            if (t < aside) CHECK(close(fakes::row(states, n * aside + t, 16), state));
        }
        const auto offset = static_cast<size_t>(n * apart) * sizeof(float);
        halation::check(halation_device_copy_from(context->get(), o.data(), offset, found.data(), found.size() * sizeof(float)));
        CHECK(close(found, fakes::row(expected, n, T * 4)));
    }
}

TEST_CASE("a skipped sequence takes no snapshot on a device", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Batch batch(*context, {0, 5, 12});
    batch.ask(0, 2, 8);
    batch.ask(1, 2, 9);
    batch.rows[0] = -1;
    batch.run(HALATION_FORM_CHUNKWISE, false);
    CHECK(same_bits(fakes::row(batch.snapshots, 8, row), std::vector<float>(row, 9.f)));
    CHECK(close(fakes::row(batch.snapshots, 9, row), batch.state_after(1, 2)));
    CHECK(std::all_of(batch.o.begin(), batch.o.begin() + 5 * 2 * 4, [](float x) { return x == 0; }));
}
