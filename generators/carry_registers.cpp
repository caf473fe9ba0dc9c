#include "carry_registers.h"

#include "carry.h"
#include "lowered_names.h"

#include <algorithm>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

[[noreturn]] void fail(const std::string &what) {
    throw CompileError("carrying the state round the chunk loop in registers: " + what);
}

class CarryRegisters : public IRMutator {
public:
    explicit CarryRegisters(CarryRegistersNames names) : names_(std::move(names)) {}

    using IRMutator::mutate;

private:
    using IRMutator::visit;

    const CarryRegistersNames names_;
    std::vector<std::string> threads_;  // thread loops around what is visited
    const For *chunk_loop_ = nullptr;
    int chunk_loops_ = 0;
    // What a thread keeps.
    struct Array {
        std::map<int64_t, int> slots;  // offset of an element in the tile, less the thread's own: place in its array
        Expr thread_part;
        int size() const { return static_cast<int>(slots.size()); }
    };
    std::map<std::string, Array> arrays_;    // by name
    std::vector<std::string> stored_;        // what was found to be stored in them
    std::map<std::string, Expr> lets_;       // around what is visited, in terms of what is none of them
    std::map<std::string, Expr> loop_lets_;  // those inside the chunk loop
    std::vector<Expr> conditions_;           // likewise
    Stmt first_;                             // what comes before the loop: the initial state

    template<typename LetOrLetStmt> auto with_let(const LetOrLetStmt *op) {
        const auto outer = lets_.find(op->name);
        const Expr shadowed = outer == lets_.end() ? Expr() : outer->second;
        lets_[op->name] = substitute(lets_, op->value);
        if (chunk_loop_) loop_lets_[op->name] = substitute(loop_lets_, op->value);
        auto result = IRMutator::visit(op);
        if (shadowed.defined())
            lets_[op->name] = shadowed;
        else
            lets_.erase(op->name);
        return result;
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
    std::string state_array() const { return names_.state_before + ".registers"; }
    // The array that a Func's elements are in; empty: it stays as it is.
    std::string array_of(const std::string &name) const {
        if (is_state(name)) return state_array();
        const bool kept =
            std::any_of(names_.kept.begin(), names_.kept.end(), [&](const std::string &func) { return is_of_func(name, func); });
        return kept ? name : "";
    }

    // The place in the thread's array of an element of the tile.
    Expr slot(const std::string &name, const Expr &given) {
        const Expr index = simplify(substitute(lets_, given));
        std::map<std::string, Expr> zero;
        for (const std::string &thread : threads_) zero[thread] = 0;
        const Expr offset = simplify(substitute(zero, index));
        const auto constant = as_const_int(offset);
        std::ostringstream text;
        text << index;
        if (!constant) fail("an element of " + name + " is not at a constant place of its thread: " + text.str());
        Array &array = arrays_[array_of(name)];
        const Expr part = simplify(index - offset);
        if (!array.thread_part.defined()) array.thread_part = part;
        if (!can_prove(part == array.thread_part))
            fail("a thread touches elements of " + name + " that are another's: " + text.str());
        return array.slots.emplace(*constant, array.size()).first->second;
    }

    Stmt visit(const For *op) override {
        if (op->for_type == ForType::GPUThread) {
            threads_.push_back(op->name);
            const Stmt result = IRMutator::visit(op);
            threads_.pop_back();
            return result;
        }
        if (!is_loop_over(op->name, names_.chunk_loop)) return IRMutator::visit(op);
        if (op->for_type != ForType::Serial) fail("the loop over chunks must be serial");
        if (threads_.empty()) fail("the loop over chunks must be inside a block");
        if (chunk_loop_ || ++chunk_loops_ > 1) fail("more than one loop over the chunks of one state; is it partitioned?");
        chunk_loop_ = op;
        Stmt loop = IRMutator::visit(op);
        chunk_loop_ = nullptr;
        loop_lets_.clear();
        if (first_.defined()) loop = Block::make(first_, loop);
        // In other memory they would go by another name, and past this pass.
        std::vector<std::string> funcs = names_.kept;
        funcs.insert(funcs.end(), {names_.state_before, names_.state_after});
        for (const std::string &func : funcs)
            if (std::none_of(stored_.begin(), stored_.end(), [&](const std::string &other) { return is_of_func(other, func); }))
                fail(func + " must be in MemoryType::Stack at the block, in the loop over chunks or before it");
        const std::string name = state_array();
        return Allocate::make(name, Float(32), MemoryType::Register, {arrays_[name].size()}, const_true(),
                              Block::make(loop, Free::make(name)));
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
            first_ = common_subexpression_elimination(
                substitute(chunk_loop_->name, chunk_loop_->min, substitute(loop_lets_, IRMutator::visit(op))));
            for (const Expr &condition : conditions_)
                first_ = IfThenElse::make(substitute(chunk_loop_->name, chunk_loop_->min, condition), first_);
            return Evaluate::make(0);
        }
        return IRMutator::visit(op);
    }

    Stmt visit(const Store *op) override {
        const Call *call = op->value.as<Call>();
        if (const std::string *output = copied_to(op->name)) {
            if (!call || !is_marker(call, copy_out_marker)) fail("a copy to an output must be the marker alone");
            const std::vector<Expr> point(call->args.begin() + 2, call->args.end());
            const Stmt store = Store::make(*output, mutate(call->args[0]), output_index(*output, point), Parameter(),
                                           const_true(), ModulusRemainder());
            const Expr inside = simplify(mutate(op->predicate) && mutate(call->args[1]));
            return is_const_one(inside) ? store : IfThenElse::make(inside, store);
        }
        if (const std::string array = array_of(op->name); !array.empty()) {
            stored_.push_back(op->name);
            return Store::make(array, mutate(op->value), slot(op->name, mutate(op->index)), Parameter(), const_true(),
                               ModulusRemainder());
        }
        return IRMutator::visit(op);
    }

    Expr visit(const Load *op) override {
        if (const std::string array = array_of(op->name); !array.empty())
            return Load::make(op->type, array, slot(op->name, mutate(op->index)), Buffer<>(), Parameter(), const_true(),
                              ModulusRemainder());
        return IRMutator::visit(op);
    }

    // What is redirected needs no registers of its own. A copy in a launch of its own keeps its buffer, which nothing is written
    // to.
    Stmt visit(const Allocate *op) override {
        const bool kept = !array_of(op->name).empty();
        if (!kept && !copied_to(op->name)) return IRMutator::visit(op);
        // At the block its size may be that of a run-time K, which Halide allows in Stack only.
        if (kept && op->memory_type != MemoryType::Stack) fail(op->name + " must be in MemoryType::Stack");
        if (kept && !is_state(op->name)) {
            const Stmt body = mutate(op->body);
            return Allocate::make(op->name, op->type, MemoryType::Register, {std::max(arrays_[op->name].size(), 1)}, const_true(),
                                  body);
        }
        return op->memory_type == MemoryType::Stack ? mutate(op->body) : IRMutator::visit(op);
    }
    Stmt visit(const Free *op) override {
        return is_state(op->name) || is_of_func(op->name, names_.final_state_copy) ? Evaluate::make(0) : IRMutator::visit(op);
    }

    Expr visit(const Call *op) override { return is_any_marker(op) ? mutate(op->args[0]) : IRMutator::visit(op); }

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
