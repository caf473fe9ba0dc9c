#include "../schedules/schedules.h"
#include "guard.h"
#include "masks.h"
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
        BidirectionalInputs in;
        in.q = q;
        in.k = k;
        in.v = v;
        in.type = in.output_type = type;
        in.key_dim = q.dim(0).extent();
        in.value_dim = v.dim(0).extent();
        in.tokens = v.dim(2).extent();
        in.feature_map = map;
        in.scale = scale;
        m_ = make_bidirectional(in);
        o = m_.output;

        for (auto *buffer : {&q, &k, &v}) {
            for (int dim = 0; dim < 3; dim++) buffer->dim(dim).set_min(0);
        }
        o.dim(0).set_bounds(0, in.value_dim);
        o.dim(1).set_min(0);
        o.dim(2).set_bounds(0, in.tokens);
        get_pipeline().add_custom_lowering_pass(make_guard_pass());
        get_pipeline().add_custom_lowering_pass(make_masks_pass());
        m_.output.bound(m_.v, 0, in.value_dim).bound(m_.t, 0, in.tokens);
    }

    void schedule() { bidirectional_cpu(m_, machine_with(cpu_machine(get_target()), parameters)); }

private:
    Bidirectional m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::BidirectionalGenerator, halation_bidirectional)
