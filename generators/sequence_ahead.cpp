#include "sequence_ahead.h"

#include "checked_pass.h"
#include "lowered_names.h"
#include "sequence_table.h"

#include <map>
#include <set>
#include <vector>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

[[noreturn]] void fail(const std::string &what) {
    throw CompileError("asking for sequences ahead: " + what);
}

using Places = std::set<std::pair<std::string, int>>;  // of arrays in registers

struct Array {
    Type type;
    int size;
};

// The array that the same is loaded to for the next sequence.
std::string ahead_of(const std::string &array) {
    return array + ".sequence";
}

class Stored : public IRVisitor {
public:
    explicit Stored(const Stmt &s) { s.accept(this); }

    std::set<std::string> arrays;

private:
    using IRVisitor::visit;
    void visit(const Store *op) override {
        arrays.insert(op->name);
        IRVisitor::visit(op);
    }
};

// Whether a statement does nothing but load: into constant places of arrays in registers.
class OnlyLoads : public IRVisitor {
public:
    explicit OnlyLoads(const std::map<std::string, Array> &arrays) : arrays_(arrays) {}

    bool else_too = false;
    Places places;
    std::set<std::string> loaded;

private:
    const std::map<std::string, Array> &arrays_;

    using IRVisitor::visit;
    void visit(const Store *op) override {
        const auto at = as_const_int(op->index);
        if (at && arrays_.count(op->name))
            places.emplace(op->name, static_cast<int>(*at));
        else
            else_too = true;
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        loaded.insert(op->name);
        IRVisitor::visit(op);
    }
    void visit(const For *) override { else_too = true; }
    void visit(const Allocate *) override { else_too = true; }
};

// The loads of a sequence, into arrays of other names.
class Ahead : public IRMutator {
    using IRMutator::visit;
    Stmt visit(const Store *op) override {
        return Store::make(ahead_of(op->name), op->value, op->index, op->param, op->predicate, op->alignment);
    }
};

// What is done in any turn but the first.
class NotFirst : public IRMutator {
public:
    explicit NotFirst(const For *loop) : first_(Variable::make(Int(32), loop->name) == loop->min) {}

private:
    using IRMutator::visit;
    const Expr first_;
    Stmt visit(const IfThenElse *op) override {
        if (!equal(op->condition, first_)) return IRMutator::visit(op);
        return op->else_case.defined() ? mutate(op->else_case) : Evaluate::make(0);
    }
};

class SequenceAhead : public CheckedPass {
public:
    explicit SequenceAhead(SequenceAheadNames names) : names_(std::move(names)) {}

private:
    using IRMutator::visit;

    const SequenceAheadNames names_;
    int loops_ = 0;
    Scope<Interval> bounds_;            // constants, of the lets around what is visited
    const Allocate *shared_ = nullptr;  // of the block around it, the innermost
    const Allocate *grown_ = nullptr;   // that has the table's rows,
    int rows_ = 0;                      // so many floats
    const For *threads_ = nullptr;      // the innermost loop over threads
    int around_ = 0;                    // conditions and loops in it, or in the loop over sequences

    // In the loop over sequences:
    const For *loop_ = nullptr;
    std::set<std::string> stored_;
    std::map<std::string, Expr> lets_;
    // In front of the loop over chunks: arrays in registers, those of them that are touched there, and what is taken from there,
    // the loads, the places that they load to, and the same loads to arrays of other names.
    bool in_front_ = false;
    std::map<std::string, Array> arrays_;
    std::set<std::string> touched_;
    std::vector<Stmt> loads_;
    Places places_;
    Stmt loading_;

    void check() override {
        if (loops_ != 1) fail("there is not one loop over " + names_.sequence_loop + " in threads");
    }

    static Expr size_of(const Allocate *op) {
        Expr size = 1;
        for (const Expr &extent : op->extents) size *= extent;
        return simplify(size);
    }

    Stmt visit(const Allocate *op) override {
        if (op->memory_type == MemoryType::GPUShared) {
            const ScopedValue<const Allocate *> inside(shared_, op);
            Stmt body = mutate(op->body);
            std::vector<Expr> extents = op->extents;
            if (grown_ == op) extents = {size_of(op) + rows_};
            return Allocate::make(op->name, op->type, op->memory_type, extents, op->condition, body);
        }
        if (in_front_ && op->memory_type == MemoryType::Register && op->extents.size() == 1)
            if (const auto size = as_const_int(op->extents[0])) arrays_[op->name] = {op->type, static_cast<int>(*size)};
        return IRMutator::visit(op);
    }

    Stmt visit(const For *op) override {
        if (op->for_type == ForType::GPUThread) {
            const ScopedValue<const For *> inside(threads_, op);
            const ScopedValue<int> around(around_, 0);
            return IRMutator::visit(op);
        }
        if (in_front_ && is_loop_over(op->name, names_.chunk_loop)) return at_chunks(op);
        if (threads_ && !loop_ && is_loop_over(op->name, names_.sequence_loop)) return sequences(op);
        const ScopedValue<int> around(around_, around_ + 1);
        return IRMutator::visit(op);
    }

    Stmt visit(const LetStmt *op) override {
        const Interval bounds = op->value.type() == Int(32) ? find_constant_bounds(op->value, bounds_) : Interval::everything();
        const ScopedBinding<Interval> bound(bounds_, op->name, bounds);
        if (loop_) lets_[op->name] = substitute(lets_, op->value);
        return IRMutator::visit(op);
    }

    // Takes what only loads, from what the loop over sequences does not store.
    bool take(const Stmt &s) {
        if (!in_front_) return false;
        OnlyLoads only(arrays_);
        s.accept(&only);
        if (only.places.empty() || only.else_too) return false;
        for (const std::string &array : only.loaded)
            if (stored_.count(array)) return false;
        places_.insert(only.places.begin(), only.places.end());
        loads_.push_back(substitute(lets_, s));
        return true;
    }
    Stmt visit(const IfThenElse *op) override {
        if (take(op)) return Evaluate::make(0);
        const ScopedValue<int> around(around_, around_ + 1);
        return IRMutator::visit(op);
    }
    Stmt visit(const ProducerConsumer *op) override { return take(op) ? Evaluate::make(0) : IRMutator::visit(op); }
    Stmt visit(const Store *op) override {
        if (take(op)) return Evaluate::make(0);
        if (in_front_) touched_.insert(op->name);
        return IRMutator::visit(op);
    }
    Expr visit(const Load *op) override {
        if (in_front_) touched_.insert(op->name);
        return IRMutator::visit(op);
    }

    Stmt loading(const Expr &sequence) const {
        return common_subexpression_elimination(substitute(loop_->name, sequence, loading_));
    }

    // The first chunk's take what was loaded for it, and the next sequence's are asked for.
    Stmt at_chunks(const For *op) {
        in_front_ = false;
        if (op->for_type != ForType::Serial || around_ > 0) fail(op->name + " is in another loop or under a condition");
        const auto least = as_const_int(find_constant_bound(op->extent, Direction::Lower, bounds_));
        if (!least || *least < 1) fail("a sequence may have no turn of " + op->name);
        if (loads_.empty()) fail("nothing is loaded in front of " + op->name);
        std::vector<Stmt> all;
        for (const auto &[name, at] : places_) {
            if (touched_.count(name)) fail(name + " is touched in front of " + op->name + ", not only loaded");
            const Expr ahead =
                Load::make(arrays_.at(name).type, ahead_of(name), at, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
            all.push_back(Store::make(name, ahead, at, Parameter(), const_true(), ModulusRemainder()));
        }
        loading_ = Ahead().mutate(Block::make(loads_));
        const Expr next = Variable::make(Int(32), loop_->name) + 1;
        all.push_back(IfThenElse::make(next < loop_->min + loop_->extent, loading(next)));
        // The first chunk by itself: of what is loaded in the loop compilers think that it may be on its way wherever its
        // register is used, and would wait there for all loads that are.
        all.push_back(simplify(substitute(op->name, op->min, op->body)));
        all.push_back(For::make(op->name, op->min + 1, op->extent - 1, op->for_type, op->partition_policy, op->device_api,
                                NotFirst(op).mutate(op->body)));
        return Block::make(all);
    }

    Stmt sequences(const For *op) {
        loops_++;
        if (op->for_type != ForType::Serial || around_ > 0) fail(op->name + " is in another loop or under a condition");
        if (!shared_ || shared_->type != Float(32)) fail("a block has no shared memory of float32");
        const auto most = as_const_int(find_constant_bound(op->extent, Direction::Upper, bounds_));
        const auto threads = as_const_int(threads_->extent);
        if (!most || !threads || *threads < *most) fail(op->name + " may have more turns than there are threads in a row");

        SequenceTable table(names_.table, op, static_cast<int>(*most));
        const Stmt body = table.body(names_.chunk_loop + ".last");
        if (table.floats() == 0) fail(op->name + " reads nothing of " + names_.table);
        grown_ = shared_;
        rows_ = table.floats();
        stored_ = Stored(op->body).arrays;
        loop_ = op;
        in_front_ = true;
        const Stmt all =
            For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, mutate(body));
        if (in_front_) fail("there is no loop over " + names_.chunk_loop + " in " + op->name);

        const Stmt barrier =
            Evaluate::make(Call::make(Int(32), Call::gpu_thread_barrier, {CodeGen_GPU_Dev::Shared}, Call::Intrinsic));
        Stmt result = Block::make({table.copy(Variable::make(Int(32), threads_->name) - threads_->min), barrier,
                                   IfThenElse::make(op->extent > 0, loading(op->min)), all});
        loop_ = nullptr;
        std::set<std::string> names;
        for (const auto &[name, at] : places_) names.insert(name);
        for (const std::string &name : names) {
            const Array &array = arrays_.at(name);
            result = Allocate::make(ahead_of(name), array.type, MemoryType::Register, {array.size}, const_true(),
                                    Block::make(result, Free::make(ahead_of(name))));
        }
        return SequenceTable::in_shared(result, table.rows(), shared_->name, size_of(shared_));
    }
};

}  // namespace

IRMutator *make_sequence_ahead_pass(const SequenceAheadNames &names) {
    return new SequenceAhead(names);
}

}  // namespace halation
