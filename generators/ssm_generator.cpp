// ssm, the selective state space of Mamba-1 (arXiv:2312.00752): for channel v with N state elements,
// S_t[n] = exp(dt A[n]) S_{t-1}[n] + B_t[n] dt x, o_t = (scale sum_n C_t[n] S_t[n] + D x) silu(z).
#include "../schedules/schedules.h"
#include "carry.h"
#include "guard.h"
#include "math.h"
#include "recurrence.h"
#include "scan.h"

namespace halation {

using namespace Halide;

class SsmGenerator : public Generator<SsmGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "ssm"};
    GeneratorParam<Form> form{"form", Form::chunkwise, {{"recurrent", Form::recurrent}, {"chunkwise", Form::chunkwise}}};
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};
    GeneratorParam<std::string> parameters{"parameters", ""};  // of the schedule, see parameters.h

    Input<Buffer<void, 2>> x{"x"}, dt{"dt"};                 // (V, T)
    Input<Buffer<void, 2>> A{"A"};                           // (N, V)
    Input<Buffer<void, 2>> B{"B"}, C{"C"};                   // (N, T)
    Input<Buffer<void, 1>> D{"D"};                           // (V)
    Input<Buffer<void, 2>> z{"z"};                           // (V, T)
    Input<int32_t> has_z{"has_z"};                           // 0: no gate
    Input<Buffer<float, 2>> initial_state{"initial_state"};  // (V, N)
    Input<float> scale{"scale"};
    Output<Buffer<void, 2>> o{"o"};
    Output<Buffer<float, 2>> final_state{"final_state"};

    void configure() {
        x.set_type(type);
        z.set_type(type);
        o.set_type(type);
        for (auto *gate : {&dt, &A, &B, &C}) gate->set_type(gate_type);
        D.set_type(gate_type);
    }

    void generate() {
        const Var &v = m_.v, &n = m_.n, &c = m_.c, &t = m_.t;
        const Expr channels = initial_state.dim(0).extent(), tokens = x.dim(1).extent();
        const Expr channel = within(v, channels), real = likely(v < channels), token = min(c, tokens - 1);
        m_.elements = initial_state.dim(1).extent();
        m_.rates = Func("rates");
        m_.rates(v, n) = cast<float>(guarded(real, A(n, channel)));
        m_.state_before = Func("state_before");
        m_.state_before(v, n, c) = mark_state_before(guarded(real, initial_state(channel, n)), v, n);

        const ScanRow &row = scan_row(recurrence);
        const auto at = [&](const Expr &element, const Expr &of_token) {
            return Token([=](const std::string &name) -> Expr {
                const auto of_channel = [&](const Expr &load) { return cast<float>(guarded(real, load)); };
                if (name == "x") return of_channel(x(channel, of_token));
                if (name == "dt") return of_channel(dt(channel, of_token));
                if (name == "A") return m_.rates(v, element);
                if (name == "B") return cast<float>(B(element, of_token));
                if (name == "C") return cast<float>(C(element, of_token));
                if (name == "D") return of_channel(D(channel));
                if (name == "z") return of_channel(z(channel, of_token));
                return name == "scale" ? Expr(scale) : Expr(has_z);
            });
        };
        m_.state_after = Func("state_after");
        m_.state_after(v, n, c) =
            mark_state_after(row.decay(at(n, token)) * m_.state_before(v, n, c) + row.write(at(n, token)), v, n, {});
        m_.final_state_copy = Func("final_state_copy");
        m_.final_state_copy(v, n, c) = mark_copy_out(m_.state_after(v, n, c), {v, n}, v < channels);

        m_.over_elements = RDom(0, m_.elements, "element");
        const Expr element = m_.over_elements;
        m_.reads = Func("reads");
        m_.reads(v, c) += row.read(at(element, token), m_.state_after(v, element, c));
        const Expr output = row.output(at(Expr(), min(t, tokens - 1)), m_.reads(v, t));
        m_.output = Func("output");
        m_.output(v, t) =
            in_order(narrowed(type, output), {m_.final_state_copy(v, 0, t), m_.final_state_copy(v, m_.elements - 1, t)});
        m_.final_state = Func("final_state");
        m_.final_state(v, n) = undef<float>();
        o = m_.output;
        final_state = m_.final_state;

        o.dim(0).set_bounds(0, channels);
        o.dim(1).set_bounds(0, tokens);
        final_state.dim(0).set_bounds(0, channels);
        final_state.dim(1).set_bounds(0, m_.elements);
        for (auto *buffer : {&x, &dt, &A, &B, &C, &z}) {
            for (int dim = 0; dim < 2; dim++) buffer->dim(dim).set_min(0);
        }
        D.dim(0).set_min(0);
        for (int dim = 0; dim < 2; dim++) initial_state.dim(dim).set_min(0);
        m_.output.bound(v, 0, channels).bound(t, 0, tokens);
        m_.final_state.bound(v, 0, channels).bound(n, 0, m_.elements);
        resolve_markers(get_pipeline(), m_);
    }

    void schedule() { scan_cpu(m_, machine_with(cpu_machine(get_target()), parameters)); }

private:
    Scan m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::SsmGenerator, halation_ssm)
