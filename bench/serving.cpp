// What serving costs: a batch through offsets and slots of a pool beside the plainest call; drafts of 1 to 16 tokens beside one;
// snapshots; states stored in bfloat16. Ratios are medians of pairs timed in turn, so that a machine that slows down slows both.
#include "paired.h"

#include <halation.hpp>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

struct Options {
    std::string recurrence = "gated_delta";
    int64_t heads = 16, dim = 128;
    int threads = 1, pairs = 31;
};

// gated_delta or kda, gla, gated: B sequences of T tokens, with room for states of more.
class Tensors {
public:
    Tensors(const Options &options, int64_t B, int64_t T, int64_t slots) : options_(options), B_(B), T_(T), slots_(slots) {
        const int64_t H = options.heads, D = options.dim, tokens = B * T;
        for (auto *vector : {&q_, &k_, &v_, &o_}) vector->resize(static_cast<size_t>(tokens * H * D));
        const bool per_channel = options.recurrence == "kda" || options.recurrence == "gla";
        gate_shape_ = {H};
        if (per_channel) gate_shape_.push_back(D);
        g_.resize(static_cast<size_t>(tokens * H * (per_channel ? D : 1)));
        beta_.assign(static_cast<size_t>(tokens * H), 0.5f);
        state_.assign(static_cast<size_t>(slots * H * D * D), 0.f);
        half_.assign(state_.size(), 0);
        std::mt19937 random(1);
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (auto *vector : {&q_, &k_, &v_})
            for (float &x : *vector) x = uniform(random) / 8;  // keys of about unit length
        for (float &x : g_) x = -0.05f * (1 + uniform(random));
    }

    // As [B, T], or packed.
    halation::NamedTensors named(bool packed) {
        const int64_t b = packed ? 1 : B_, t = packed ? B_ * T_ : T_, H = options_.heads, D = options_.dim;
        std::vector<int64_t> gates = {b, t};
        gates.insert(gates.end(), gate_shape_.begin(), gate_shape_.end());
        halation::NamedTensors list = {{"q", {q_.data(), {b, t, H, D}}},
                                       {"k", {k_.data(), {b, t, H, D}}},
                                       {"v", {v_.data(), {b, t, H, D}}},
                                       {"g", {g_.data(), gates}},
                                       {"o", {o_.data(), {b, t, H, D}}}};
        if (options_.recurrence == "gated_delta" || options_.recurrence == "kda")
            list.push_back({"beta", {beta_.data(), {b, t, H}}});
        return list;
    }
    // Token t of the first sequence alone, and its outputs.
    halation::NamedTensors token(int64_t t) {
        halation::NamedTensors one;
        for (const auto &[name, tensor] : named(false)) {
            std::vector<int64_t> shape = tensor.shape();
            int64_t row = 1;
            for (size_t axis = 2; axis < shape.size(); axis++) row *= shape[axis];
            shape[0] = shape[1] = 1;
            one.push_back({name, halation::Tensor(static_cast<float *>(tensor.data()) + t * row, shape)});
        }
        return one;
    }
    std::vector<float> outputs(int64_t t) const {
        const int64_t row = options_.heads * options_.dim;
        return {o_.begin() + t * row, o_.begin() + (t + 1) * row};
    }
    halation::Tensor states(bool bfloat16 = false) {
        const std::vector<int64_t> shape = {slots_, options_.heads, options_.dim, options_.dim};
        return bfloat16 ? halation::Tensor(half_.data(), halation::bfloat16, shape) : halation::Tensor(state_.data(), shape);
    }

private:
    const Options &options_;
    int64_t B_, T_, slots_;
    std::vector<int64_t> gate_shape_;
    std::vector<float> q_, k_, v_, g_, beta_, o_, state_;
    std::vector<uint16_t> half_;
};

class Bench {
public:
    explicit Bench(const Options &options) : options_(options), context_(options.threads) {
        context_.add_kernels(*halation_kernels());
        plan_ = std::make_unique<halation::Plan>(context_, problem());
        halation::Problem half = problem();
        half.state_type = halation::bfloat16;
        half_plan_ = std::make_unique<halation::Plan>(context_, half);
    }

    void generality() {
        std::printf("\nA uniform batch, packed, with slots of a pool and flags, beside [B, T] with states in order:\n");
        std::printf("%6s %6s %14s %14s %8s\n", "B", "T", "plain, us", "served, us", "ratio");
        const std::pair<int64_t, int64_t> shapes[] = {{1, 1}, {8, 1}, {64, 1}, {16, 16}, {4, 512}, {1, 4096}};
        for (const auto &[B, T] : shapes) {
            Tensors tensors(options_, B, T, B);
            halation::NamedTensors plain = tensors.named(false), served = tensors.named(true);
            for (auto *list : {&plain, &served})
                for (const char *name : {"initial_state", "final_state"}) list->push_back({name, tensors.states()});
            Slots slots(B, T, B);
            pair(
                B, T, [&, &plan = *plan_] { plan.run(plain); }, [&, &plan = *plan_] { plan.run(served, slots.batch); });
        }
    }

    // Pools that no cache holds, as when many sequences are served: each call takes others of their slots.
    void drafts() {
        const int64_t B = 8, slots = pool_slots();
        std::printf(
            "\nDrafts: %lld sequences of T tokens, of a pool of %.1f GB whose slots are taken in turn, beside one token each:\n",
            static_cast<long long>(B), static_cast<double>(slots * state_bytes()) / 1e9);
        std::printf("%6s %6s %14s %14s %8s\n", "B", "T", "T = 1, us", "T, us", "ratio");
        Tensors one(options_, B, 1, slots);
        halation::NamedTensors single = with_pool(one.named(true), one.states());
        for (const int64_t T : {2, 4, 8, 16}) {
            Tensors many(options_, B, T, 1);
            halation::NamedTensors draft = with_pool(many.named(true), one.states());
            Slots first(B, 1, slots), second(B, T, slots);
            pair(
                B, T, [&] { plan_->run(single, first.next()); }, [&] { plan_->run(draft, second.next()); });
        }
    }

    // Speculative decoding: each call takes the tokens accepted last time and a new draft; a snapshot after the accepted ones is
    // what the next call starts from, and the state after the draft is not wanted.
    void speculation() {
        const int64_t B = 8, accepted = 4, draft = 8, T = accepted + draft, slots = pool_slots();
        std::printf("\nSpeculation: %lld accepted and %lld drafted tokens with one snapshot, beside decoding one token:\n",
                    static_cast<long long>(accepted), static_cast<long long>(draft));
        std::printf("%6s %6s %14s %14s %8s\n", "B", "T", "decode, us", "speculate, us", "ratio");
        Tensors one(options_, B, 1, slots), many(options_, B, T, 1);
        halation::NamedTensors single = with_pool(one.named(true), one.states()), draft_call = many.named(true);
        draft_call.push_back({"initial_state", one.states()});
        draft_call.push_back({"snapshot_state", one.states()});
        Slots first(B, 1, slots), second(B, T, slots);
        std::vector<int32_t> of(static_cast<size_t>(B)), after(of.size(), static_cast<int32_t>(accepted)), to(of.size());
        std::iota(of.begin(), of.end(), 0);
        const auto speculate = [&] {
            halation::Batch batch = second.next();
            // To the slots before those that are read.
            const int32_t *read = static_cast<const int32_t *>(batch.read_slots.data());
            for (size_t n = 0; n < to.size(); n++) to[n] = second.before(read + n);
            batch.write_slots = {};
            batch.snapshot_sequences = {of.data(), {B}};
            batch.snapshot_tokens = {after.data(), {B}};
            batch.snapshot_slots = {to.data(), {B}};
            plan_->run(draft_call, batch);
        };
        pair(
            B, T, [&] { plan_->run(single, first.next()); }, speculate);
    }

    void snapshots() {
        const int64_t B = 8, T = 8, slots = pool_slots();
        std::printf("\nA snapshot after every token of the draft (T states written, not one), and the state in bfloat16:\n");
        std::printf("%6s %6s %14s %14s %8s\n", "B", "T", "without, us", "with, us", "ratio");
        Tensors tensors(options_, B, T, slots);
        halation::NamedTensors plain = with_pool(tensors.named(true), tensors.states()), taken = plain;
        Tensors kept(options_, 1, 1, B * T);
        taken.push_back({"snapshot_state", kept.states()});
        Slots first(B, T, slots), second(B, T, slots);
        std::vector<int32_t> of, after, to;
        for (int32_t n = 0; n < B; n++)
            for (int32_t t = 1; t <= T; t++) {
                of.push_back(n);
                after.push_back(t);
                to.push_back(static_cast<int32_t>(to.size()));
            }
        const auto with = [&] {
            halation::Batch batch = second.next();
            batch.snapshot_sequences = {of.data(), {B * T}};
            batch.snapshot_tokens = {after.data(), {B * T}};
            batch.snapshot_slots = {to.data(), {B * T}};
            plan_->run(taken, batch);
        };
        pair(
            B, T, [&] { plan_->run(plain, first.next()); }, with);
        halation::NamedTensors half = with_pool(tensors.named(true), tensors.states(true));
        pair(
            B, T, [&] { plan_->run(plain, first.next()); }, [&] { half_plan_->run(half, second.next()); });
        Tensors one(options_, B, 1, 1);
        halation::NamedTensors single = with_pool(one.named(true), tensors.states()),
                               half_single = with_pool(one.named(true), tensors.states(true));
        Slots third(B, 1, slots), fourth(B, 1, slots);
        pair(
            B, 1, [&] { plan_->run(single, third.next()); }, [&] { half_plan_->run(half_single, fourth.next()); });
    }

    // What rounding the state at every call costs: tokens decoded one by one, beside a state in float32.
    void error_of_bfloat16() {
        std::printf("\nRelative error of o with the state stored in bfloat16, decoding token by token:\n");
        const int64_t T = 1024;
        Tensors tensors(options_, 1, T, 1);
        double difference = 0, norm = 0;
        for (int64_t t = 0; t < T; t++) {
            halation::NamedTensors now = tensors.token(t);
            std::vector<float> exact;
            for (const bool half : {false, true}) {
                halation::NamedTensors call = with_pool(now, tensors.states(half));
                halation::Batch batch;
                const uint8_t has = t > 0;
                batch.has_initial_state = {&has, {1}};
                (half ? half_plan_ : plan_)->run(call, batch);
                if (!half) exact = tensors.outputs(t);
            }
            const std::vector<float> rounded = tensors.outputs(t);
            for (size_t i = 0; i < exact.size(); i++) {
                difference += (exact[i] - rounded[i]) * (exact[i] - rounded[i]);
                norm += exact[i] * exact[i];
            }
            if (t == 0 || t == 15 || t == 127 || t == T - 1)
                std::printf("%6lld tokens: %.1e\n", static_cast<long long>(t + 1), std::sqrt(difference / norm));
        }
    }

private:
    // Offsets and slots of B sequences; next() moves on to others of the pool.
    struct Slots {
        Slots(int64_t B, int64_t T, int64_t slots) : pool(static_cast<size_t>(slots)), has(static_cast<size_t>(B), 1), B_(B) {
            std::iota(pool.begin(), pool.end(), 0);
            std::shuffle(pool.begin(), pool.end(), std::mt19937(7));
            for (int64_t n = 0; n <= B; n++) offsets.push_back(static_cast<int32_t>(n * T));
            batch.offsets = {offsets.data(), {B + 1}};
            batch.has_initial_state = {has.data(), {B}};
            next();
        }
        const halation::Batch &next() {
            if (at_ + B_ > static_cast<int64_t>(pool.size())) at_ = 0;
            batch.read_slots = batch.write_slots = {pool.data() + at_, {B_}};
            at_ += B_;
            return batch;
        }
        // A slot of the pool that this call does not read.
        int32_t before(const int32_t *slot) const {
            const int64_t at = slot - pool.data(), size = static_cast<int64_t>(pool.size());
            return pool[static_cast<size_t>((at + size - B_) % size)];
        }
        std::vector<int32_t> offsets, pool;
        std::vector<uint8_t> has;
        halation::Batch batch;

    private:
        int64_t B_, at_ = 0;
    };

    halation::Problem problem() const {
        return halation::Problem(options_.recurrence.c_str(), options_.heads, options_.heads, options_.dim, options_.dim);
    }
    int64_t state_bytes() const { return 4 * options_.heads * options_.dim * options_.dim; }
    int64_t pool_slots() const { return (int64_t(1) << 30) / state_bytes(); }

    static halation::NamedTensors with_pool(halation::NamedTensors tensors, const halation::Tensor &pool) {
        for (const char *name : {"initial_state", "final_state"}) tensors.push_back({name, pool});
        return tensors;
    }

    void pair(int64_t B, int64_t T, const std::function<void()> &first, const std::function<void()> &second) const {
        const bench::Paired times = bench::time_in_turn(options_.pairs, first, second);
        std::printf("%6lld %6lld %14.1f %14.1f %8.3f\n", static_cast<long long>(B), static_cast<long long>(T), 1e6 * times.first,
                    1e6 * times.second, times.ratio);
        std::fflush(stdout);
    }

    const Options &options_;
    halation::Context context_;
    std::unique_ptr<halation::Plan> plan_, half_plan_;
};

}  // namespace

int main(int argc, char **argv) {
    Options options;
    CLI::App app("What serving costs: generality, drafts, snapshots, states in bfloat16.");
    app.add_option("RECURRENCE", options.recurrence)->check(CLI::IsMember({"gated_delta", "kda", "gla", "gated"}));
    app.add_option("--heads", options.heads)->check(CLI::Range(1, 1024));
    app.add_option("--dim", options.dim, "K and V")->check(CLI::Range(1, 1024));
    app.add_option("--threads", options.threads)->check(CLI::Range(0, 1024));
    app.add_option("--pairs", options.pairs, "timings of each")->check(CLI::Range(1, 100000));
    CLI11_PARSE(app, argc, argv);
    try {
        Bench bench(options);
        std::printf("%s, H %lld, K = V = %lld, float32, %d threads, medians of %d\n", options.recurrence.c_str(),
                    static_cast<long long>(options.heads), static_cast<long long>(options.dim), options.threads, options.pairs);
        bench.generality();
        bench.drafts();
        bench.speculation();
        bench.snapshots();
        bench.error_of_bfloat16();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "serving: %s\n", error.what());
        return 1;
    }
}
