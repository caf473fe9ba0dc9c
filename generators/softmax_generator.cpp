// softmax attention with a KV cache: the T queries are the last T of the S cached tokens.
#include "../schedules/schedules.h"
#include "attention.h"
#include "guard.h"
#include "masks.h"
#include "math.h"
#include "recurrence.h"

#include <limits>

namespace halation {

using namespace Halide;

class SoftmaxGenerator : public Generator<SoftmaxGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "softmax"};
    GeneratorParam<Form> form{"form", Form::parallel, {{"recurrent", Form::recurrent}, {"parallel", Form::parallel}}};
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};
    GeneratorParam<std::string> parameters{"parameters", ""};  // of the schedule, see parameters.h

    Input<Buffer<void, 3>> q{"q"};          // (K, G, T)
    Input<Buffer<void, 3>> k{"k"}, v{"v"};  // (K, H, S), (V, H, S)
    Input<int32_t> causal{"causal"};        // 0: every query sees the whole cache
    Input<float> scale{"scale"};
    Output<Buffer<void, 3>> o{"o"};  // (V, G, T)

    void configure() {
        for (auto *buffer : {&q, &k, &v}) buffer->set_type(type);
        o.set_type(type);
    }

    void generate() {
        const Var &s = m_.s, &t = m_.t, &d = m_.d, &vv = m_.v, &h = m_.h;
        const Expr key_dim = q.dim(0).extent(), value_dim = v.dim(0).extent(), tokens = q.dim(2).extent();
        const float lowest = std::numeric_limits<float>::lowest();
        m_.cached = k.dim(2).extent();
        const Expr channel = within(d, key_dim), real = likely(d < key_dim);
        m_.queries = Func("queries");
        m_.queries(d, t, h) = cast<float>(guarded(real, q(channel, h, min(t, tokens - 1)))) * scale;
        m_.keys = Func("keys");
        m_.keys(d, s, h) = cast<float>(guarded(real, k(channel, h, min(s, m_.cached - 1))));

        const int lanes = machine_with(cpu_machine(get_target()), parameters).lanes;
        m_.over_keys = RDom(0, (key_dim + lanes - 1) / lanes * lanes, "key");
        m_.scores = Func("scores");
        m_.scores(s, t, h) += m_.queries(m_.over_keys, t, h) * m_.keys(m_.over_keys, s, h);
        const Cache cache = {m_.cached, tokens, causal};
        const auto seen = [&](Expr at) { return cache.sees(at, t); };
        m_.masked = Func("masked");
        m_.masked(s, t, h) = select(seen(s), m_.scores(s, t, h), lowest);

        m_.over_maxima = RDom(0, m_.cached, "maximum");
        m_.maxima = Func("maxima");
        m_.maxima(t, h) = lowest;
        m_.maxima(t, h) = max(m_.maxima(t, h), m_.masked(m_.over_maxima, t, h));
        m_.weights = Func("weights");
        m_.weights(s, t, h) = select(seen(s), decay_of(m_.masked(s, t, h) - m_.maxima(t, h)), 0.0f);
        m_.over_sums = RDom(0, m_.cached, "weight");
        m_.sums = Func("sums");
        m_.sums(t, h) += m_.weights(m_.over_sums, t, h);

        // What a later token holds, NaN even, is nothing to this one: where some queries do not see a value, it is masked.
        m_.values = Func("values");
        m_.values(vv, s, h) = cast<float>(
            guarded(likely(vv < value_dim), v(within(vv, value_dim), h, unsafe_promise_clamped(s, 0, m_.cached - 1))));
        const Expr seen_by_all = cache.seen_by(0);
        m_.over_seen_by_all = RDom(0, seen_by_all, "seen_by_all");
        m_.over_seen_by_some = RDom(seen_by_all, m_.cached - seen_by_all, "seen_by_some");
        const Expr all = m_.over_seen_by_all, some = m_.over_seen_by_some;
        m_.output_sums = Func("output_sums");
        m_.output_sums(vv, t, h) += m_.weights(all, t, h) * m_.values(vv, all, h);
        m_.output_sums(vv, t, h) += m_.weights(some, t, h) * select(seen(some), m_.values(vv, some, h), 0.0f);
        m_.output = Func("output");
        m_.output(vv, h, t) = narrowed(type, quotient(m_.output_sums(vv, t, h), m_.sums(t, h)));
        o = m_.output;

        for (auto *buffer : {&q, &k, &v}) {
            for (int dim = 0; dim < 3; dim++) buffer->dim(dim).set_min(0);
        }
        o.dim(0).set_bounds(0, value_dim);
        o.dim(1).set_min(0);
        o.dim(2).set_bounds(0, tokens);
        get_pipeline().add_custom_lowering_pass(make_guard_pass());
        get_pipeline().add_custom_lowering_pass(make_masks_pass());
        m_.output.bound(vv, 0, value_dim).bound(t, 0, tokens);
    }

    void schedule() { softmax_cpu(m_, form == Form::recurrent, machine_with(cpu_machine(get_target()), parameters)); }

private:
    Attention m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::SoftmaxGenerator, halation_softmax)
