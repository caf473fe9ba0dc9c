// softmax attention with a KV cache on a GPU, for a batch of sequences (batch.h): a scan over blocks of keys with a running
// maximum.
#include "../schedules/schedules.h"
#include "attention.h"
#include "barrier_memory.h"
#include "batch.h"
#include "carry_registers.h"
#include "chunk_ahead.h"
#include "math.h"
#include "recurrence.h"
#include "skip_turns.h"
#include "thread_registers.h"

#include <limits>

namespace halation {

using namespace Halide;

namespace {

constexpr float lowest = std::numeric_limits<float>::lowest();

// {maximum, sum of weights, sums of values}, of weights that are relative to the maximum.
using Sums = std::vector<Expr>;

Sums elements(const FuncRef &tuple, int count) {
    Sums all;
    for (int i = 0; i < count; i++) all.push_back(tuple[i]);
    return all;
}

Sums none(int count) {
    Sums all(static_cast<size_t>(count), 0.0f);
    all[0] = lowest;
    return all;
}

Tuple merged(const Sums &a, const Sums &b) {
    Sums all = {max(a[0], b[0])};
    const Expr scale_a = decay_of(a[0] - all[0]), scale_b = decay_of(b[0] - all[0]);
    for (size_t i = 1; i < a.size(); i++) all.push_back(a[i] * scale_a + b[i] * scale_b);
    return Tuple(all);
}

}  // namespace

class SoftmaxGpuGenerator : public Generator<SoftmaxGpuGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "softmax"};
    GeneratorParam<Form> form{"form", Form::parallel, {{"recurrent", Form::recurrent}, {"parallel", Form::parallel}}};
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};

    Input<Buffer<void, 4>> q{"q"};          // (K, G, T, B)
    Input<Buffer<void, 4>> k{"k"}, v{"v"};  // (K, H, S, B), (V, H, S, B)
    Input<Buffer<int32_t, 2>> sequences{"sequences"};
    Input<int32_t> causal{"causal"};  // 0: every query sees the whole cache
    Input<float> scale{"scale"};
    Input<int32_t> most_tokens{"most_tokens"}, most_cached{"most_cached"};
    Input<int32_t> key_head_step{"key_head_step"}, key_heads{"key_heads"};
    Output<Buffer<void, 4>> o{"o"};  // (V, G, T, sequences)

    void configure() {
        for (auto *buffer : {&q, &k, &v}) buffer->set_type(type_of_bits(type));
        o.set_type(type_of_bits(type));
    }

    void generate() {
        const GpuMachine &machine = gpu_machine(get_target());
        m_.shape = form == Form::recurrent ? machine.decode : machine.prefill;
        batch_.sequences = sequences;
        batch_.sequence_count = sequences.dim(1).extent();
        batch_.value_heads = q.dim(1).extent();
        batch_.key_head_step = key_head_step;
        batch_.key_heads = key_heads;
        cache_ = {batch_.cached(m_.h), batch_.tokens(m_.h), causal};
        any_layout(sequences);

        define_weights();
        define_sums();
        define_output();

        placed_ = batch_.placed_output(m_.output, type, v.dim(0).extent(), most_tokens);
        o = placed_;
        any_layout(o);

        CarryRegistersNames names;  // no state, but outputs that lie where a sequence does
        names.copies[placed_.name()] = placed_.name();
        get_pipeline().add_custom_lowering_pass(make_carry_registers_pass(names));
        const Func &all_sums = in_parts() ? m_.all_sums : m_.part_sums;
        get_pipeline().add_custom_lowering_pass(
            make_thread_registers_pass({m_.scores.name(), m_.block_sums.name(), m_.part_sums.name(), all_sums.name()}));
    }

    void schedule() {
        softmax_gpu(m_, placed_);
        get_pipeline().add_custom_lowering_pass(make_skip_turns_pass(m_.skipped));
        for (const auto &[loop, staged] : m_.ahead)
            get_pipeline().add_custom_lowering_pass(make_chunk_ahead_pass({loop, staged}));
        add_barrier_passes(get_pipeline());
    }

private:
    template<typename AnyBuffer> Func placed(const std::string &name, const std::string &dims, AnyBuffer &buffer) const {
        Func stored = batch_.placed(name, dims, buffer, free_extents(buffer)), value(name + "_value");
        const std::vector<Var> args = stored.args();
        value(args) = float_of_bits(type, stored(std::vector<Expr>(args.begin(), args.end())));
        return value;
    }

    // Zero beyond the channels that there are. All threads load something, so that nothing stands between one load and the next.
    static Expr padded(const Expr &inside, const Expr &load) { return select(inside, load, 0.0f); }

    bool in_parts() const { return m_.shape.most_parts > 0; }
    int tuple_size() const { return 2 + m_.shape.channels; }

    // Query of the sequence, and how many keys some query of the tile sees: the last that there is.
    Expr query(const Expr &i) const { return m_.tile * m_.shape.queries + i; }
    Expr seen_by_any() const {
        return select(query(0) < cache_.tokens, cache_.seen_by(min(query(m_.shape.queries), cache_.tokens) - 1), 0);
    }
    Expr blocks_seen() const { return (seen_by_any() + m_.shape.keys - 1) / m_.shape.keys; }

    // Blocks of keys in a part of what a query sees, by that alone: so a query's result does not depend on others.
    Expr blocks_of_part() const { return max(part_of(blocks_seen()), 1); }
    Expr part_of(const Expr &blocks) const { return (blocks + m_.shape.most_parts - 1) / m_.shape.most_parts; }
    Expr most_blocks() const { return (most_cached + m_.shape.keys - 1) / m_.shape.keys; }

    // Block of keys of the cache, and its key.
    Expr block(const Expr &c) const { return in_parts() ? m_.part * blocks_of_part() + c : c; }
    Expr key(const Expr &j) const { return block(m_.c) * m_.shape.keys + j; }
    Expr seen(const Expr &j) const { return cache_.sees(key(j), query(m_.i)); }

    void define_weights() {
        const Var &i = m_.i, &tile = m_.tile, &j = m_.j, &c = m_.c, &part = m_.part, &d = m_.d, &h = m_.h;
        const Expr key_dim = q.dim(0).extent(), channel = min(d, key_dim - 1);
        const Func q_at = placed("q", "BTGK", q), k_at = placed("k", "BSHK", k);
        m_.queries = Func("queries");
        m_.queries(d, i, tile, h) = padded(d < key_dim, q_at(channel, h, query(i))) * scale;
        m_.keys = Func("keys");
        m_.keys(d, j, c, part, tile, h) = padded(d < key_dim, k_at(channel, h, key(j)));

        const int slice = m_.shape.key_slice;
        m_.over_keys = RDom(0, (key_dim + slice - 1) / slice * slice, "key");
        m_.scores = Func("scores");
        m_.scores(j, i, c, part, tile, h) += m_.queries(m_.over_keys, i, tile, h) * m_.keys(m_.over_keys, j, c, part, tile, h);
        const auto masked = [&](Expr at) { return select(seen(at), m_.scores(at, i, c, part, tile, h), lowest); };
        m_.over_scores = RDom(0, m_.shape.keys, "score");
        m_.maxima = Func("maxima");
        m_.maxima(i, c, part, tile, h) = lowest;
        m_.maxima(i, c, part, tile, h) = max(m_.maxima(i, c, part, tile, h), masked(m_.over_scores));
        m_.weights = Func("weights");
        m_.weights(j, i, c, part, tile, h) = select(seen(j), decay_of(masked(j) - m_.maxima(i, c, part, tile, h)), 0.0f);
    }

    // What a later token holds, NaN even, is nothing to this query: where some do not see a value, it is masked.
    void define_sums() {
        const Var &i = m_.i, &tile = m_.tile, &j = m_.j, &c = m_.c, &part = m_.part, &h = m_.h, &x = m_.x, &y = m_.y, &e = m_.e;
        const Expr value_dim = v.dim(0).extent();
        const Func v_at = placed("v", "BSHV", v);
        const int channels = m_.shape.channels, keys = m_.shape.keys;
        const Expr channel = (y * m_.shape.lanes + x) * channels + e;
        const bool one_query = m_.shape.queries == 1;
        const Expr seen_by_all = (block(c) + 1) * keys <= cache_.seen_by(query(0));

        m_.block_sums = Func("block_sums");
        m_.block_sums(x, y, i, c, part, tile, h) = Tuple(Sums(static_cast<size_t>(1 + channels), 0.0f));
        for (const bool all : {true, false}) {
            if (all && one_query) continue;
            Func values("values");
            values(x, e, y, j, c, part, tile, h) = padded(channel < value_dim, v_at(min(channel, value_dim - 1), h, key(j)));
            m_.values.push_back(values);
            RDom over(0, keys, all ? "seen_by_all" : "seen_by_some");
            if (!one_query) over.where(all ? seen_by_all : !seen_by_all);
            m_.over_values.push_back(over);
            const Expr weight = m_.weights(over, i, c, part, tile, h);
            Sums sums = elements(m_.block_sums(x, y, i, c, part, tile, h), 1 + channels);
            sums[0] += weight;
            for (int n = 0; n < channels; n++) {
                const Expr value = values(x, n, y, over, c, part, tile, h);
                sums[static_cast<size_t>(n) + 1] += weight * (all ? value : select(seen(over), value, 0.0f));
            }
            m_.block_sums(x, y, i, c, part, tile, h) = Tuple(sums);
        }

        const auto with_block = [&](Expr of_block) {
            Sums sums = {m_.maxima(i, of_block, part, tile, h)};
            for (const Expr &sum : elements(m_.block_sums(x, y, i, of_block, part, tile, h), 1 + channels)) sums.push_back(sum);
            return sums;
        };
        const Expr most = in_parts() ? part_of(most_blocks()) : most_blocks();
        m_.over_blocks = RDom(0, most, "block");
        const Expr at = m_.over_blocks.x;
        if (in_parts()) m_.over_blocks.where(at < blocks_of_part());
        m_.over_blocks.where(block(at) < blocks_seen());
        m_.part_sums = Func("part_sums");
        m_.part_sums(x, y, i, part, tile, h) = Tuple(none(tuple_size()));
        m_.part_sums(x, y, i, part, tile, h) =
            merged(elements(m_.part_sums(x, y, i, part, tile, h), tuple_size()), with_block(at));
        if (!in_parts()) return;
        const int at_once = m_.shape.parts_at_once;
        const Expr parts = min(most_blocks(), m_.shape.most_parts);
        m_.over_parts = RDom(0, (parts + at_once - 1) / at_once * at_once, "part");
        m_.all_sums = Func("all_sums");
        m_.all_sums(x, y, i, tile, h) = Tuple(none(tuple_size()));
        m_.all_sums(x, y, i, tile, h) = merged(elements(m_.all_sums(x, y, i, tile, h), tuple_size()),
                                               elements(m_.part_sums(x, y, i, m_.over_parts, tile, h), tuple_size()));
    }

    void define_output() {
        const Var &vv = m_.v, &t = m_.t, &h = m_.h;
        const int lanes = m_.shape.lanes, channels = m_.shape.channels, queries = m_.shape.queries;
        const Expr e = vv % channels, x = vv / channels % lanes, y = vv / (lanes * channels);
        const Sums sums = in_parts() ? elements(m_.all_sums(x, y, t % queries, t / queries, h), tuple_size())
                                     : elements(m_.part_sums(x, y, t % queries, 0, t / queries, h), tuple_size());
        Expr sum = sums[2];
        for (int n = 1; n < channels; n++) sum = select(e == n, sums[static_cast<size_t>(n) + 2], sum);
        m_.output = Func("output");
        m_.output(vv, h, t) = quotient(sum, sums[1]);
    }

    Batch batch_;
    Cache cache_;
    Func placed_;
    OnlineAttention m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::SoftmaxGpuGenerator, halation_softmax_gpu)
