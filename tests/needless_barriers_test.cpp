// What the threads of a block reckon and touch (generators/lockstep.h, block_walk.h), and the barriers that they need because of
// it (needless_barriers.h). Arrays with memory of their own are there, too (shared_apart.h), and what they are for: what is asked
// for a chunk ahead is put there all at once (chunk_ahead.h).
#include "generators/chunk_ahead.h"
#include "generators/lockstep.h"
#include "generators/needless_barriers.h"
#include "generators/shared_apart.h"

#include "thread_run.h"

#include <catch2/catch.hpp>

#include <memory>

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int count = 8;  // threads of a block

Expr var(const std::string &name) {
    return Variable::make(Int(32), name);
}

const Expr thread = var("f.thread_id_x"), block = var("f.block_id_x"), n = var("n"), turn = var("f.s0.turn");

Stmt store(const std::string &name, const Expr &index, const Expr &value = 0.0f) {
    return Store::make(name, value, index, Parameter(), const_true(index.type().lanes()), ModulusRemainder());
}
Expr load(const std::string &name, const Expr &index, const Type &type = Float(32)) {
    return Load::make(type, name, index, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
}
Stmt use(const std::string &name, const Expr &index) {
    return store("out", thread, load(name, index));
}
Stmt barrier() {
    return Evaluate::make(Call::make(Int(32), Call::gpu_thread_barrier, {2}, Call::Intrinsic));
}
Stmt loop(const std::string &name, const Expr &turns, const Stmt &body, ForType type = ForType::Serial) {
    return For::make(name, 0, turns, type, Partition::Auto, DeviceAPI::None, body);
}
Stmt threads(const std::vector<Stmt> &body, const Expr &how_many = count) {
    return loop("f.thread_id_x", how_many, Block::make(body), ForType::GPUThread);
}

// 1 for each barrier that is there after the pass, 0 for each that it took away, in order.
std::string kept(const Stmt &s) {
    struct Places : public IRMutator {
        using IRMutator::visit;
        std::string found;
        Stmt visit(const Evaluate *op) override {
            const Call *call = op->value.as<Call>();
            found += call && call->is_intrinsic(Call::gpu_thread_barrier) ? '1' : '0';
            return op;
        }
    } places;
    const std::unique_ptr<IRMutator> pass(halation::make_needless_barriers_pass());
    places.mutate(pass->mutate(s));
    return places.found;
}

}  // namespace

TEST_CASE("lockstep: what threads reckon, as far as it is known") {
    halation::Lockstep lockstep(4);
    lockstep.set("f.thread_id_x", halation::Lockstep::Values{0, 1, 2, 3});
    using Values = std::optional<halation::Lockstep::Values>;
    CHECK(lockstep.value(thread * 3 - 7) == Values({-7, -4, -1, 2}));
    CHECK(lockstep.value((thread - 3) / 2) == Values({-2, -1, -1, 0}));
    CHECK(lockstep.value((thread - 3) % 2) == Values({1, 0, 1, 0}));
    CHECK(lockstep.value(Let::make("a", thread + 1, var("a") * var("a"))) == Values({1, 4, 9, 16}));
    CHECK(lockstep.value(min(thread, 2) + max(thread, 1)) == Values({1, 2, 4, 5}));
    CHECK_FALSE(lockstep.value(n));
    CHECK_FALSE(lockstep.value(load("table", thread, Int(32))));
    // Where a block begins falls out, whatever it is and however it comes in.
    lockstep.set("at", block * 16 + thread);
    CHECK(lockstep.value((var("at") - block * 16) * 2) == Values({0, 2, 4, 6}));
    CHECK_FALSE(lockstep.value(var("at")));
    CHECK_FALSE(lockstep.value(var("at") * thread - block * 16));
    // What stands for something else by now is no longer the same.
    lockstep.set_unknown("at");
    CHECK_FALSE(lockstep.value(var("at") - block * 16));
    lockstep.set("next", var("at") + 1);
    CHECK(lockstep.value(var("next") - var("at")) == Values({1, 1, 1, 1}));
    lockstep.set_unknown("at");
    CHECK_FALSE(lockstep.value(var("next") - var("at")));
    // Inside a let only; wrapping types are not followed.
    lockstep.set("at", 5);
    lockstep.with("at", thread, [&] { CHECK(lockstep.value(var("at")) == Values({0, 1, 2, 3})); });
    CHECK(lockstep.value(var("at")) == Values({5, 5, 5, 5}));
    CHECK_FALSE(lockstep.value(cast<uint8_t>(255) + Variable::make(UInt(8), "at")));

    CHECK(lockstep.may_hold(thread < 2) == std::vector<bool>{true, true, false, false});
    CHECK(lockstep.may_hold(thread < 2 && n < 3) == std::vector<bool>{true, true, false, false});
    CHECK(lockstep.may_hold(thread < 2 || n < 3) == std::vector<bool>{true, true, true, true});
    CHECK(lockstep.may_hold(!(thread < 2)) == std::vector<bool>{false, false, true, true});
}

TEST_CASE("needless barriers: only what another thread touches is waited for") {
    CHECK(kept(threads({store("a", thread), barrier(), use("a", thread)})) == "0");
    CHECK(kept(threads({store("a", thread), barrier(), use("a", count - 1 - thread)})) == "1");
    CHECK(kept(threads({store("a", thread), barrier(), use("b", count - 1 - thread)})) == "0");
    CHECK(kept(threads({use("a", count - 1 - thread), barrier(), store("a", thread)})) == "1");
    CHECK(kept(threads({use("a", 0), barrier(), use("a", 1)})) == "0");
    // Only reads, only writes: of memory that is not exchanged.
    CHECK(kept(threads({store("a", 0), barrier(), store("a", 0)})) == "0");
    CHECK(kept(threads({store("a", 0), barrier(), store("a", 0), use("a", 0)})) == "1");
    // By an index that is a let, or a vector, or of another type.
    CHECK(kept(threads({store("a", thread), barrier(), LetStmt::make("at", thread, use("a", var("at")))})) == "0");
    CHECK(kept(threads({store("a", thread), barrier(), LetStmt::make("at", thread ^ 1, use("a", var("at")))})) == "1");
    const Expr inner = Let::make("at", thread, load("b", var("at")));
    const Stmt shadowed = LetStmt::make("at", count - 1 - thread, store("out", thread, inner + load("a", var("at"))));
    CHECK(kept(threads({store("a", thread), barrier(), shadowed})) == "1");
    const Stmt vector =
        store("out", Ramp::make(thread * 2, 1, 2),
              Load::make(Float(32, 2), "a", Ramp::make(thread * 2, 1, 2), Buffer<>(), Parameter(), const_true(2), {}));
    CHECK(kept(threads({Block::make(store("a", thread * 2), store("a", thread * 2 + 1)), barrier(), vector})) == "0");
    CHECK(kept(threads({store("a", thread), barrier(), vector})) == "1");
    CHECK(kept(threads({store("a", thread), barrier(), store("out", thread, cast<float>(load("a", thread, Float(64))))})) == "1");
    // Registers, also those around the loops over threads: their elements have the same numbers in each thread.
    const Stmt registers = threads({store("a", 0), barrier(), use("a", 0)});
    CHECK(kept(registers) == "1");
    CHECK(kept(Allocate::make("a", Float(32), MemoryType::Register, {1}, const_true(), registers)) == "0");
    CHECK(kept(Allocate::make("a", Float(32), MemoryType::GPUShared, {1}, const_true(), registers)) == "1");
    // What is not known: an index, a number of threads.
    CHECK(kept(threads({store("a", thread), barrier(), use("a", n)})) == "1");
    CHECK(kept(threads({store("a", thread), barrier(), use("a", thread)}, n)) == "1");
}

TEST_CASE("needless barriers: conditions and loops") {
    const Stmt exchange = use("a", count - 1 - thread);
    const auto where = [](const Expr &condition, const Stmt &s) { return IfThenElse::make(condition, s); };
    // The first half of the threads and what they have stored.
    CHECK(kept(threads({where(thread < 4, store("a", thread)), barrier(), where(thread < 4, use("a", 7 - thread))})) == "0");
    CHECK(kept(threads({where(thread < 4, store("a", thread)), barrier(), where(thread < 4, use("a", 3 - thread))})) == "1");
    CHECK(kept(threads({where(n < 4, store("a", thread)), barrier(), exchange})) == "1");
    const Stmt guarded = store(
        "out", thread, Call::make(Float(32), Call::if_then_else, {thread < 4, load("a", thread + 4), 0.0f}, Call::PureIntrinsic));
    CHECK(kept(threads({where(thread < 4, store("a", thread)), barrier(), guarded})) == "0");
    CHECK(kept(threads({store("a", thread), barrier(), guarded})) == "1");

    // The last of several will do, and one for several arrays.
    CHECK(kept(threads({store("a", thread), barrier(), store("b", thread), barrier(), exchange, use("b", 0)})) == "01");
    CHECK(kept(threads({store("a", thread), barrier(), exchange, barrier(), use("a", 0)})) == "10");

    // Turn by turn, where it is known.
    const Expr row = var("row");
    CHECK(kept(threads({loop("row", 4, store("a", row * count + thread)), barrier(),
                        loop("row", 4, use("a", row * count + thread))})) == "0");
    CHECK(kept(threads({loop("row", 4, store("a", row * count + thread)), barrier(),
                        loop("row", 4, use("a", row * count + thread + 1))})) == "1");
    CHECK(kept(threads({loop("row", thread + 1, store("a", row)), barrier(), where(thread == 7, use("a", 7))})) == "0");
    CHECK(kept(threads({loop("row", n, store("a", row * count + thread)), barrier(), use("a", thread)})) == "1");

    // Round a loop with barriers: of turn and turn.
    CHECK(kept(threads({loop("f.s0.turn", n, Block::make({store("a", thread), barrier(), exchange, barrier()}))})) == "11");
    CHECK(kept(threads({loop("f.s0.turn", n, Block::make({store("a", thread), barrier(), use("a", thread), barrier()}))})) ==
          "00");
    // The same with an array for every other turn is not followed.
    const Expr half = turn % 2 * count;
    CHECK(kept(threads({loop("f.s0.turn", n, Block::make({store("a", half + thread), barrier(), use("a", half)}))})) == "1");
    // A loop may be gone through not once: the barrier in it separates nothing then.
    CHECK(kept(threads({store("a", thread), barrier(), loop("f.s0.turn", n, barrier()), exchange})) == "11");
    CHECK(kept(threads({store("a", thread), where(n < 3, barrier()), barrier(), exchange})) == "01");
    CHECK(kept(threads({store("a", thread), barrier(), where(n < 3, barrier()), exchange})) == "11");
    CHECK(
        kept(threads({IfThenElse::make(n < 3, Block::make(store("a", thread), barrier()), Block::make(barrier(), store("a", 0))),
                      barrier(), exchange})) == "001");
}

TEST_CASE("shared memory apart: in front, in elements of their type, for Funcs of constant size") {
    const auto apart = [](const Stmt &s) {
        const std::unique_ptr<IRMutator> pass(halation::make_shared_apart_pass({"mine"}));
        return pass->mutate(s);
    };
    const auto mine = [](const Stmt &body, const Expr &size = 10, const Type &type = Float(64)) {
        return Allocate::make("mine.1", type, MemoryType::Stack, {size}, const_true(), body);
    };
    const auto shared = [](const Stmt &body) {
        return Allocate::make("shared", Float(32), MemoryType::GPUShared, {n, 2}, const_true(), body);
    };
    const Stmt body = Block::make({store("mine.1", thread, cast<double>(1)), store("shared", thread, 1.0f), barrier(),
                                   store("out", thread, load("shared", 3) + cast<float>(load("mine.1", 4, Float(64))))});
    const Stmt moved = apart(shared(threads({mine(body)})));
    REQUIRE(moved.as<Allocate>());
    CHECK(equal(simplify(moved.as<Allocate>()->extents[0]), simplify(n * 2 + 20)));
    struct Indices : public IRVisitor {
        using IRVisitor::visit;
        std::vector<std::pair<std::string, Expr>> found;
        void visit(const Store *op) override {
            IRVisitor::visit(op);
            found.emplace_back(op->name, op->index);
        }
        void visit(const Load *op) override { found.emplace_back(op->name, op->index); }
    } indices;
    moved.accept(&indices);
    REQUIRE(indices.found.size() == 5);
    for (size_t i = 0; i < 4; i++) CHECK(indices.found[i].first == "shared");
    CHECK(equal(indices.found[0].second, thread));
    CHECK(equal(indices.found[1].second, thread + 20));
    CHECK(equal(indices.found[2].second, 23));
    CHECK(equal(indices.found[3].second, 4));

    const auto says = [&](const Stmt &s) -> std::string {
        try {
            apart(s);
        } catch (const CompileError &error) {
            return error.what();
        }
        return "";
    };
    CHECK(says(shared(threads({mine(body, n)}))).find("mine.1 has no constant size") != std::string::npos);
    CHECK(says(threads({mine(body)})).find("mine must be in MemoryType::Stack at a block that shares memory") !=
          std::string::npos);
    CHECK(says(shared(shared(threads({mine(body)})))).find("two allocations of shared memory") != std::string::npos);
}

TEST_CASE("chunks ahead: what has memory to itself is put there at the beginning of a turn") {
    const Expr next = turn * count + thread;
    const auto turns = [&](const Stmt &staged, const Stmt &rest) {
        const Stmt produced = ProducerConsumer::make_produce("q_staged", staged);
        return threads(
            {loop("f.s0.chunk.turn", n, Block::make({rest, barrier(), produced, barrier(), use("shared", 7 - thread)}))});
    };
    const auto ahead = [](const Stmt &s) {
        const std::unique_ptr<IRMutator> pass(halation::make_chunk_ahead_pass({"chunk", {"q_staged"}}));
        return pass->mutate(s);
    };
    // Where the first store of a turn goes.
    struct First : public IRVisitor {
        using IRVisitor::visit;
        bool in_loop = false, after_barrier = false;
        std::string index;
        int registers = 0;
        void visit(const Allocate *op) override {
            registers += op->memory_type == MemoryType::Register;
            IRVisitor::visit(op);
        }
        void visit(const For *op) override {
            in_loop = op->name == "f.s0.chunk.turn";
            IRVisitor::visit(op);
            in_loop = false;
        }
        void visit(const Evaluate *op) override { after_barrier |= in_loop && index.empty() && op->value.as<Call>(); }
        void visit(const Store *op) override {
            std::ostringstream text;
            text << op->index;
            if (in_loop && index.empty() && op->name == "shared") index = text.str();
        }
    };
    const Stmt staged = store("shared", thread, load("q", next));
    First first;
    ahead(turns(staged, store("shared", thread + count))).accept(&first);
    CHECK(first.after_barrier);
    CHECK(first.index == "f.thread_id_x");
    // It reads nothing of what others store in the loop; in one of two cases it stays where it is.
    First reads;
    ahead(turns(store("shared", thread, load("q", next) + load("shared", thread + count)), store("shared", thread + count)))
        .accept(&reads);
    CHECK_FALSE(reads.after_barrier);
    const Stmt produced = ProducerConsumer::make_produce("q_staged", staged);
    const Stmt cases = IfThenElse::make(turn < var("row"), produced, store("out", thread));
    First in_case;
    ahead(threads({loop("f.s0.chunk.turn", n, Block::make({barrier(), cases, barrier(), use("shared", 7 - thread)}))}))
        .accept(&in_case);
    CHECK(in_case.registers == 0);
    // What stores there as well, or may, must not be overtaken.
    for (const Expr &elsewhere : {Expr(thread + 1), n}) {
        First in_place;
        const Stmt result = ahead(turns(staged, store("shared", elsewhere)));
        result.accept(&in_place);
        CHECK_FALSE(in_place.after_barrier);
        CHECK(in_place.index != "f.thread_id_x");
    }
}

TEST_CASE("chunks ahead: what a chunk has is its own, whenever it was asked for") {
    using Next = halation::ChunkAheadNames::Next;
    const Expr chunk = var("f.s0.chunk"), token = min(chunk, max(n - 1, 0)) * count + thread;
    const Stmt staged = ProducerConsumer::make_produce("q_staged", store("shared", thread, load("q", token)));
    const Stmt used = store("out", chunk * count + thread, load("shared", thread));
    const Stmt code = threads({loop("f.s0.chunk", n, Block::make(staged, used))});
    for (const Next next : {Next::always, Next::if_any, Next::never}) {
        const std::unique_ptr<IRMutator> pass(halation::make_chunk_ahead_pass({"chunk", {"q_staged"}, next}));
        const Stmt made = pass->mutate(code);
        for (const int64_t chunks : {0, 1, 2, 5}) {
            INFO(chunks << " chunks, mode " << static_cast<int>(next));
            const auto wanted = thread_run::run(code, {{"n", chunks}}, "f.thread_id_x"),
                       got = thread_run::run(made, {{"n", chunks}}, "f.thread_id_x");
            CHECK(thread_run::same_stores(got.of("out"), wanted.of("out")));
            // Whether a chunk is asked for before the one before it is done, and how much for nothing.
            const auto loaded = [&](int64_t chunk) { return got.first("q", 0, chunk * count); };
            if (chunks > 1) CHECK((loaded(1) < got.first("out", 0, 0)) == (next != Next::never));
            if (chunks > 0) CHECK(got.of("q").size() == static_cast<size_t>(count * (chunks + (next == Next::always))));
        }
    }
}
