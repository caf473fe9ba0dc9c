// The pass that carries the state from chunk to chunk (generators/carry.h): what it makes of a small pipeline, and everything
// that it refuses.
#include "generators/carry.h"

#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace Halide;
using namespace Halide::Internal;

CATCH_TRANSLATE_EXCEPTION(const Halide::Error &error) {
    return error.what();
}

namespace {

// S' = 2 S + d + c, o = the sum of S over the keys.
struct Small {
    Var v{"v"}, d{"d"}, c{"c"}, t{"t"}, vo{"vo"}, vi{"vi"}, chunk_loop{"chunk_loop"};
    ImageParam initial{Float(32), 2, "initial"};
    Func before{"before"}, reads{"reads"}, sums{"sums"}, after{"after"}, copy{"copy"}, output{"output"},
        final_state{"final_state"};
    const Expr V = initial.dim(0).extent(), K = initial.dim(1).extent();
    RDom key{0, K, "key"};

    Small() {
        for (int dim : {0, 1}) initial.dim(dim).set_min(0);
        before(v, d, c) = halation::mark_state_before(initial(v, d), v, d);
        reads(v, c) += before(v, key, c);
        sums(v, d, c) = 2.0f * before(v, d, c) + cast<float>(d + c);
        after(v, d, c) = halation::mark_state_after(sums(v, d, c), v, d, {reads(v, c)});
        copy(v, d, c) = halation::mark_copy_out(after(v, d, c), {v, d}, v < V && d < K);
        output(v, t) = halation::in_order(reads(v, t), {copy(v, 0, t), copy(v, K - 1, t)});
        final_state(v, d) = undef<float>();
    }

    halation::CarryNames names() const {
        halation::CarryNames names;
        names.state_before = before.name();
        names.state_after = after.name();
        names.final_state_copy = copy.name();
        names.copies[copy.name()] = final_state.name();
        names.chunk_loop = chunk_loop.name();
        return names;
    }

    void schedule() {
        for (int dim : {0, 1}) output.output_buffer().dim(dim).set_min(0);
        output.bound(v, 0, V).split(v, vo, vi, 4, TailStrategy::GuardWithIf).rename(t, chunk_loop).reorder(vi, chunk_loop, vo);
        output.vectorize(vi).partition(chunk_loop, Partition::Never);
        for (Func f : {before, after})
            f.store_at(output, vo).compute_at(output, chunk_loop).fold_storage(c, 1).bound(d, 0, K).vectorize(v, 4);
        reads.compute_at(output, chunk_loop).vectorize(v, 4).update().vectorize(v, 4);
        copy.compute_at(output, chunk_loop).bound_extent(v, 4).vectorize(v, 4);
    }

    Pipeline pipeline() {
        Pipeline both({output, final_state});
        both.add_custom_lowering_pass(halation::make_carry_pass(names()));
        return both;
    }

    // What is refused, or nothing.
    std::string refusal() {
        try {
            pipeline().compile_to_module({initial}, "small");
        } catch (const CompileError &error) {
            return error.what();
        }
        return "";
    }
};

bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

std::string refusal(const std::function<void(Small &)> &change) {
    Small small;
    small.schedule();
    change(small);
    return small.refusal();
}

}  // namespace

TEST_CASE("carry: a state goes round the chunk loop, and into the output after the last") {
    Small small;
    small.schedule();
    const int V = 8, K = 3, T = 5;
    Buffer<float> initial(V, K), output(V, T), final_state(V, K);
    initial.for_each_element([&](int v, int d) { initial(v, d) = 1.0f + v * 0.5f - d; });
    final_state.fill(-1.0f);
    small.initial.set(initial);
    SECTION("of its own") {}
    SECTION("in place") {
        final_state = initial;
    }
    std::vector<float> state(initial.begin(), initial.end());
    small.pipeline().realize({output, final_state});
    for (int c = 0; c < T; c++)
        for (int v = 0; v < V; v++) {
            float sum = 0;
            for (int d = 0; d < K; d++) sum += state[v + V * d];
            CHECK(output(v, c) == sum);
            for (int d = 0; d < K; d++) state[v + V * d] = 2 * state[v + V * d] + static_cast<float>(d + c);
        }
    for (int v = 0; v < V; v++)
        for (int d = 0; d < K; d++) CHECK(final_state(v, d) == state[v + V * d]);
}

TEST_CASE("carry: schedules that store the states otherwise are refused") {
    CHECK(refusal([](Small &) {}).empty());
    CHECK(contains(refusal([](Small &s) { s.after.align_storage(s.v, 16); }), "storage of different extents: 4 and 16"));
    CHECK(contains(refusal([](Small &s) { s.after.align_storage(s.v, 16).reorder_storage(s.d, s.v, s.c); }),
                   "different extents: 4 and"));
    // Alike in their extents, 4 each.
    CHECK(contains(refusal([](Small &s) {
                       for (Func f : {s.before, s.after}) f.bound_storage(s.d, 4).align_storage(s.d, 4);
                       s.initial.dim(1).set_extent(4);
                       s.after.reorder_storage(s.d, s.v, s.c);
                   }),
                   "laid out differently"));
}

namespace {

// A kernel written out: two states of [4, K], one pass. Pieces of it are replaced by what a schedule may have made of them.
struct Pieces {
    const Expr v = var("v"), d = var("d"), turn = var("output.s0.t.chunk_loop");
    const std::string loop = "output.s0.t.chunk_loop";
    ForType loop_type = ForType::Serial;
    int loops = 1;
    bool outside = false;  // the loop goes over nothing, and all is computed after it
    std::vector<Expr> before_extents = {4, var("K")}, after_extents = {4, var("K")};
    Expr before_index = d * 4 + v, after_index = d * 4 + v;
    Expr before_value = halation::mark_state_before(load("initial"), v, d);
    Expr after_value = halation::mark_state_after(load("before"), v, d, {});
    Expr copy_value = halation::mark_copy_out(load("after"), {v, d}, d < var("K"));
    bool before_stored = true, after_stored = true, copied = true, read_late = false;
    halation::CarryNames names{"before", "after", "copy", {{"copy", "final"}}, "chunk_loop", "", ""};

    static Expr var(const std::string &name) { return Variable::make(Int(32), name); }
    static Expr load(const std::string &name) {
        return Load::make(Float(32), name, var("d") * 4 + var("v"), Buffer<>(), Parameter(), const_true(), ModulusRemainder());
    }
    static Stmt store(const std::string &name, Expr value, Expr index) {
        return Store::make(name, value, index, Parameter(), const_true(), ModulusRemainder());
    }
    static Stmt produce(const std::string &name, Stmt body) { return ProducerConsumer::make_produce(name, body); }
    static Stmt stored(const std::string &name, const std::vector<Expr> &extents, Stmt body) {
        return Allocate::make(name, Float(32), MemoryType::Auto, extents, const_true(), body);
    }

    Stmt chunk() const {
        std::vector<Stmt> steps;
        if (before_stored) steps.push_back(produce("before", store("before", before_value, before_index)));
        if (after_stored) steps.push_back(produce("after", store("after", after_value, after_index)));
        if (copied) steps.push_back(produce("copy", store("copy", copy_value, d * 4 + v)));
        if (read_late) steps.push_back(store("out", load("before"), 0));
        return Block::make(steps);
    }

    Stmt stmt() const {
        std::vector<Stmt> steps;
        for (int i = 0; i < loops; i++)
            steps.push_back(
                For::make(loop, 0, var("T"), loop_type, Partition::Auto, DeviceAPI::None, outside ? Evaluate::make(0) : chunk()));
        if (outside) steps.push_back(chunk());
        Stmt body = Block::make(steps);
        if (after_stored) body = stored("after", after_extents, body);
        if (before_stored) body = stored("before", before_extents, body);
        return stored("copy", {4, var("K")}, body);
    }

    Stmt passed(const Stmt &s) const {
        const std::unique_ptr<IRMutator> pass(halation::make_carry_pass(names));
        return pass->mutate(s);
    }
    std::string refusal(const Stmt &s) const {
        try {
            passed(s);
        } catch (const CompileError &error) {
            const std::string text = error.what(), about = "carrying the state round the chunk loop: ";
            REQUIRE(contains(text, about));
            return text.substr(text.find(about) + about.size());
        }
        return "";
    }
    std::string refusal() const { return refusal(stmt()); }
};

std::string refused(const std::function<void(Pieces &)> &change) {
    Pieces pieces;
    change(pieces);
    return pieces.refusal();
}

std::string text_of(const Stmt &s) {
    std::ostringstream text;
    text << s;
    return text.str();
}

}  // namespace

TEST_CASE("carry: one state, made at the first chunk, copied after the last") {
    const Pieces pieces;
    const std::string text = text_of(pieces.passed(pieces.stmt()));
    INFO(text);
    CHECK(contains(text, "if (output.s0.t.chunk_loop == 0)"));
    CHECK(contains(text, "if (output.s0.t.chunk_loop == ((0 + T) - 1))"));
    CHECK(contains(text, "final["));
    for (const char *gone : {"allocate after", "allocate copy", "after[", "copy[", "halation_"})
        CHECK_FALSE(contains(text, gone));
}

TEST_CASE("carry: a copy stays where the output is, and where the Func that is copied was to be stored") {
    Pieces pieces;
    pieces.copied = false;
    const Stmt copy = Pieces::produce("copy", Store::make("copy", pieces.copy_value, pieces.d * 4 + pieces.v, Parameter(),
                                                          pieces.v < Pieces::var("V"), ModulusRemainder()));
    const Stmt loop =
        For::make(pieces.loop, 0, 3, ForType::Serial, Partition::Auto, DeviceAPI::None, Block::make(pieces.chunk(), copy));
    const std::string text = text_of(
        pieces.passed(Pieces::stored("before", pieces.before_extents, Pieces::stored("after", pieces.after_extents, loop))));
    INFO(text);
    CHECK(contains(text, "(v < V) && (d < K)"));
}

TEST_CASE("carry: what the chunk loop must be") {
    CHECK(refused([](Pieces &) {}).empty());
    CHECK(refused([](Pieces &p) { p.loop_type = ForType::Parallel; }) == "the loop over chunks must be serial");
    CHECK(refused([](Pieces &p) { p.loops = 2; }) == "more than one loop over the chunks of one state; is it partitioned?");
    // Of another state each: storage of its own.
    const Pieces pieces;
    CHECK(pieces.refusal(Block::make(pieces.stmt(), pieces.stmt())).empty());
    const Stmt inner = For::make("x.s0.chunk_loop", 0, 2, ForType::Serial, Partition::Auto, DeviceAPI::None, Evaluate::make(0));
    CHECK(pieces.refusal(For::make("y.s0.chunk_loop", 0, 2, ForType::Serial, Partition::Auto, DeviceAPI::None, inner)) ==
          "more than one loop over the chunks of one state; is it partitioned?");
}

TEST_CASE("carry: what must be computed inside the chunk loop") {
    CHECK(refused([](Pieces &p) { p.outside = true; }) == "the state before a chunk is computed outside the loop over chunks");
    CHECK(refused([](Pieces &p) { p.outside = true, p.before_stored = false; }) ==
          "the state after a chunk is computed outside the loop over chunks");
    CHECK(refused([](Pieces &p) { p.outside = true, p.before_stored = p.after_stored = false; }) ==
          "the final state is copied outside the loop over chunks");
}

TEST_CASE("carry: how the states must be stored") {
    CHECK(refused([](Pieces &p) { p.after_stored = false; }) ==
          "one of the states before and after a chunk is stored, the other inlined");
    CHECK(refused([](Pieces &p) { p.before_stored = false; }) ==
          "one of the states before and after a chunk is stored, the other inlined");
    CHECK(refused([](Pieces &p) { p.before_stored = p.after_stored = false; }).empty());
    CHECK(refused([](Pieces &p) {
              p.after_extents = {4, Pieces::var("K"), 1};
          }) == "the states before and after a chunk have storage of different rank");
    CHECK(refused([](Pieces &p) { p.after_extents[1] = Pieces::var("K") + 1; }) ==
          "the states before and after a chunk have storage of different extents: K and (K + 1)");
    CHECK(contains(refused([](Pieces &p) { p.after_index = p.v * Pieces::var("K") + p.d; }),
                   "the states before and after a chunk are laid out differently: 0 and "));
    CHECK(contains(refused([](Pieces &p) { p.before_index = p.before_index + 1; }), "laid out differently: 1 and 0"));
    CHECK(refused([](Pieces &p) { p.before_index = p.before_index + p.turn * 64; }) ==
          "the storage of the state must hold one chunk: fold it");
}

TEST_CASE("carry: what the markers must be") {
    CHECK(refused([](Pieces &p) { p.after_value = p.after_value + 1.0f; }) == "the state after a chunk must be the marker alone");
    CHECK(refused([](Pieces &p) { p.after_value = Pieces::load("before"); }) ==
          "the state after a chunk must be the marker alone");
    CHECK(refused([](Pieces &p) {
              p.after_value = halation::mark_copy_out(p.after_value, {p.v, p.d}, const_true());
          }) == "the state after a chunk must be the marker alone");
    CHECK(refused([](Pieces &p) { p.copy_value = p.copy_value + 1.0f; }) == "a copy to an output must be the marker alone");
    CHECK(refused([](Pieces &p) { p.copy_value = p.after_value; }) == "a copy to an output must be the marker alone");
    CHECK(refused([](Pieces &p) {
              p.copy_value = halation::mark_copy_out(p.after_value, {p.v, p.d}, const_true(), true);
          }) == "a copy to an output must be the marker alone");
}

TEST_CASE("carry: what only kernels for GPUs do") {
    CHECK(refused([](Pieces &p) {
              p.copy_value = halation::mark_copy_out(Pieces::load("after"), {p.v, p.d}, halation::mark_last_chunk(p.turn, 2));
          }) == "the last chunk of a sequence is asked for, which only kernels for GPUs do");
    CHECK(refused([](Pieces &p) {
              const Expr copied = halation::mark_copy_out(Pieces::load("before"), {p.v, p.d}, const_true(), true);
              p.after_value = halation::mark_state_after(copied, p.v, p.d, {});
          }) == "a Func is copied out where it is computed, which only kernels for GPUs do");
}

TEST_CASE("carry: the state is not read after it was replaced") {
    CHECK(refused([](Pieces &p) { p.read_late = true; }) ==
          "the state before a chunk is read after the state of the next was written over it");
    // In the next chunk it is what was left there.
    const Pieces pieces;
    const Stmt late = Pieces::store("out", Pieces::load("before"), 0);
    const Stmt loop =
        For::make(pieces.loop, 0, 3, ForType::Serial, Partition::Auto, DeviceAPI::None, Block::make(late, pieces.chunk()));
    const Stmt states = Pieces::stored("before", pieces.before_extents, Pieces::stored("after", pieces.after_extents, loop));
    CHECK(pieces.refusal(states).empty());
    CHECK(pieces.refusal(Block::make(states, states)).empty());
}

TEST_CASE("carry: where there is one chunk only, its states are inlined") {
    Pieces pieces;
    pieces.names.chunk_loop = "";
    CHECK(pieces.refusal() == "with a single chunk both states must be inlined");
    pieces.before_stored = false;
    CHECK(pieces.refusal() == "with a single chunk both states must be inlined");
    pieces.after_stored = false;
    pieces.copy_value = halation::mark_copy_out(
        halation::mark_state_after(Pieces::load("initial") * 2.0f, pieces.v, pieces.d, {}), {pieces.v, pieces.d}, const_true());
    const std::string text = text_of(pieces.passed(pieces.stmt()));
    INFO(text);
    CHECK(contains(text, "initial[(d*4) + v]*2.000000f"));
    CHECK(contains(text, "final[((d - final.min.1)*final.stride.1) + (v - final.min.0)]"));
    CHECK_FALSE(contains(text, "halation_"));
}

TEST_CASE("carry: a state that is read while it is replaced, row by row") {
    Pieces pieces;
    pieces.names.chunk_loop = "";
    pieces.names.state_reads = "reads";
    pieces.names.state_taken = "taken";
    const Stmt taken = Pieces::produce("taken", Pieces::store("taken", Pieces::load("initial"), 0));
    const Stmt copy = Pieces::produce("copy", Pieces::store("copy", pieces.copy_value, 0));
    const Stmt read = Pieces::store("reads", Pieces::load("taken"), 0);
    const auto rows = [&](std::vector<Stmt> steps) {
        return For::make("reads.s1.key", 0, 3, ForType::Serial, Partition::Auto, DeviceAPI::None, Block::make(steps));
    };
    CHECK(pieces.refusal(Pieces::produce("reads", rows({taken, copy, read}))).empty());
    CHECK(pieces.refusal(Block::make(rows({taken}), Pieces::produce("reads", rows({copy, read})))) ==
          "taken is computed outside reads, which reads the state while it is replaced");
    CHECK(pieces.refusal(Block::make(Pieces::produce("reads", rows({taken, read})), rows({copy}))) ==
          "copy is computed outside reads, which reads the state while it is replaced");
    CHECK(pieces.refusal(Pieces::produce("reads", rows({copy, read}))) == "taken is inlined: it must be computed");
}
