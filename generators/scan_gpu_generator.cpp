// The Halide::Generators behind the GPU kernels of ssm and hgrn: the tensors of a batch of sequences (batch.h), which
// scan_chunk.h goes through. The recurrent form has chunks of one token.
#include "../schedules/schedules.h"
#include "barrier_memory.h"
#include "batch.h"
#include "carry_registers.h"
#include "chunk_ahead.h"
#include "guard.h"
#include "math.h"
#include "needless_barriers.h"
#include "recurrence.h"
#include "scan_chunk.h"
#include "sequence_ahead.h"
#include "shared_apart.h"
#include "shared_vectors.h"
#include "thread_registers.h"

namespace halation {

using namespace Halide;

class ScanGpuGenerator : public Generator<ScanGpuGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "ssm"};
    GeneratorParam<Form> form{"form", Form::chunkwise, {{"recurrent", Form::recurrent}, {"chunkwise", Form::chunkwise}}};
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};
    GeneratorParam<int> key_dim{"key_dim", 0};  // N; 0: any

    void configure() {
        const Recurrence row = recurrence_named(recurrence);
        for (const RowInput &input : row.inputs)
            inputs_[input.name] = add_input<Buffer<>>(input.name, type_of_bits(type_of(input)), rank_in_batch(input.dims));
        for (const std::string &name : scan_row(recurrence).asked_for)
            scalars_["has_" + name] = add_input<int32_t>("has_" + name);
        initial_state_ = add_input<Buffer<>>("initial_state", Float(32), rank_in_batch(row.state_dims));
        initial_state_bits_ = add_input<Buffer<>>("initial_state_bits", UInt(16), rank_in_batch(row.state_dims));
        sequences_ = add_input<Buffer<>>("sequences", Int(32), 2);
        scale_ = add_input<float>("scale");
        reads_bits_ = add_input<int32_t>("reads_bits");
        writes_bits_ = add_input<int32_t>("writes_bits");
        most_tokens_ = add_input<int32_t>("most_tokens");
        o_ = add_output<Buffer<>>("o", type_of_bits(type), rank_in_batch(row.output_dims));
        final_state_ = add_output<Buffer<>>("final_state", Float(32), rank_in_batch(row.state_dims));
        final_state_bits_ = add_output<Buffer<>>("final_state_bits", UInt(16), rank_in_batch(row.state_dims));
    }

    void generate() {
        const Recurrence row = recurrence_named(recurrence);
        const GpuMachine &machine = gpu_machine(get_target());
        const Var h("h");
        Batch batch;
        batch.sequences = *sequences_;
        batch.sequence_count = sequences_->dim(1).extent();

        ScanChunkInputs in;
        in.inputs = row.inputs;
        for (const RowInput &input : row.inputs) {
            auto &buffer = *inputs_.at(input.name);
            in.types[input.name] = type_of(input);
            in.tensors[input.name] = batch.placed(input.name, input.dims, buffer, free_extents(buffer));
        }
        in.initial_state = batch.placed("initial_state", row.state_dims, *initial_state_, free_extents(*initial_state_), true);
        in.scalars["scale"] = *scale_;
        for (const auto &[name, scalar] : scalars_) in.scalars[name] = *scalar;
        in.channels = initial_state_->dim(0).extent();
        if (initial_state_->dimensions() == 3) in.elements = max(initial_state_->dim(1).extent(), 1);
        if (key_dim != 0) in.elements = static_cast<int>(key_dim);
        in.tokens = batch.tokens(h);
        in.has_initial_state = batch.read_row(h) >= 0;
        in.wants_final_state = batch.write_row(h) >= 0;
        in.final_row = max(batch.write_row(h), 0);
        const bool decode = form == Form::recurrent;
        tile_ = in.elements.defined() ? machine.ssm(decode, key_dim != 0) : machine.hgrn(decode);
        in.chunk = tile_.chunk;
        in.rows = tile_.rows;
        in.sequences = batch.sequence_count;
        m_ = make_scan_chunk(scan_row(recurrence), in);

        placed_ = batch.placed_output(m_.output, type, in.channels, *most_tokens_);
        *o_ = placed_;
        const std::vector<Var> of_state = in.elements.defined() ? std::vector<Var>{v_, Var("d"), n_} : std::vector<Var>{v_, n_};
        final_state_func_ = Func("final_state");
        final_state_func_(of_state) = undef<float>();
        *final_state_ = final_state_func_;
        final_state_bits_func_ = Func("final_state_bits");
        final_state_bits_func_(of_state) = undef<uint16_t>();
        *final_state_bits_ = final_state_bits_func_;
        for (auto *output : {o_, final_state_, final_state_bits_}) any_layout(*output);
        any_layout(*initial_state_bits_);

        CarryRegistersNames names;
        names.state_before = m_.state_before.name();
        names.state_after = m_.state_after.name();
        names.final_state_copy = m_.final_state_copy.name();
        names.copies[m_.final_state_copy.name()] = final_state_func_.name();
        names.copies[placed_.name()] = placed_.name();
        names.chunk_loop = m_.chunk_loop.name();
        names.bits = {"initial_state", "initial_state_bits", final_state_func_.name(), final_state_bits_func_.name(),
                      *reads_bits_,    *writes_bits_};
        get_pipeline().add_custom_lowering_pass(make_guard_pass());
        get_pipeline().add_custom_lowering_pass(make_carry_registers_pass(names));
    }

    void schedule() {
        scan_gpu(m_, placed_, tile_, gpu_machine(get_target()));
        std::vector<std::string> apart, kept = {m_.scanned.name()};
        if (m_.rates.defined()) kept.push_back(m_.rates.name());
        for (const Func &f : m_.kept) kept.push_back(f.name());
        for (const Func &f : m_.apart) apart.push_back(f.name());
        ChunkAheadNames ahead{m_.chunk_loop.name(), {m_.channel_inputs.name()}};
        if (m_.element_inputs.defined()) ahead.staged.push_back(m_.element_inputs.name());
        // Most sequences have one token then. Of those that are asked for ahead, the first chunk is not in the loop over chunks.
        using Next = ChunkAheadNames::Next;
        if (form == Form::recurrent) ahead.next = tile_.sequences_ahead ? Next::never : Next::if_any;
        get_pipeline().add_custom_lowering_pass(make_thread_registers_pass(kept));
        get_pipeline().add_custom_lowering_pass(make_shared_apart_pass(apart));
        get_pipeline().add_custom_lowering_pass(make_chunk_ahead_pass(ahead));
        get_pipeline().add_custom_lowering_pass(make_needless_barriers_pass());
        if (tile_.sequences_ahead)
            get_pipeline().add_custom_lowering_pass(
                make_sequence_ahead_pass({m_.sequence_loop.name(), m_.chunk_loop.name(), "sequences"}));
        // Of an API that has one array, whose beginning is a multiple of 16 bytes.
        if (gpu_machine(get_target()).one_shared_array)
            get_pipeline().add_custom_lowering_pass(make_shared_vectors_pass(m_.scanned.name()));
        get_pipeline().add_custom_lowering_pass(make_barrier_memory_pass());
    }

private:
    Type type_of(const RowInput &input) const { return input.is_gate ? gate_type : type; }

    Var v_{"v"}, n_{"n"};
    std::map<std::string, GeneratorInput<Buffer<>> *> inputs_;
    std::map<std::string, GeneratorInput<int32_t> *> scalars_;
    GeneratorInput<Buffer<>> *initial_state_ = nullptr, *initial_state_bits_ = nullptr, *sequences_ = nullptr;
    GeneratorInput<float> *scale_ = nullptr;
    GeneratorInput<int32_t> *reads_bits_ = nullptr, *writes_bits_ = nullptr, *most_tokens_ = nullptr;
    GeneratorOutput<Buffer<>> *o_ = nullptr, *final_state_ = nullptr, *final_state_bits_ = nullptr;
    Func placed_, final_state_func_, final_state_bits_func_;
    ScanChunk m_;
    ScanTile tile_{};
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::ScanGpuGenerator, halation_ssm_gpu)
HALIDE_REGISTER_GENERATOR(halation::ScanGpuGenerator, halation_hgrn_gpu)
