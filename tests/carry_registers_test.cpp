// The passes that keep a state and other Funcs in the registers of a GPU's threads (generators/carry_registers.h,
// thread_registers.h): what they make of a small pipeline, and what they refuse; and how often that of chunk_ahead.h loads. That
// kernels made with them are right, kernels_device_test says.
#include "generators/carry.h"
#include "generators/carry_registers.h"
#include "generators/lowered_names.h"
#include "generators/thread_registers.h"
#include "schedules/machines.h"

#include <catch2/catch.hpp>

#include <functional>
#include <map>
#include <string>

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int chunk = 2, tile = 4;

// S = 2 S + t at every token, o = S: two tokens a chunk, of which `steps` keeps the states.
struct Small {
    Var v{"v"}, i{"i"}, c{"c"}, t{"t"}, vo{"vo"}, vi{"vi"}, ti{"ti"}, chunk_loop{"chunk_loop"};
    ImageParam initial{Float(32), 1, "initial"};
    Func before{"before"}, steps{"steps"}, reads{"reads"}, after{"after"}, copy{"copy"}, output{"output"},
        final_state{"final_state"};
    Param<int> tokens{"tokens"};
    const Expr V = initial.dim(0).extent();
    RDom token{0, chunk, "token"};

    // `read_at`: the channel of `steps` that what channel v reads comes from. `is_last`: of chunk c and channel v, whether the
    // state is copied out.
    explicit Small(
        const std::function<Expr(Expr)> &read_at = [](Expr channel) { return channel; },
        const std::function<Expr(const Small &)> &is_last =
            [](const Small &s) { return halation::mark_last_chunk(s.c, s.tokens / chunk - 1); }) {
        initial.dim(0).set_min(0);
        before(v, c) = halation::mark_state_before(initial(v), v, 0);
        steps(v, i, c) = undef<float>();
        const Expr last = select(token == 0, before(v, c), steps(v, max(token - 1, 0), c));
        steps(v, token, c) = 2.0f * last + cast<float>(c * chunk + token);
        reads(v, i, c) = steps(read_at(v), i, c);
        after(v, c) = halation::mark_state_after(steps(v, chunk - 1, c), v, 0, {});
        copy(v, c) = halation::mark_copy_out(after(v, c), {v}, v < V && is_last(*this));
        output(v, t) = halation::mark_copy_out(halation::in_order(reads(v, t % chunk, t / chunk), {copy(v, t / chunk)}), {v, t},
                                               const_true());
        final_state(v) = undef<float>();
    }

    void schedule() {
        for (int dim : {0, 1}) output.output_buffer().dim(dim).set_min(0);
        output.bound(v, 0, V)
            .bound(t, 0, tokens)
            .split(v, vo, vi, tile, TailStrategy::GuardWithIf)
            .split(t, chunk_loop, ti, chunk, TailStrategy::GuardWithIf)
            .reorder(vi, ti, chunk_loop, vo)
            .never_partition_all()
            .gpu_blocks(vo)
            .gpu_threads(vi, ti);
        for (Func f : {before, after, copy, steps})
            f.compute_at(output, chunk_loop).store_in(MemoryType::Stack).bound_extent(v, tile).gpu_threads(v);
        for (Func f : {before, after}) f.store_at(output, vo).fold_storage(c, 1);
        steps.bound(i, 0, chunk).update().reorder(token.x, v).unroll(token.x).gpu_threads(v);
        for (Func f : {steps, copy}) f.bound_extent(c, 1);
        reads.compute_at(output, chunk_loop)
            .store_in(MemoryType::GPUShared)
            .bound(i, 0, chunk)
            .bound_extent(v, tile)
            .reorder(i, v)
            .unroll(i)
            .gpu_threads(v);
    }

    halation::CarryRegistersNames names(const halation::StateBits &bits) const {
        halation::CarryRegistersNames names;
        names.bits = bits;
        names.state_before = before.name();
        names.state_after = after.name();
        names.final_state_copy = copy.name();
        names.copies[copy.name()] = final_state.name();
        names.copies[output.name()] = output.name();
        names.chunk_loop = chunk_loop.name();
        return names;
    }
};

// The sizes of the allocations in registers, as they are after all passes.
class Registers : public IRMutator {
public:
    explicit Registers(std::map<std::string, int64_t> *sizes) : sizes_(sizes) {}

private:
    using IRMutator::visit;
    std::map<std::string, int64_t> *const sizes_;
    Stmt visit(const Allocate *op) override {
        if (op->memory_type == MemoryType::Register) (*sizes_)[op->name] = op->constant_allocation_size();
        return IRMutator::visit(op);
    }
};

std::map<std::string, int64_t> compiled(Small &small, const halation::StateBits &bits = {}) {
    std::map<std::string, int64_t> sizes;
    Pipeline both({small.output, small.final_state});
    both.add_custom_lowering_pass(halation::make_carry_registers_pass(small.names(bits)));
    both.add_custom_lowering_pass(halation::make_thread_registers_pass({small.steps.name()}));
    both.add_custom_lowering_pass(new Registers(&sizes));
    both.compile_to_module({small.initial, small.tokens}, "small", Target("x86-64-linux-opencl-no_runtime"));
    return sizes;
}

std::string refusal(Small &small, const halation::StateBits &bits = {}) {
    try {
        compiled(small, bits);
    } catch (const CompileError &error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("carry in registers: an array a thread of the state, one of every other Func that is kept") {
    Small small;
    small.schedule();
    int64_t states = 0, steps = 0;
    for (const auto &[name, size] : compiled(small)) {
        if (halation::is_of_func(name, small.before.name())) states += size;
        if (halation::is_of_func(name, small.steps.name())) steps += size;
    }
    CHECK(states == 1);
    CHECK(steps == chunk);
}

TEST_CASE("carry in registers: what a thread keeps no other may touch") {
    Small small([](Expr channel) { return max(channel - 1, 0); });
    small.schedule();
    const std::string kept = " of " + small.steps.name();
    CHECK_THAT(refusal(small), Catch::Contains("a thread touches elements" + kept) || Catch::Contains("an element" + kept));
}

TEST_CASE("carry in registers: the last chunk is the same for all threads of a block") {
    const auto same = [](Expr channel) { return channel; };
    Small unsaid(same, [](const Small &s) { return s.c == 3; });
    unsaid.schedule();
    CHECK_THAT(refusal(unsaid), Catch::Contains("does not say which chunk is the last"));
    Small of_channel(same, [](const Small &s) { return halation::mark_last_chunk(s.c, s.v % 2); });
    of_channel.schedule();
    CHECK_THAT(refusal(of_channel), Catch::Contains("the last chunk depends on"));
}

TEST_CASE("carry in registers: states of bfloat16 must be loaded and stored") {
    const auto refused = [](const char *initial, const char *final, int reads, int writes) {
        Small small;
        small.schedule();
        const auto asked = [](int asked) { return asked ? Expr(1) : Expr(); };
        return refusal(small, {initial, initial, final ? final : small.final_state.name(), small.final_state.name(), asked(reads),
                               asked(writes)});
    };
    CHECK(refused("initial", nullptr, 1, 1) == "");
    CHECK_THAT(refused("other", nullptr, 1, 1), Catch::Contains("nothing loads other before the first chunk"));
    CHECK_THAT(refused("initial", "other", 1, 1), Catch::Contains("nothing stores other after the last chunk"));
    CHECK(refused("other", "other", 0, 0) == "");
}

TEST_CASE("carry in registers: what is kept must be in Stack") {
    for (const int which : {0, 1}) {
        Small small;
        small.schedule();
        Func &f = which == 0 ? small.steps : small.before;
        f.store_in(MemoryType::GPUShared);
        CHECK_THAT(refusal(small), Catch::Contains(f.name()) && Catch::Contains("must be in MemoryType::Stack"));
    }
}

TEST_CASE("chunks ahead: what is used in many places is loaded once") {
    std::map<std::string, int64_t> sizes;
    const Target target("x86-64-linux-opencl-no_runtime");
    const auto generator = GeneratorRegistry::create("halation_hgrn_gpu", GeneratorContext(target));
    generator->set_generatorparam_value("recurrence", "hgrn");
    generator->set_generatorparam_value("form", "recurrent");
    Pipeline pipeline = generator->build_pipeline();
    pipeline.add_custom_lowering_pass(new Registers(&sizes));
    pipeline.compile_to_module(pipeline.infer_arguments(), "hgrn", target);
    int64_t ahead = 0;
    for (const auto &[name, size] : sizes)
        if (name.find(".ahead.") != std::string::npos) ahead += size;
    // The gate, whose exponential asks for it again and again, and the value of each channel.
    CHECK(ahead == 2 * halation::gpu_machine("opencl").hgrn(true).each);
}
