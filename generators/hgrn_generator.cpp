// hgrn: S_t = exp(g_t) S_{t-1} + v_t for every channel, o_t = scale S_t.
#include "../schedules/schedules.h"
#include "carry.h"
#include "guard.h"
#include "math.h"
#include "recurrence.h"
#include "scan.h"

namespace halation {

using namespace Halide;

class HgrnGenerator : public Generator<HgrnGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "hgrn"};
    GeneratorParam<Form> form{"form", Form::chunkwise, {{"recurrent", Form::recurrent}, {"chunkwise", Form::chunkwise}}};
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};
    GeneratorParam<std::string> parameters{"parameters", ""};  // of the schedule, see parameters.h

    Input<Buffer<void, 2>> values{"v"};                      // (V, T)
    Input<Buffer<void, 2>> g{"g"};                           // (V, T)
    Input<Buffer<float, 1>> initial_state{"initial_state"};  // (V)
    Input<float> scale{"scale"};
    Output<Buffer<void, 2>> o{"o"};
    Output<Buffer<float, 1>> final_state{"final_state"};

    void configure() {
        values.set_type(type);
        g.set_type(gate_type);
        o.set_type(type);
    }

    void generate() {
        const Var &v = m_.v, &n = m_.n, &c = m_.c, &t = m_.t;
        const Expr channels = initial_state.dim(0).extent(), tokens = values.dim(1).extent();
        const Expr channel = within(v, channels), real = likely(v < channels), token = min(c, tokens - 1);
        m_.elements = 1;
        m_.state_before = Func("state_before");
        m_.state_before(v, n, c) = mark_state_before(guarded(real, initial_state(channel)), v, n);
        const ScanRow &row = scan_row(recurrence);
        const Token of_token([&](const std::string &name) -> Expr {
            if (name == "scale") return scale;
            return cast<float>(guarded(real, name == "g" ? g(channel, token) : values(channel, token)));
        });
        m_.state_after = Func("state_after");
        m_.state_after(v, n, c) =
            mark_state_after(row.decay(of_token) * m_.state_before(v, n, c) + row.write(of_token), v, n, {});
        m_.final_state_copy = Func("final_state_copy");
        m_.final_state_copy(v, n, c) = mark_copy_out(m_.state_after(v, n, c), {v}, v < channels);
        m_.over_elements = RDom(0, 1);
        m_.reads = Func("reads");
        m_.reads(v, c) = row.read(of_token, m_.state_after(v, 0, c));
        m_.output = Func("output");
        m_.output(v, t) = in_order(narrowed(type, row.output(of_token, m_.reads(v, t))), {m_.final_state_copy(v, 0, t)});
        m_.final_state = Func("final_state");
        m_.final_state(v) = undef<float>();
        o = m_.output;
        final_state = m_.final_state;

        o.dim(0).set_bounds(0, channels);
        o.dim(1).set_bounds(0, tokens);
        final_state.dim(0).set_bounds(0, channels);
        for (int dim = 0; dim < 2; dim++) values.dim(dim).set_min(0), g.dim(dim).set_min(0);
        initial_state.dim(0).set_min(0);
        m_.output.bound(v, 0, channels).bound(t, 0, tokens);
        m_.final_state.bound(v, 0, channels);
        resolve_markers(get_pipeline(), m_);
    }

    void schedule() { scan_cpu(m_, machine_with(cpu_machine(get_target()), parameters)); }

private:
    Scan m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::HgrnGenerator, halation_hgrn)
