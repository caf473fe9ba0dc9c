// The Halide::Generator behind every kernel of the chunk algorithm: declares the tensors of a row, picks the schedule
// of a form.
#include "../schedules/rows_ahead.h"
#include "../schedules/schedules.h"
#include "carry.h"
#include "chunk.h"
#include "guard.h"
#include "masks.h"
#include "recurrence.h"

namespace halation {

using namespace Halide;

class ChunkGenerator : public Generator<ChunkGenerator> {
public:
    GeneratorParam<std::string> recurrence{"recurrence", "gated_delta"};
    GeneratorParam<Form> form{
        "form", Form::chunkwise, {{"recurrent", Form::recurrent}, {"chunkwise", Form::chunkwise}, {"parallel", Form::parallel}}};
    GeneratorParam<std::string> feature_map{"feature_map", ""};  // empty: the row's default
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<Type> gate_type{"gate_type", Float(32)};
    GeneratorParam<int> key_dim{"key_dim", 0}, value_dim{"value_dim", 0};  // 0: any
    GeneratorParam<std::string> schedule_name{"schedule", ""};             // empty: Halation's for the form
    GeneratorParam<std::string> parameters{"parameters", ""};              // of the schedule, see parameters.h

    void configure() {
        const Row &row = row_named(recurrence);
        for (const RowInput &input : row.inputs) {
            const int rank = static_cast<int>(kernel_dims(input.dims).size());
            inputs_[input.name] = add_input<Buffer<>>(input.name, input.is_gate ? gate_type : type, rank);
        }
        initial_state_ = add_input<Buffer<>>("initial_state", Float(32), 3);
        if (row.normalized) initial_normalizer_ = add_input<Buffer<>>("initial_normalizer", Float(32), 2);
        scale_ = add_input<float>("scale");
        o_ = add_output<Buffer<>>("o", type, 3);
        final_state_ = add_output<Buffer<>>("final_state", Float(32), 3);
        if (row.normalized) final_normalizer_ = add_output<Buffer<>>("final_normalizer", Float(32), 2);
    }

    void generate() {
        const Row &row = row_named(recurrence);
        const CpuMachine machine = machine_with(cpu_machine(get_target()), parameters, schedule_name);
        ChunkInputs in;
        for (const RowInput &input : row.inputs) {
            auto &buffer = *inputs_.at(input.name);
            for (int dim = 0; dim < buffer.dimensions(); dim++) buffer.dim(dim).set_min(0);
            const size_t time = kernel_dims(input.dims).find('T');
            if (time != std::string::npos && !in.tokens.defined()) in.tokens = buffer.dim(static_cast<int>(time)).extent();
            // One value for all channels has stride 0.
            if (input.dims.back() == ')') {
                buffer.dim(0).set_stride(Expr());
                const Expr one = buffer.dim(0).stride() == 0;
                in.one_beta_per_head = in.one_beta_per_head.defined() ? in.one_beta_per_head && one : one;
            }
            in.tensors[input.name] = buffer;
        }
        for (int dim = 0; dim < 3; dim++) initial_state_->dim(dim).set_min(0);
        if (form == Form::recurrent) in.tokens = 1;
        in.initial_state = *initial_state_;
        in.value_dim = initial_state_->dim(0).extent();
        in.key_dim = initial_state_->dim(1).extent();
        if (key_dim != 0) in.key_dim = static_cast<int>(key_dim);
        // A call may see a part of the value channels, but a whole number of tiles.
        if (value_dim != 0) {
            const int tile = machine.value_tile(form == Form::recurrent);
            in.value_dim = in.value_dim / tile * tile;
        }
        in.feature_map = std::string(feature_map).empty() ? row.default_feature_map : std::string(feature_map);
        if (row.normalized) {
            for (int dim = 0; dim < 2; dim++) initial_normalizer_->dim(dim).set_min(0);
            in.initial_normalizer = *initial_normalizer_;
        }
        in.scale = *scale_;
        in.output_type = type;
        in.chunk = form == Form::recurrent ? 1 : machine.chunk;
        in.key_unroll = form == Form::recurrent ? machine.decode_key_unroll : machine.key_unroll;
        in.key_lanes = machine.lanes;
        if (form == Form::parallel) in.chunk = machine.parallel_block, in.key_unroll = 1;
        m_ = form == Form::parallel ? make_parallel(row, in) : make_chunk(row, in);

        *o_ = m_.output;
        *final_state_ = m_.final_state;
        if (row.normalized) {
            *final_normalizer_ = m_.final_normalizer;
            final_normalizer_->dim(0).set_bounds(0, in.key_dim);
            final_normalizer_->dim(1).set_bounds(0, o_->dim(1).extent());
            m_.final_normalizer.bound(m_.d, 0, in.key_dim);
        }
        const Expr heads = o_->dim(1).extent();
        for (int dim = 0; dim < 3; dim++) o_->dim(dim).set_min(0), final_state_->dim(dim).set_min(0);
        o_->dim(0).set_extent(in.value_dim);
        o_->dim(2).set_extent(in.tokens);
        final_state_->dim(0).set_extent(in.value_dim);
        final_state_->dim(1).set_extent(in.key_dim);
        final_state_->dim(2).set_extent(heads);
        m_.output.bound(m_.v, 0, in.value_dim).bound(m_.t, 0, in.tokens);
        m_.final_state.bound(m_.v, 0, in.value_dim).bound(m_.d, 0, in.key_dim);
        get_pipeline().add_custom_lowering_pass(make_guard_pass());
        if (form != Form::parallel) carry();
        get_pipeline().add_custom_lowering_pass(make_masks_pass());
        if (form == Form::chunkwise) ask_for_rows();
    }

    void schedule() {
        const CpuMachine machine = machine_with(cpu_machine(get_target()), parameters, schedule_name);
        schedule_of_form()(m_, machine);
    }

private:
    ChunkSchedule schedule_of_form() {
        if (!std::string(schedule_name).empty()) return schedule_named(schedule_name).schedule;
        return form == Form::recurrent ? recurrent_cpu : form == Form::chunkwise ? chunkwise_cpu : parallel_cpu;
    }

    void carry() {
        const Row &row = row_named(recurrence);
        CarryNames names;
        names.state_before = m_.state_before.name();
        names.state_after = m_.state_after.name();
        names.final_state_copy = m_.final_state_copy.name();
        names.copies[m_.final_state_copy.name()] = m_.final_state.name();
        if (row.normalized) names.copies[m_.final_normalizer_copy.name()] = m_.final_normalizer.name();
        if (m_.one_pass) names.state_reads = m_.state_reads.name(), names.state_taken = m_.state_taken.name();
        names.chunk_loop = form == Form::chunkwise ? m_.chunk_loop.name() : "";
        get_pipeline().add_custom_lowering_pass(make_carry_pass(names));
    }

    void ask_for_rows() {
        RowsAhead rows{{}, m_.h.name(), m_.tile_loop.name(), m_.chunk_loop.name(), m_.chunk};
        for (const RowInput &input : row_named(recurrence).inputs)
            rows.tensors.push_back({input.name, kernel_dims(input.dims), Type(input.is_gate ? gate_type : type).bytes()});
        rows.tensors.push_back({m_.output.name(), "VGT", Type(type).bytes()});
        rows.tensors.push_back({"initial_state", "VKG", 4});
        get_pipeline().add_custom_lowering_pass(make_rows_ahead_pass(rows));
    }

    std::map<std::string, GeneratorInput<Buffer<>> *> inputs_;
    GeneratorInput<Buffer<>> *initial_state_ = nullptr, *initial_normalizer_ = nullptr;
    GeneratorInput<float> *scale_ = nullptr;
    GeneratorOutput<Buffer<>> *o_ = nullptr, *final_state_ = nullptr, *final_normalizer_ = nullptr;
    Chunk m_;
};

}  // namespace halation

HALIDE_REGISTER_GENERATOR(halation::ChunkGenerator, halation_chunk)
