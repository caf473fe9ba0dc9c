#include "carry_registers.h"

#include "among_threads.h"
#include "carry.h"
#include "lowered_names.h"

#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

class CarryRegisters : public AmongThreads {
public:
    explicit CarryRegisters(CarryRegistersNames names)
        : AmongThreads("carrying the state round the chunk loop in registers"), names_(std::move(names)) {}

    using IRMutator::mutate;

private:
    using AmongThreads::visit;

    const CarryRegistersNames names_;
    const For *chunk_loop_ = nullptr;
    int chunk_loops_ = 0;
    Array state_;                            // of both SB and S
    std::set<std::string> stored_;           // of the two
    std::map<std::string, Expr> loop_lets_;  // around what is visited, inside the chunk loop
    std::vector<Expr> conditions_;           // likewise
    // What comes before the loop, the initial state; what comes after it, the copy of the final one; and the last chunk.
    Stmt first_, last_;
    Expr last_chunk_;

    template<typename LetOrLetStmt> auto with_let(const LetOrLetStmt *op) {
        if (chunk_loop_) loop_lets_[op->name] = substitute(loop_lets_, op->value);
        return AmongThreads::visit(op);
    }
    Stmt visit(const LetStmt *op) override { return with_let(op); }
    Expr visit(const Let *op) override { return with_let(op); }

    bool is_state(const std::string &name) const {
        return is_of_func(name, names_.state_before) || is_of_func(name, names_.state_after);
    }
    const std::string *copied_to(const std::string &name) const {
        for (const auto &[func, output] : names_.copies)
            if (is_of_func(name, func)) return &output;
        return nullptr;
    }
    std::string array() const { return names_.state_before + ".registers"; }
    std::string last_name() const { return names_.chunk_loop + ".last"; }

    Stmt visit(const For *op) override {
        if (op->for_type == ForType::GPUThread || !is_loop_over(op->name, names_.chunk_loop)) return AmongThreads::visit(op);
        if (op->for_type != ForType::Serial) fail("the loop over chunks must be serial");
        if (threads_.empty()) fail("the loop over chunks must be inside a block");
        if (chunk_loop_ || ++chunk_loops_ > 1) fail("more than one loop over the chunks of one state; is it partitioned?");
        chunk_loop_ = op;
        Stmt loop = IRMutator::visit(op);
        chunk_loop_ = nullptr;
        loop_lets_.clear();
        if (last_.defined()) {
            const For *all = loop.as<For>();
            const Expr last = Variable::make(Int(32), last_name());
            loop = For::make(all->name, all->min, last + 1 - all->min, all->for_type, all->partition_policy, all->device_api,
                             all->body);
            loop = LetStmt::make(last_name(), last_chunk_, Block::make(loop, last_));
        }
        if (first_.defined()) loop = Block::make(first_, loop);
        // In other memory they would go by another name, and past this pass.
        for (const std::string &func : {names_.state_before, names_.state_after})
            if (!stored_.count(func))
                fail(func + " must be in MemoryType::Stack at the block, in the loop over chunks or before it");
        return Allocate::make(array(), Float(32), MemoryType::Register, {state_.size()}, const_true(),
                              Block::make(loop, Free::make(array())));
    }

    Stmt visit(const IfThenElse *op) override {
        if (!chunk_loop_ || op->else_case.defined()) return IRMutator::visit(op);
        conditions_.push_back(substitute(loop_lets_, op->condition));
        Stmt result = IRMutator::visit(op);
        conditions_.pop_back();
        return result;
    }

    Stmt visit(const ProducerConsumer *op) override {
        if (op->is_producer && is_of_func(op->name, names_.state_before)) {
            if (!chunk_loop_) fail("the state before a chunk is computed outside the loop over chunks");
            // At the first chunk only: before the loop, so that it is on its way while other things are.
            first_ = read_either(outside_loop(IRMutator::visit(op), chunk_loop_->min), names_.bits);
            return Evaluate::make(0);
        }
        if (op->is_producer && chunk_loop_ && is_of_func(op->name, names_.final_state_copy)) {
            // After the loop, in which its addresses would take a register for each element.
            const Stmt copy = IRMutator::visit(op);
            if (!last_chunk_.defined()) fail("the copy of " + names_.state_after + " does not say which chunk is the last");
            last_ = write_either(outside_loop(copy, Variable::make(Int(32), last_name())), names_.bits);
            return Evaluate::make(0);
        }
        return IRMutator::visit(op);
    }

    // What is inside the loop, at one chunk.
    Stmt outside_loop(const Stmt &s, const Expr &chunk) const {
        Stmt at_chunk = common_subexpression_elimination(substitute(chunk_loop_->name, chunk, substitute(loop_lets_, s)));
        for (const Expr &condition : conditions_)
            at_chunk = IfThenElse::make(substitute(chunk_loop_->name, chunk, condition), at_chunk);
        return at_chunk;
    }

    Expr last_chunk(const Call *op) {
        if (!chunk_loop_) fail("the last chunk is asked for outside the loop over chunks");
        last_chunk_ = simplify(substitute(loop_lets_, mutate(op->args[1])));
        const Expr uses = substitute(lets_, last_chunk_);
        for (const std::string &thread : threads_)
            if (expr_uses_var(uses, thread)) fail("the last chunk depends on " + thread);
        if (expr_uses_var(uses, chunk_loop_->name)) fail("the last chunk depends on " + chunk_loop_->name);
        return const_true();
    }

    Stmt visit(const Store *op) override {
        const Call *call = op->value.as<Call>();
        if (const std::string *output = copied_to(op->name)) {
            const bool too = call && is_marker(call, copy_out_too_marker);
            if (!too && (!call || !is_marker(call, copy_out_marker))) fail("a copy to an output must be the marker alone");
            const std::vector<Expr> point(call->args.begin() + 2, call->args.end());
            const std::string name = op->name + ".copied";
            const Expr value = mutate(call->args[0]), stored = too ? Variable::make(value.type(), name) : value;
            Stmt copy = Store::make(*output, stored, output_index(*output, point), Parameter(), const_true(), ModulusRemainder());
            const Expr inside = simplify(mutate(op->predicate) && mutate(call->args[1]));
            if (!is_const_one(inside)) copy = IfThenElse::make(inside, copy);
            if (!too) return copy;
            const Stmt store = Store::make(op->name, stored, mutate(op->index), op->param, mutate(op->predicate), op->alignment);
            return LetStmt::make(name, value, Block::make(store, copy));
        }
        if (!is_state(op->name)) return IRMutator::visit(op);
        stored_.insert(is_of_func(op->name, names_.state_before) ? names_.state_before : names_.state_after);
        const int at = place(&state_, op->name, mutate(op->index));
        return Store::make(array(), mutate(op->value), at, Parameter(), const_true(), ModulusRemainder());
    }

    Expr visit(const Load *op) override {
        if (!is_state(op->name)) return IRMutator::visit(op);
        return Load::make(op->type, array(), place(&state_, op->name, mutate(op->index)), Buffer<>(), Parameter(), const_true(),
                          ModulusRemainder());
    }

    // What is redirected needs no registers of its own. A copy in a launch of its own keeps its buffer, which nothing is written
    // to.
    Stmt visit(const Allocate *op) override {
        if (!is_state(op->name) && !copied_to(op->name)) return IRMutator::visit(op);
        // At the block its size may be that of a run-time K, which Halide allows in Stack only.
        if (is_state(op->name) && op->memory_type != MemoryType::Stack) fail(op->name + " must be in MemoryType::Stack");
        return op->memory_type == MemoryType::Stack ? mutate(op->body) : IRMutator::visit(op);
    }
    Stmt visit(const Free *op) override {
        return is_state(op->name) || is_of_func(op->name, names_.final_state_copy) ? Evaluate::make(0) : IRMutator::visit(op);
    }

    Expr visit(const Call *op) override {
        if (is_marker(op, last_chunk_marker)) return last_chunk(op);
        return is_any_marker(op) ? mutate(op->args[0]) : IRMutator::visit(op);
    }

    Expr output_index(const std::string &output, const std::vector<Expr> &point) {
        Expr index = 0;
        for (size_t k = 0; k < point.size(); k++) {
            const std::string dim = std::to_string(k);
            index += (mutate(point[k]) - Variable::make(Int(32), output + ".min." + dim)) *
                     Variable::make(Int(32), output + ".stride." + dim);
        }
        return simplify(index);
    }
};

}  // namespace

IRMutator *make_carry_registers_pass(const CarryRegistersNames &names) {
    return new CarryRegisters(names);
}

}  // namespace halation
