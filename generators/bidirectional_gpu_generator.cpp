// The Halide::Generator behind the GPU kernels of bidirectional: the tensors of a batch of sequences (batch.h).
#include "../schedules/schedules.h"
#include "barrier_memory.h"
#include "batch.h"
#include "carry_registers.h"
#include "chunk_ahead.h"
#include "guard.h"
#include "math.h"
#include "recurrence.h"
#include "skip_turns.h"
#include "thread_registers.h"

namespace halation {

using namespace Halide;

class BidirectionalGpuGenerator : public Generator<BidirectionalGpuGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "bidirectional"};
    GeneratorParam<Form> form{"form", Form::parallel, {{"parallel", Form::parallel}}};
    GeneratorParam<std::string> map{"feature_map", "identity"};
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};

    Input<Buffer<void, 4>> q{"q"}, k{"k"}, v{"v"};  // (K, H, T, B), (K, H, T, B), (V, G, T, B)
    Input<Buffer<int32_t, 2>> sequences{"sequences"};
    Input<float> scale{"scale"};
    Input<int32_t> most_tokens{"most_tokens"}, key_head_step{"key_head_step"}, key_heads{"key_heads"};
    Output<Buffer<void, 4>> o{"o"};  // (V, G, T, sequences)

    void configure() {
        for (auto *buffer : {&q, &k, &v}) buffer->set_type(type_of_bits(type));
        o.set_type(type_of_bits(type));
    }

    void generate() {
        const GpuMachine &machine = gpu_machine(get_target());
        const Var h("h");
        Batch batch;
        batch.sequences = sequences;
        batch.sequence_count = sequences.dim(1).extent();
        batch.value_heads = v.dim(1).extent();
        batch.key_head_step = key_head_step;
        batch.key_heads = key_heads;
        any_layout(sequences);

        const TokenParts parts{machine.product.slice, HALATION_PART_TOKENS, HALATION_PARTS, most_tokens};
        BidirectionalInputs in;
        in.q = batch.placed("q", "BTHK", q, free_extents(q));
        in.k = batch.placed("k", "BTHK", k, free_extents(k));
        in.v = batch.placed("v", "BTGV", v, free_extents(v));
        in.type = type;
        in.output_type = Float(32);
        in.key_dim = q.dim(0).extent();
        in.value_dim = v.dim(0).extent();
        in.tokens = batch.tokens(h);
        in.feature_map = map;
        in.scale = scale;
        in.parts = &parts;
        in.key_slice = machine.product.slice;
        m_ = make_bidirectional(in);

        placed_ = batch.placed_output(m_.output, type, in.value_dim, most_tokens);
        o = placed_;
        any_layout(o);

        CarryRegistersNames names;  // no state, but outputs that lie where a sequence does
        names.copies[placed_.name()] = placed_.name();
        get_pipeline().add_custom_lowering_pass(make_guard_pass());
        get_pipeline().add_custom_lowering_pass(make_carry_registers_pass(names));
        get_pipeline().add_custom_lowering_pass(make_thread_registers_pass({m_.state_parts.name(), m_.output_sums.name()}));
    }

    void schedule() {
        bidirectional_gpu(m_, placed_, gpu_machine(get_target()));
        get_pipeline().add_custom_lowering_pass(make_skip_turns_pass(m_.skipped));
        for (const auto &[loop, staged] : m_.ahead)
            get_pipeline().add_custom_lowering_pass(make_chunk_ahead_pass({loop, staged}));
        add_barrier_passes(get_pipeline());
    }

private:
    Func placed_;
    Bidirectional m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::BidirectionalGpuGenerator, halation_bidirectional_gpu)
