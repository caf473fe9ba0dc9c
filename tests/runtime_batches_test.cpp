// Batches: packed sequences, slots, skips, states handed on; AUTO by each sequence's own length.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace fakes;
using halation::Tensor;

namespace {

// A packed batch of T tokens with states of their own for every sequence or slot.
struct Packed {
    Gated data;
    std::vector<int32_t> offsets;
    int64_t rows, elements;
    std::vector<float> initial, final;
    halation::Batch batch;
    halation::NamedTensors tensors;
    std::vector<int64_t> read, write;
    std::vector<uint8_t> has;

    Packed(std::vector<int32_t> given, int64_t slots = -1)
        : data(1, given.back(), 2, 4, 8, 12), offsets(std::move(given)),
          rows(slots < 0 ? static_cast<int64_t>(offsets.size()) - 1 : slots), elements(data.HV * data.K * data.V) {
        initial.resize(static_cast<size_t>(rows * elements));
        for (size_t i = 0; i < initial.size(); i++) initial[i] = std::sin(static_cast<float>(i));
        final.assign(initial.size(), 5.f);
        tensors = data.tensors(false, false);
        tensors.push_back({"initial_state", Tensor(initial.data(), {rows, data.HV, data.K, data.V})});
        tensors.push_back({"final_state", Tensor(final.data(), {rows, data.HV, data.K, data.V})});
        batch.offsets = Tensor(offsets.data(), {static_cast<int64_t>(offsets.size())});
    }
    void slots(std::vector<int64_t> reads, std::vector<int64_t> writes) {
        read = std::move(reads);
        write = std::move(writes);
        batch.read_slots = Tensor(read.data(), {static_cast<int64_t>(read.size())});
        batch.write_slots = Tensor(write.data(), {static_cast<int64_t>(write.size())});
    }
    void in_place() { tensors.back().second = Tensor(initial.data(), {rows, data.HV, data.K, data.V}); }
    Failure run(halation_form form = HALATION_FORM_AUTO) {
        return failure_of([&] {
            halation::Plan plan(context(), gated_problem(data, form));
            plan.run(tensors, batch);
        });
    }
    // Sequence n from state `from` of the initial states as they were; outputs into `out`.
    std::vector<float> expect(int64_t n, int64_t from, std::vector<float> *out) const {
        std::vector<float> state =
            from < 0 ? std::vector<float>(static_cast<size_t>(elements), 0.f) : row(initial, from, elements);
        data.reference(0, offsets[static_cast<size_t>(n)], offsets[static_cast<size_t>(n) + 1], &state, out);
        return state;
    }
};

}  // namespace

TEST_CASE("packed sequences, empty ones among them") {
    Packed packed({0, 0, 5, 5, 69, 69});
    std::vector<float> out(packed.data.o.size());
    std::vector<std::vector<float>> states;
    for (int64_t n = 0; n < 5; n++) states.push_back(packed.expect(n, n, &out));
    for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
        packed.final.assign(packed.final.size(), 5.f);
        REQUIRE(packed.run(form).message.empty());
        CHECK(close(packed.data.o, out));
        for (int64_t n = 0; n < 5; n++) {
            const auto got = row(packed.final, n, packed.elements);
            const bool empty = packed.offsets[static_cast<size_t>(n)] == packed.offsets[static_cast<size_t>(n) + 1];
            CHECK((empty ? same_bits(got, states[static_cast<size_t>(n)]) : close(got, states[static_cast<size_t>(n)])));
        }
    }
}

TEST_CASE("an empty sequence hands its state on bitwise, NaN and signed zero included") {
    Packed packed({0, 0, 3});
    packed.initial[0] = -0.f;
    packed.initial[1] = std::nanf("7");
    REQUIRE(packed.run().message.empty());
    CHECK(same_bits(row(packed.final, 0, packed.elements), row(packed.initial, 0, packed.elements)));
    packed.has = {0, 0};
    packed.batch.has_initial_state = Tensor(packed.has.data(), {2});
    REQUIRE(packed.run().message.empty());
    CHECK(same_bits(row(packed.final, 0, packed.elements), std::vector<float>(static_cast<size_t>(packed.elements), 0.f)));
}

TEST_CASE("offsets of 64 bits, and offsets with a stride") {
    Packed packed({0, 1, 4, 9});
    REQUIRE(packed.run().message.empty());
    const auto o = packed.data.o, states = packed.final;
    std::vector<int64_t> wide = {0, -1, 1, -1, 4, -1, 9, -1};
    packed.batch.offsets = Tensor(wide.data(), {4}, {2});
    packed.final.assign(packed.final.size(), 0.f);
    REQUIRE(packed.run().message.empty());
    CHECK(same_bits(packed.data.o, o));
    CHECK(same_bits(packed.final, states));
}

TEST_CASE("a sequence is bitwise the same alone, in any batch and when split at chunks") {
    Packed packed({0, 20, 21, 40, 41, 41, 80});
    REQUIRE(packed.run().message.empty());
    for (int64_t n = 0; n < 6; n++) {
        const int32_t begin = packed.offsets[static_cast<size_t>(n)], end = packed.offsets[static_cast<size_t>(n) + 1];
        Packed alone({begin, end});
        alone.offsets = {0, begin, end, 80};  // the others have no state to speak of
        alone.rows = 3;
        alone.initial.assign(static_cast<size_t>(3 * alone.elements), 0.f);
        std::copy_n(packed.initial.begin() + n * packed.elements, packed.elements, alone.initial.begin() + alone.elements);
        alone.final.assign(alone.initial.size(), 0.f);
        alone.data = Gated(1, 80, 2, 4, 8, 12);
        alone.tensors = alone.data.tensors(false, false);
        alone.tensors.push_back({"initial_state", Tensor(alone.initial.data(), {3, 4, 8, 12})});
        alone.tensors.push_back({"final_state", Tensor(alone.final.data(), {3, 4, 8, 12})});
        alone.batch.offsets = Tensor(alone.offsets.data(), {4});
        REQUIRE(alone.run().message.empty());
        CHECK(same_bits(row(alone.final, 1, alone.elements), row(packed.final, n, packed.elements)));
        for (int32_t t = begin; t < end; t++) CHECK(same_bits(row(alone.data.o, t, 48), row(packed.data.o, t, 48)));
    }
    // 12 tokens, then 8 more with the state carried in place.
    Gated first(1, 80, 2, 4, 8, 12);
    std::vector<float> state = row(packed.initial, 0, packed.elements);
    for (const auto &[begin, tokens] : {std::pair<int64_t, int64_t>{0, 12}, {12, 8}}) {
        halation::Plan plan(context(), gated_problem(first, HALATION_FORM_CHUNKWISE));
        plan.run({{"q", Tensor(first.q.data() + begin * 16, {1, tokens, 2, 8})},
                  {"k", Tensor(first.k.data() + begin * 16, {1, tokens, 2, 8})},
                  {"v", Tensor(first.v.data() + begin * 48, {1, tokens, 4, 12})},
                  {"g", Tensor(first.g.data() + begin * 4, {1, tokens, 4})},
                  {"o", Tensor(first.o.data() + begin * 48, {1, tokens, 4, 12})},
                  {"initial_state", Tensor(state.data(), {1, 4, 8, 12})},
                  {"final_state", Tensor(state.data(), {1, 4, 8, 12})}});
    }
    CHECK(same_bits(state, row(packed.final, 0, packed.elements)));
    for (int64_t t = 0; t < 20; t++) CHECK(same_bits(row(first.o, t, 48), row(packed.data.o, t, 48)));
}

TEST_CASE("auto chooses by each sequence's own length") {
    Packed packed({0, 1, 2, 12, 13});
    seen.reset();
    REQUIRE(packed.run().message.empty());
    CHECK(seen.chunkwise_calls == 2 * 2);  // one sequence of 10 tokens: two heads of each key head, in segments of 8
    CHECK(seen.calls > seen.chunkwise_calls);
}

TEST_CASE("decode in place: the state's own memory, token by token, equals one pass") {
    Gated data(1, 9, 2, 4, 8, 12);
    std::vector<float> expected, states;
    data.reference_all(true, &expected, &states);
    halation::Plan plan(context(), gated_problem(data));
    std::vector<float> state = data.initial;
    for (int64_t t = 0; t < 9; t++)
        plan.run({{"q", Tensor(data.q.data() + t * 16, {1, 1, 2, 8})},
                  {"k", Tensor(data.k.data() + t * 16, {1, 1, 2, 8})},
                  {"v", Tensor(data.v.data() + t * 48, {1, 1, 4, 12})},
                  {"g", Tensor(data.g.data() + t * 4, {1, 1, 4})},
                  {"o", Tensor(data.o.data() + t * 48, {1, 1, 4, 12})},
                  {"initial_state", Tensor(state.data(), {1, 4, 8, 12})},
                  {"final_state", Tensor(state.data(), {1, 4, 8, 12})}});
    CHECK(close(data.o, expected));
    CHECK(close(state, states));
}

TEST_CASE("states read and written in slots of a pool, some skipped") {
    Packed packed({0, 5, 6, 9, 20, 20}, 8);
    packed.slots({7, -1, 2, 0, 5}, {3, 4, -1, 6, 1});
    std::vector<float> out(packed.data.o.size(), 0.f);
    const auto first = packed.expect(0, 7, &out), fourth = packed.expect(3, 0, &out),
               fifth = row(packed.initial, 5, packed.elements);
    for (const bool in_place : {false, true}) {
        if (in_place) packed.in_place();
        const std::vector<float> before = in_place ? packed.initial : packed.final;
        std::fill(packed.data.o.begin(), packed.data.o.end(), std::nanf(""));
        REQUIRE(packed.run().message.empty());
        CHECK(close(packed.data.o, out));
        const std::vector<float> &after = in_place ? packed.initial : packed.final;
        CHECK(close(row(after, 3, packed.elements), first));
        CHECK(close(row(after, 6, packed.elements), fourth));
        CHECK(same_bits(row(after, 1, packed.elements), fifth));
        for (const int64_t untouched : {0, 2, 4, 5, 7})
            CHECK(same_bits(row(after, untouched, packed.elements), row(before, untouched, packed.elements)));
        const bool skipped_is_zero = std::all_of(packed.data.o.begin() + 5 * 48, packed.data.o.begin() + 9 * 48,
                                                 [](float x) { return x == 0 && !std::signbit(x); });
        CHECK(skipped_is_zero);
    }
}

TEST_CASE("slots of 32 bits, in a batch that is not packed") {
    Gated data(3, 1, 2, 2, 4, 4);
    std::vector<float> pool(5 * 32), expected(data.o.size());
    for (size_t i = 0; i < pool.size(); i++) pool[i] = static_cast<float>(i) * 0.01f;
    const auto before = pool;
    std::vector<int32_t> slots = {4, 0, 2};
    halation::Batch batch;
    batch.read_slots = batch.write_slots = Tensor(slots.data(), {3});
    auto tensors = data.tensors(false, false);
    tensors.push_back({"initial_state", Tensor(pool.data(), {5, 2, 4, 4})});
    tensors.push_back({"final_state", Tensor(pool.data(), {5, 2, 4, 4})});
    halation::Plan(context(), gated_problem(data)).run(tensors, batch);
    for (int64_t b = 0; b < 3; b++) {
        auto state = row(before, slots[static_cast<size_t>(b)], 32);
        data.reference(b, 0, 1, &state, &expected);
        CHECK(close(row(pool, slots[static_cast<size_t>(b)], 32), state));
    }
    CHECK(close(data.o, expected));
    CHECK(same_bits(row(pool, 1, 32), row(before, 1, 32)));
    CHECK(same_bits(row(pool, 3, 32), row(before, 3, 32)));
}

TEST_CASE("has_initial_state = 0 is bitwise a zero state, whatever the slot holds") {
    Packed packed({0, 5, 6, 9});
    packed.initial.assign(packed.initial.size(), std::nanf(""));
    packed.has = {0, 0, 0};
    packed.batch.has_initial_state = Tensor(packed.has.data(), {3});
    REQUIRE(packed.run().message.empty());
    const auto o = packed.data.o, states = packed.final;
    packed.initial.assign(packed.initial.size(), 0.f);
    packed.batch.has_initial_state = Tensor();
    REQUIRE(packed.run().message.empty());
    CHECK(same_bits(packed.data.o, o));
    CHECK(same_bits(packed.final, states));
    packed.tensors.erase(packed.tensors.end() - 2);
    packed.final.assign(packed.final.size(), std::nanf(""));
    REQUIRE(packed.run().message.empty());
    CHECK(same_bits(packed.data.o, o));
    CHECK(same_bits(packed.final, states));
}

TEST_CASE("values of offsets, slots and flags are checked") {
    Packed packed({0, 5, 6, 9}, 4);
    packed.slots({0, 1, 2}, {0, 1, 2});
    std::string words;
    halation_status expected = HALATION_INVALID_ARGUMENT;
    std::vector<float> other(9 * 32);
    SECTION("offsets that do not begin at 0") {
        packed.offsets[0] = 1;
        words = "offsets[0]: is 1; must be 0";
    }
    SECTION("offsets that fall") {
        packed.offsets[2] = 4;
        words = "offsets[2]: is 4, less than 5 before it";
    }
    SECTION("negative offsets") {
        packed.offsets[1] = -2;
        words = "offsets[1]: is -2";
    }
    SECTION("offsets that end elsewhere") {
        packed.offsets[3] = 8;
        words = "offsets[3]: is 8; the last must be T = 9";
    }
    SECTION("offsets of another type") {
        packed.batch.offsets = Tensor(other.data(), {4});
        words = "offsets: type is float32; may be int32 or int64";
    }
    SECTION("offsets of another shape") {
        packed.batch.offsets = Tensor(packed.offsets.data(), {2, 2});
        words = "offsets: shape is [2, 2]; must be [N + 1]";
    }
    SECTION("no offsets at all") {
        packed.batch.offsets = Tensor(packed.offsets.data(), {0});
        words = "offsets: shape is [0]; must be [N + 1]";
    }
    SECTION("as many slots as sequences") {
        packed.slots({0, 1}, {0, 1, 2});
        words = "read_slots: shape is [2]; must be [3]";
    }
    SECTION("slots past the pool") {
        packed.slots({0, 1, 4}, {0, 1, 2});
        words = "read_slots[2]: is 4; may be -1 (skip) to 3, the last of 4 slots";
    }
    SECTION("slots below -1") {
        packed.slots({0, 1, 2}, {0, -2, 1});
        words = "write_slots[1]: is -2";
    }
    SECTION("a slot written twice") {
        packed.slots({0, 1, 2}, {3, 2, 3});
        words = "write_slots[2]: slot 3 is written by another sequence or snapshot too";
    }
    SECTION("a slot that one sequence reads and another writes") {
        packed.in_place();
        packed.slots({0, 1, 2}, {1, 3, 2});
        words = "read_slots: sequence 1 reads slot 1, which the same call writes for another sequence";
    }
    SECTION("rows of one pool, shifted") {
        packed.batch.read_slots = packed.batch.write_slots = Tensor();
        packed.tensors[6].second = Tensor(packed.initial.data() + packed.elements, {3, 4, 8, 12});
        packed.tensors[5].second = Tensor(packed.initial.data(), {3, 4, 8, 12});
        words = "reads slot 1, which the same call writes for another sequence";
    }
    SECTION("states of as many rows as sequences") {
        packed.batch.read_slots = Tensor();
        words = "initial_state: shape is [4, 4, 8, 12]; must be [N, HV, K, V] = [3, 4, 8, 12]; N is set by offsets";
    }
    SECTION("slots of states that are not given") {
        packed.tensors.pop_back();
        words = "write_slots: given without final_state";
    }
    SECTION("reads of states that are not given") {
        packed.tensors.erase(packed.tensors.end() - 2);
        words = "read_slots: given without initial_state";
    }
    SECTION("flags of another type") {
        packed.batch.has_initial_state = Tensor(packed.offsets.data(), {3});
        words = "has_initial_state: type is int32; may be bool or uint8";
    }
    SECTION("a flag set without a state") {
        packed.tensors.erase(packed.tensors.end() - 2);
        packed.batch.read_slots = Tensor();
        packed.has = {0, 1, 0};
        packed.batch.has_initial_state = Tensor(packed.has.data(), {3});
        words = "has_initial_state[1]: is true, but no initial_state is given";
    }
    SECTION("offsets with more than one batch") {
        packed.data = Gated(2, 9, 2, 4, 8, 12);
        packed.tensors = packed.data.tensors(false, false);
        words = "offsets: given with B = 2; a packed batch must have B = 1";
    }
    const Failure failure = packed.run();
    INFO(failure.message);
    CHECK(failure.status == expected);
    CHECK(failure.says(words.c_str()));
    CHECK(std::isnan(packed.data.o[0]));
    CHECK(packed.final[0] == 5.f);
}

TEST_CASE("no tokens and no sequences are calls like others") {
    SECTION("T = 0") {
        Gated data(2, 0, 2, 4, 8, 12);
        halation::Plan plan(context(), gated_problem(data));
        plan.run(data.tensors());
        CHECK(same_bits(data.final, data.initial));
        plan.run(data.tensors(false, true));
        CHECK(same_bits(data.final, std::vector<float>(data.final.size(), 0.f)));
        plan.run(data.tensors(false, false));
    }
    SECTION("B = 0") {
        Gated data(0, 5, 2, 4, 8, 12);
        halation::Plan(context(), gated_problem(data)).run(data.tensors());
    }
    SECTION("offsets of no sequence") {
        Packed packed({0});
        REQUIRE(packed.run().message.empty());
    }
}

TEST_CASE("a normalizer is carried like a state") {
    Gated data(2, 6, 2, 4, 8, 12);
    for (std::vector<float> *values : {&data.q, &data.k})
        for (float &x : *values) x = std::abs(x) + 0.1f;
    std::vector<float> z(2 * 4 * 8, 0.5f), once(data.o.size()), final(data.final.size()), final_z(z.size(), 0.f);
    halation::Plan plan(context(), halation::Problem("normalized", 2, 4, 8, 12));
    auto tensors = [&](int64_t begin, int64_t tokens, float *o, float *before, float *before_z, float *after, float *after_z) {
        auto at = [&](std::vector<float> &from, int64_t heads, int64_t channels) {
            return Tensor(from.data() + begin * heads * channels, {2, tokens, heads, channels},
                          {6 * heads * channels, heads * channels, channels, 1});
        };
        return halation::NamedTensors{{"q", at(data.q, 2, 8)},
                                      {"k", at(data.k, 2, 8)},
                                      {"v", at(data.v, 4, 12)},
                                      {"o", Tensor(o + begin * 48, {2, tokens, 4, 12}, {288, 48, 12, 1})},
                                      {"initial_state", Tensor(before, {2, 4, 8, 12})},
                                      {"initial_normalizer", Tensor(before_z, {2, 4, 8})},
                                      {"final_state", Tensor(after, {2, 4, 8, 12})},
                                      {"final_normalizer", Tensor(after_z, {2, 4, 8})}};
    };
    plan.run(tensors(0, 6, once.data(), data.initial.data(), z.data(), final.data(), final_z.data()));
    plan.run(tensors(0, 2, data.o.data(), data.initial.data(), z.data(), data.initial.data(), z.data()));
    plan.run(tensors(2, 4, data.o.data(), data.initial.data(), z.data(), data.initial.data(), z.data()));
    CHECK(same_bits(data.o, once));
    CHECK(same_bits(data.initial, final));
    CHECK(same_bits(z, final_z));
    // Wanted or not, given or not: the output is the same, and one of the two alone is allowed.
    auto some = tensors(0, 6, data.o.data(), final.data(), z.data(), final.data(), final_z.data());
    some.resize(4);
    plan.run(some);
    const auto from_zero = data.o;
    some.push_back({"final_normalizer", Tensor(final_z.data(), {2, 4, 8})});
    plan.run(some);
    CHECK(same_bits(data.o, from_zero));
    std::vector<float> both(768);  // room for either
    some.back().second = Tensor(both.data(), {2, 4, 8});
    some.push_back({"final_state", Tensor(both.data(), {2, 4, 8, 12})});
    CHECK(failure_of([&] { plan.run(some); }).says("final_state: shares memory with final_normalizer"));
}

TEST_CASE("vectors of integers: byte offsets, 64 bits, flags of any value") {
    Packed packed({0, 5, 6, 9}, 4);
    packed.slots({0, 1, 2}, {0, 1, 2});
    REQUIRE(packed.run().message.empty());
    const auto o = packed.data.o;
    // The same offsets, two elements into their memory.
    std::vector<int64_t> wide = {77, 77, 0, 5, 6, 9};
    DLTensor view = Tensor(wide.data(), {4}).view();
    view.byte_offset = 2 * sizeof(int64_t);
    std::vector<DLTensor> views;
    std::vector<halation_named_tensor> named;
    views.reserve(packed.tensors.size());
    for (const auto &[name, tensor] : packed.tensors) {
        views.push_back(tensor.view());
        named.push_back({name.c_str(), &views.back()});
    }
    std::vector<uint8_t> flags = {2, 0, 255};
    const Tensor flag_tensor(flags.data(), {3}), slot_tensor = packed.batch.read_slots;
    const DLTensor flag_view = flag_tensor.view(), slot_view = slot_tensor.view();
    auto arguments = HALATION_INIT(halation_arguments);
    arguments.tensors = named.data();
    arguments.tensor_count = static_cast<int32_t>(named.size());
    int64_t shape[] = {4};
    view.shape = shape;
    view.strides = nullptr;
    arguments.offsets = &view;
    arguments.read_slots = arguments.write_slots = &slot_view;
    halation::Context context(1);
    context.add_kernels(*table());
    halation::Plan plan(context, gated_problem(packed.data));
    REQUIRE(halation_run(plan.get(), &arguments) == HALATION_OK);
    CHECK(same_bits(packed.data.o, o));
    wide[5] = (int64_t(1) << 32) + 9;
    CHECK(failure_of(halation_run(plan.get(), &arguments)).says("offsets[3]: is 4294967305; the last must be T = 9"));
    wide[5] = 9;
    arguments.has_initial_state = &flag_view;
    REQUIRE(halation_run(plan.get(), &arguments) == HALATION_OK);
    const size_t tokens = 4 * 12;
    CHECK(std::equal(o.begin(), o.begin() + static_cast<std::ptrdiff_t>(5 * tokens), packed.data.o.begin()));
    CHECK(!std::equal(o.begin() + static_cast<std::ptrdiff_t>(5 * tokens), o.begin() + static_cast<std::ptrdiff_t>(6 * tokens),
                      packed.data.o.begin() + static_cast<std::ptrdiff_t>(5 * tokens)));
}
