// The passes over what a block of threads does: sums in the registers of threads (generators/thread_registers.h), turns that are
// not gone through (generators/skip_turns.h).
#include "generators/skip_turns.h"
#include "generators/thread_registers.h"

#include <catch2/catch.hpp>

#include <memory>
#include <set>
#include <sstream>

using namespace Halide;
using namespace Halide::Internal;

namespace {

Expr var(const std::string &name) {
    return Variable::make(Int(32), name);
}

const Expr thread = var("f.thread_id_x"), turn = var("f.s1.turn"), row = var("row"), n = var("n");

Stmt threads(const Stmt &body, int count = 4) {
    return For::make("f.thread_id_x", 0, count, ForType::GPUThread, Partition::Auto, DeviceAPI::Default_GPU, body);
}
Stmt turns(const Stmt &body) {
    return For::make("f.s1.turn", 0, n, ForType::Serial, Partition::Auto, DeviceAPI::None, body);
}
Stmt store(const std::string &name, const Expr &index, const Expr &value = 0.0f) {
    return Store::make(name, value, index, Parameter(), const_true(), ModulusRemainder());
}
Expr load(const std::string &name, const Expr &index) {
    return Load::make(Float(32), name, index, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
}
Stmt allocated(const Stmt &body, MemoryType type = MemoryType::Stack) {
    return Allocate::make("sums.0", Float(32), type, {64}, const_true(), body);
}

Stmt in_registers(const Stmt &s) {
    const std::unique_ptr<IRMutator> pass(halation::make_thread_registers_pass({"sums"}));
    return pass->mutate(s);
}
Stmt skipped(const Stmt &s) {
    const std::unique_ptr<IRMutator> pass(halation::make_skip_turns_pass({{"turn", "sums"}}));
    return pass->mutate(s);
}

// What a pass says of a statement that it refuses; empty: it does not.
template<typename Pass> std::string refusal(Pass pass, const Stmt &s) {
    try {
        pass(s);
    } catch (const CompileError &error) {
        return error.what();
    }
    return "";
}

// Elements of the array "sums.0" that loads and stores touch, and what it is.
class Touched : public IRVisitor {
public:
    explicit Touched(const Stmt &s) { s.accept(this); }
    std::set<int64_t> places;
    int64_t elements = 0;
    bool constant = true, registers = false;

private:
    using IRVisitor::visit;
    void add(const Expr &index) {
        const auto place = as_const_int(index);
        constant = constant && place;
        if (place) places.insert(*place);
    }
    void visit(const Store *op) override {
        if (op->name == "sums.0") add(op->index);
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        if (op->name == "sums.0") add(op->index);
        IRVisitor::visit(op);
    }
    void visit(const Allocate *op) override {
        elements = *as_const_int(op->extents[0]);
        registers = op->memory_type == MemoryType::Register;
        IRVisitor::visit(op);
    }
};

// The conditions around the loop and around its turns.
struct Conditions : public IRVisitor {
    explicit Conditions(const Stmt &s) { s.accept(this); }
    std::string of_loop, of_turns;

private:
    using IRVisitor::visit;
    std::string around_;
    void visit(const For *op) override {
        if (op->for_type == ForType::Serial) {
            of_loop = around_;
            if (const IfThenElse *inside = op->body.as<IfThenElse>()) of_turns = text(inside->condition);
        }
        IRVisitor::visit(op);
    }
    void visit(const IfThenElse *op) override {
        const std::string outside = around_;
        around_ = text(op->condition);
        IRVisitor::visit(op);
        around_ = outside;
    }
    static std::string text(const Expr &e) {
        std::ostringstream out;
        out << e;
        return out.str();
    }
};

}  // namespace

TEST_CASE("blocks: a thread's elements become an array of its own") {
    // Element 4 k + thread for k = 0, 1, 2, as sums and lets make it.
    const Expr at = var("at");
    const Stmt body = Block::make({store("sums.0", thread), store("sums.0", at + 4, load("sums.0", thread)),
                                   store("sums.0", (row * 16 + thread + 8) % 16, load("sums.0", at + 4))});
    for (const bool outside : {false, true}) {
        const Stmt lets = LetStmt::make("at", thread, body);
        const Touched touched(in_registers(outside ? allocated(threads(lets)) : threads(allocated(lets))));
        CHECK(touched.registers);
        CHECK(touched.constant);
        CHECK(touched.elements == 3);
        CHECK(touched.places == std::set<int64_t>{0, 1, 2});
    }
    // Other memory is left alone.
    const Stmt other = threads(store("other", thread * 5));
    const Stmt both = in_registers(Block::make(threads(allocated(store("sums.0", thread))), other));
    REQUIRE(both.as<Block>());
    CHECK(equal(both.as<Block>()->rest, other));
}

TEST_CASE("blocks: what is not a thread's own is refused") {
    const auto says = [](const Stmt &s) { return refusal(in_registers, s); };
    const Stmt own = store("sums.0", thread);
    CHECK(says(threads(allocated(Block::make(own, store("out", thread, load("sums.0", thread)))))).empty());
    CHECK(says(threads(allocated(Block::make(own, store("out", thread, load("sums.0", 3 - thread))))))
              .find("which is another thread's") != std::string::npos);
    CHECK(says(threads(allocated(Block::make(own, turns(store("out", thread, load("sums.0", thread + turn)))))))
              .find("no constant place") != std::string::npos);
    CHECK(says(threads(allocated(store("out", thread, load("sums.0", thread))))).find("is read that is not computed") !=
          std::string::npos);
    CHECK(says(threads(allocated(own, MemoryType::GPUShared))).find("must be in MemoryType::Stack") != std::string::npos);
    CHECK(says(threads(store("shared", thread))).find("sums must be in MemoryType::Stack at the block") != std::string::npos);
}

TEST_CASE("blocks: turns and loops are skipped as the conditions around a sum say") {
    const Expr seen = var("seen");
    const Stmt work = store("scores", thread, load("q", turn));
    const auto loop = [&](const Expr &condition) {
        const Stmt sum = IfThenElse::make(condition, store("sums.0", 0, load("scores", thread)));
        return threads(turns(LetStmt::make("seen", load("table", row), Block::make(work, sum))));
    };
    const Expr limit = cast<int>(load("table", row));
    Conditions found(skipped(loop(turn < limit)));
    CHECK(found.of_loop.empty());
    CHECK(found.of_turns.find("turn") != std::string::npos);
    found = Conditions(skipped(loop(row < limit)));
    CHECK(found.of_loop.find("row") != std::string::npos);
    CHECK(found.of_turns.empty());
    found = Conditions(skipped(loop(row < limit && turn < limit && thread < 3)));
    CHECK(found.of_loop.find("row") != std::string::npos);
    CHECK(found.of_turns.find("turn") != std::string::npos);
    CHECK((found.of_loop + found.of_turns).find("thread") == std::string::npos);
}

TEST_CASE("blocks: a condition that not all threads or stores share skips nothing") {
    const auto says = [](const Stmt &s) { return refusal(skipped, s); };
    const std::string none = "there is no condition around sums that holds for all threads of a block";
    const Stmt sum = store("sums.0", 0);
    CHECK(says(threads(turns(sum))).find(none) != std::string::npos);
    CHECK(says(threads(turns(IfThenElse::make(thread < n, sum)))).find(none) != std::string::npos);
    CHECK(says(threads(turns(Block::make(IfThenElse::make(turn < row, sum), sum)))).find(none) != std::string::npos);
    // Of what the loop itself computes, each thread has its own.
    const Stmt computed = Block::make(store("scores", 0), IfThenElse::make(load("scores", 0) < 1.0f, sum));
    CHECK(says(threads(turns(computed))).find(none) != std::string::npos);
    CHECK(says(threads(turns(IfThenElse::make(turn < row, sum)))).empty());
}
