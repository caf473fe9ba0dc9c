// Bidirectional linear attention: every token reads all tokens, so the state is one sum.
#include "../schedules/schedules.h"
#include "attention.h"
#include "feature_map.h"
#include "guard.h"
#include "masks.h"
#include "math.h"
#include "recurrence.h"

namespace halation {

using namespace Halide;

class BidirectionalGenerator : public Generator<BidirectionalGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "bidirectional"};
    GeneratorParam<Form> form{"form", Form::parallel, {{"parallel", Form::parallel}}};
    GeneratorParam<std::string> map{"feature_map", "identity"};
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};
    GeneratorParam<std::string> parameters{"parameters", ""};  // of the schedule, see parameters.h

    Input<Buffer<void, 3>> q{"q"}, k{"k"}, v{"v"};  // (K, H, T), (K, H, T), (V, G, T)
    Input<float> scale{"scale"};
    Output<Buffer<void, 3>> o{"o"};  // (V, G, T)

    void configure() {
        for (auto *buffer : {&q, &k, &v}) buffer->set_type(type);
        o.set_type(type);
    }

    void generate() {
        const Var &t = m_.t, &d = m_.d, &vv = m_.v, &h = m_.h;
        const Expr key_dim = q.dim(0).extent(), value_dim = v.dim(0).extent(), tokens = v.dim(2).extent();
        const Expr real = likely(d < key_dim) && t < tokens;
        const auto channel = [&](auto &tensor) {
            return [&](Expr at) {
                const Expr load = tensor(within(at, key_dim), h, min(t, tokens - 1));
                return cast<float>(guarded(likely(at < key_dim), load));
            };
        };
        m_.queries = Func("queries");
        m_.queries(d, t, h) = feature_map(map, "q_feature", channel(q), d, key_dim, real, {t, h}, &m_.features);
        m_.keys = Func("keys");
        m_.keys(d, t, h) = feature_map(map, "k_feature", channel(k), d, key_dim, real, {t, h}, &m_.features);

        m_.state_tokens = RDom(0, tokens, "token");
        const Expr token = m_.state_tokens;
        const Expr value = cast<float>(guarded(likely(vv < value_dim), v(within(vv, value_dim), h, token)));
        m_.state = Func("state");
        m_.state(vv, d, h) += m_.keys(d, token, h) * value;
        m_.over_keys = RDom(0, key_dim, "key");
        m_.output_sums = Func("output_sums");
        m_.output_sums(vv, t, h) += m_.queries(m_.over_keys, t, h) * m_.state(vv, m_.over_keys, h);
        Expr result = m_.output_sums(vv, t, h);
        if (std::string(map) != "identity") {
            m_.normalizer = Func("normalizer");
            m_.normalizer(d, h) += m_.keys(d, token, h);
            m_.denominators = Func("denominators");
            m_.denominators(t, h) += m_.queries(m_.over_keys, t, h) * m_.normalizer(m_.over_keys, h);
            result = quotient(result, m_.denominators(t, h));
        }
        m_.output = Func("output");
        m_.output(vv, h, t) = narrowed(type, scale * result);
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

    void schedule() { bidirectional_cpu(m_, machine_with(cpu_machine(get_target()), parameters)); }

private:
    Bidirectional m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::BidirectionalGenerator, halation_bidirectional)
