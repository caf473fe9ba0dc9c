// The Halide::Generator behind every GPU kernel of the chunk algorithm: the tensors of a row for a batch of sequences
// (batch.h). The recurrent form has chunks of one token.
#include "../schedules/schedules.h"
#include "barrier_memory.h"
#include "batch.h"
#include "carry_registers.h"
#include "chunk.h"
#include "chunk_ahead.h"
#include "guard.h"
#include "math.h"
#include "recurrence.h"
#include "shared_apart.h"

namespace halation {

using namespace Halide;

class ChunkGpuGenerator : public Generator<ChunkGpuGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "gated_delta"};
    GeneratorParam<Form> form{
        "form", Form::chunkwise, {{"recurrent", Form::recurrent}, {"chunkwise", Form::chunkwise}, {"parallel", Form::parallel}}};
    GeneratorParam<std::string> feature_map{"feature_map", ""};  // empty: the row's default
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};
    GeneratorParam<int> key_dim{"key_dim", 0}, value_dim{"value_dim", 0};  // 0: any

    void configure() {
        const Row &row = row_named(recurrence);
        for (const RowInput &input : row.inputs)
            inputs_[input.name] = add_input<Buffer<>>(input.name, type_of_bits(type_of(input)), rank_in_batch(input.dims));
        initial_state_ = add_input<Buffer<>>("initial_state", Float(32), 4);
        initial_state_bits_ = add_input<Buffer<>>("initial_state_bits", UInt(16), 4);
        if (row.normalized) initial_normalizer_ = add_input<Buffer<>>("initial_normalizer", Float(32), 3);
        sequences_ = add_input<Buffer<>>("sequences", Int(32), 2);
        scale_ = add_input<float>("scale");
        reads_bits_ = add_input<int32_t>("reads_bits");
        writes_bits_ = add_input<int32_t>("writes_bits");
        most_tokens_ = add_input<int32_t>("most_tokens");
        key_head_step_ = add_input<int32_t>("key_head_step");
        key_heads_ = add_input<int32_t>("key_heads");
        o_ = add_output<Buffer<>>("o", type_of_bits(type), 4);
        final_state_ = add_output<Buffer<>>("final_state", Float(32), 4);
        final_state_bits_ = add_output<Buffer<>>("final_state_bits", UInt(16), 4);
        if (row.normalized) final_normalizer_ = add_output<Buffer<>>("final_normalizer", Float(32), 3);
    }

    void generate() {
        const Row &row = row_named(recurrence);
        const GpuMachine &machine = gpu_machine(get_target());
        const Var h("h");
        Batch batch;
        batch.sequences = *sequences_;
        batch.sequence_count = sequences_->dim(1).extent();
        batch.value_heads = initial_state_->dim(2).extent();
        batch.key_head_step = *key_head_step_;
        batch.key_heads = *key_heads_;

        ChunkInputs in;
        in.value_dim = initial_state_->dim(0).extent();
        in.key_dim = max(initial_state_->dim(1).extent(), 1);
        if (key_dim != 0) in.key_dim = static_cast<int>(key_dim);
        if (value_dim != 0) in.value_dim = static_cast<int>(value_dim);
        for (const RowInput &input : row.inputs) {
            auto &buffer = *inputs_.at(input.name);
            in.types[input.name] = type_of(input);
            in.tensors[input.name] = batch.placed(input.name, input.dims, buffer, free_extents(buffer));
        }
        in.initial_state = batch.placed("initial_state", "NGKV", *initial_state_, free_extents(*initial_state_), true);
        in.tokens = batch.tokens(h);
        in.most_tokens = *most_tokens_;
        in.has_initial_state = batch.read_row(h) >= 0;
        in.wants_final_state = batch.write_row(h) >= 0;
        const Expr row_written = max(batch.write_row(h), 0);
        in.final_place = {batch.value_head(h), row_written};
        in.feature_map = std::string(feature_map).empty() ? row.default_feature_map : std::string(feature_map);
        if (row.normalized)
            in.initial_normalizer =
                batch.placed("initial_normalizer", "NGK", *initial_normalizer_, free_extents(*initial_normalizer_), true);
        in.scale = *scale_;
        in.output_type = Float(32);
        in.solve_type = machine.has_double ? Float(64) : Float(32);
        in.chunk = form == Form::recurrent ? 1 : machine.chunk;
        in.one_pass = false;
        in.copies_padding = true;
        in.token_in_registers = form == Form::recurrent;
        in.normalizer_chunks = form == Form::recurrent ? 1 : machine.normalizer_chunks;
        in.key_unroll = in.key_lanes = machine.key_rows;
        m_ = make_chunk(row, in);

        placed_ = batch.placed_output(m_.output, type, in.value_dim, in.most_tokens);
        *o_ = placed_;
        const auto undefined = [](const std::string &name, const std::vector<Var> &point, Type type = Float(32)) {
            Func f(name);
            f(point) = undef(type);
            return f;
        };
        final_state_func_ = undefined("final_state", {v_, Var("d"), g_, n_});
        *final_state_ = final_state_func_;
        final_state_bits_func_ = undefined("final_state_bits", {v_, Var("d"), g_, n_}, UInt(16));
        *final_state_bits_ = final_state_bits_func_;
        std::vector<GeneratorOutput<Buffer<>> *> outputs = {o_, final_state_, final_state_bits_};
        if (row.normalized) {
            final_normalizer_func_ = undefined("final_normalizer", {Var("d"), g_, n_});
            *final_normalizer_ = final_normalizer_func_;
            outputs.push_back(final_normalizer_);
        }
        for (auto *output : outputs) any_layout(*output);
        any_layout(*initial_state_bits_);

        CarryRegistersNames names;
        names.state_before = m_.state_before.name();
        names.state_after = m_.state_after.name();
        names.final_state_copy = m_.final_state_copy.name();
        names.copies[m_.final_state_copy.name()] = final_state_func_.name();
        names.copies[placed_.name()] = placed_.name();
        if (row.normalized) {
            const Func &copied = form == Form::recurrent ? m_.normalizer : m_.final_normalizer_copy;
            names.copies[copied.name()] = final_normalizer_func_.name();
        }
        names.chunk_loop = m_.chunk_loop.name();
        names.bits = {"initial_state", "initial_state_bits", final_state_func_.name(), final_state_bits_func_.name(),
                      *reads_bits_,    *writes_bits_};
        get_pipeline().add_custom_lowering_pass(make_guard_pass());
        get_pipeline().add_custom_lowering_pass(make_carry_registers_pass(names));
    }

    void schedule() {
        chunk_gpu(m_, placed_, gpu_machine(get_target()));
        ChunkAheadNames ahead{m_.chunk_loop.name(), {}};
        for (const Func &f : m_.staged) ahead.staged.push_back(f.name());
        std::vector<std::string> apart;
        for (const Func &f : m_.apart) apart.push_back(f.name());
        get_pipeline().add_custom_lowering_pass(make_shared_apart_pass(apart));
        get_pipeline().add_custom_lowering_pass(make_chunk_ahead_pass(ahead));
        add_barrier_passes(get_pipeline());
    }

private:
    Type type_of(const RowInput &input) const { return input.is_gate ? gate_type : type; }

    Var v_{"v"}, g_{"g"}, n_{"n"};
    std::map<std::string, GeneratorInput<Buffer<>> *> inputs_;
    GeneratorInput<Buffer<>> *initial_state_ = nullptr, *initial_state_bits_ = nullptr, *initial_normalizer_ = nullptr,
                             *sequences_ = nullptr;
    GeneratorInput<float> *scale_ = nullptr;
    GeneratorInput<int32_t> *reads_bits_ = nullptr, *writes_bits_ = nullptr, *most_tokens_ = nullptr, *key_head_step_ = nullptr,
                            *key_heads_ = nullptr;
    GeneratorOutput<Buffer<>> *o_ = nullptr, *final_state_ = nullptr, *final_state_bits_ = nullptr, *final_normalizer_ = nullptr;
    Func placed_, final_state_func_, final_state_bits_func_, final_normalizer_func_;
    Chunk m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::ChunkGpuGenerator, halation_chunk_gpu)
