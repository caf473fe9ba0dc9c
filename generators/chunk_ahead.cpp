#include "chunk_ahead.h"

#include "lowered_names.h"

#include <algorithm>
#include <map>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// What there is in the code of a staged Func.
class Contents : public IRVisitor {
public:
    bool branches = false;
    std::vector<std::string> stored, loaded;

private:
    using IRVisitor::visit;
    void visit(const For *op) override {
        branches = true;
        IRVisitor::visit(op);
    }
    void visit(const Allocate *op) override {
        branches = true;  // intermediate results of its own
        IRVisitor::visit(op);
    }
    void visit(const IfThenElse *op) override {
        branches = true;  // something that is not for every thread
        IRVisitor::visit(op);
    }
    void visit(const Store *op) override {
        stored.push_back(op->name);
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        loaded.push_back(op->name);
        IRVisitor::visit(op);
    }
};

// The code of a staged Func in two: what is loaded goes to registers, and what becomes of it comes from there, so that nobody
// waits for a load where it is issued.
class SplitLoads : public IRMutator {
public:
    explicit SplitLoads(std::string array) : array_(std::move(array)) {}

    std::vector<std::pair<std::string, Type>> registers;
    std::vector<Stmt> loads;

private:
    using IRMutator::visit;
    const std::string array_;

    std::vector<Expr> loaded_;

    // The same load once: an exponential, say, has its argument in many places.
    Expr from_register(const Expr &load) {
        const auto known =
            std::find_if(loaded_.begin(), loaded_.end(), [&](const Expr &other) { return equal(load, other); }) - loaded_.begin();
        const std::string name = array_ + "." + std::to_string(known);
        const Type type = load.type();
        if (known == static_cast<std::ptrdiff_t>(loaded_.size())) {
            loaded_.push_back(load);
            registers.emplace_back(name, type);
            loads.push_back(Store::make(name, load, 0, Parameter(), const_true(), ModulusRemainder()));
        }
        return Load::make(type, name, 0, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
    }
    // Integers are what says where to load from.
    Expr visit(const Load *op) override { return op->type.is_float() ? from_register(op) : IRMutator::visit(op); }
    Expr visit(const Call *op) override {
        const bool guarded_load = op->is_intrinsic(Call::if_then_else) && op->type.is_float() && op->args[1].as<Load>();
        return guarded_load ? from_register(op) : IRMutator::visit(op);
    }
};

// Lets of expressions and statements put in their place.
class InlineLets : public IRMutator {
    using IRMutator::visit;
    Stmt visit(const LetStmt *op) override { return mutate(substitute(op->name, op->value, op->body)); }
    Expr visit(const Let *op) override { return mutate(substitute(op->name, op->value, op->body)); }
};

class ChunkAhead : public IRMutator {
public:
    explicit ChunkAhead(ChunkAheadNames names) : names_(std::move(names)) {}

private:
    using IRMutator::visit;

    const ChunkAheadNames names_;
    const For *loop_ = nullptr;
    std::vector<std::string> stored_;   // all that is computed in the loop
    std::map<std::string, Expr> lets_;  // inside the loop
    std::vector<Expr> conditions_;      // around what is visited, inside the loop
    std::vector<Stmt> first_;           // before the loop
    std::vector<std::pair<std::string, Type>> registers_;

    Stmt visit(const For *op) override {
        if (loop_ || !is_loop_over(op->name, names_.chunk_loop)) return IRMutator::visit(op);
        loop_ = op;
        Contents contents;
        op->body.accept(&contents);
        stored_ = contents.stored;
        Stmt result = IRMutator::visit(op);
        loop_ = nullptr;
        if (first_.empty()) return result;
        first_.push_back(result);
        for (const auto &[name, type] : registers_) first_.push_back(Free::make(name));
        result = Block::make(first_);
        for (const auto &[name, type] : registers_)
            result = Allocate::make(name, type, MemoryType::Register, {1}, const_true(), result);
        first_.clear();
        registers_.clear();
        return result;
    }

    template<typename LetOrLetStmt> auto with_let(const LetOrLetStmt *op) {
        if (!loop_) return IRMutator::visit(op);
        lets_[op->name] = substitute(lets_, op->value);
        auto result = IRMutator::visit(op);
        lets_.erase(op->name);
        return result;
    }
    Stmt visit(const LetStmt *op) override { return with_let(op); }

    Stmt visit(const IfThenElse *op) override {
        if (!loop_ || op->else_case.defined()) return IRMutator::visit(op);
        conditions_.push_back(substitute(lets_, op->condition));
        Stmt result = IRMutator::visit(op);
        conditions_.pop_back();
        return result;
    }

    Stmt visit(const ProducerConsumer *op) override {
        const bool staged = op->is_producer && std::any_of(names_.staged.begin(), names_.staged.end(),
                                                           [&](const std::string &func) { return is_of_func(op->name, func); });
        if (!loop_ || !staged) return IRMutator::visit(op);
        Contents contents;
        op->body.accept(&contents);
        if (contents.branches) return IRMutator::visit(op);
        for (const std::string &load : contents.loaded)
            if (std::find(stored_.begin(), stored_.end(), load) != stored_.end())
                throw CompileError("asking for chunks ahead: " + op->name + " reads " + load +
                                   ", which is computed in the same loop");
        SplitLoads split(op->name + ".ahead");
        const Stmt storing = split.mutate(InlineLets().mutate(substitute(lets_, op->body)));
        registers_.insert(registers_.end(), split.registers.begin(), split.registers.end());
        const Stmt loading = Block::make(split.loads);
        const Expr chunk = Variable::make(Int(32), loop_->name), last = loop_->min + loop_->extent - 1;
        Stmt first = substitute(loop_->name, loop_->min, loading);
        for (const Expr &condition : conditions_) first = IfThenElse::make(substitute(loop_->name, loop_->min, condition), first);
        first_.push_back(first);
        const Stmt next = substitute(loop_->name, min(chunk + 1, last), loading);
        return ProducerConsumer::make(op->name, true, common_subexpression_elimination(Block::make(storing, next)));
    }
};

}  // namespace

IRMutator *make_chunk_ahead_pass(const ChunkAheadNames &names) {
    return new ChunkAhead(names);
}

}  // namespace halation
