#include "thread_registers.h"

#include "lowered_names.h"

#include <algorithm>
#include <map>
#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

[[noreturn]] void fail(const std::string &what) {
    throw CompileError("keeping a Func in the registers of threads: " + what);
}

// x % y as x - x / y * y, of which more is known where x is a sum.
class WithoutMod : public IRMutator {
    using IRMutator::visit;
    Expr visit(const Mod *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        return a - a / b * b;
    }
};

class ThreadRegisters : public IRMutator {
public:
    explicit ThreadRegisters(std::vector<std::string> funcs) : funcs_(std::move(funcs)) {}

    using IRMutator::mutate;

private:
    using IRMutator::visit;

    // Of one allocation: where an element is, less what depends on the thread, and its place in the thread's array.
    struct Array {
        std::map<int64_t, int> slots;
        std::set<int> stored;  // of the slots
        Expr thread_part;
    };

    const std::vector<std::string> funcs_;
    std::map<std::string, Array> arrays_;  // of the allocations around what is visited
    std::map<std::string, Expr> lets_;     // around what is visited, in terms of what is none of them
    std::vector<std::string> threads_;
    Scope<Interval> bounds_;  // of threads

    template<typename LetOrLetStmt> auto with_let(const LetOrLetStmt *op) {
        const auto outer = lets_.find(op->name);
        const Expr shadowed = outer == lets_.end() ? Expr() : outer->second;
        lets_[op->name] = substitute(lets_, op->value);
        auto result = IRMutator::visit(op);
        if (shadowed.defined())
            lets_[op->name] = shadowed;
        else
            lets_.erase(op->name);
        return result;
    }
    Stmt visit(const LetStmt *op) override { return with_let(op); }
    Expr visit(const Let *op) override { return with_let(op); }

    Stmt visit(const For *op) override {
        if (op->for_type != ForType::GPUThread) return IRMutator::visit(op);
        threads_.push_back(op->name);
        const ScopedBinding<Interval> bound(bounds_, op->name, Interval(op->min, simplify(op->min + op->extent - 1)));
        Stmt result = IRMutator::visit(op);
        threads_.pop_back();
        return result;
    }

    // Halide cannot see in a kernel that the promised bounds hold, and would warn that it does not look. The places of elements
    // are looked at here.
    Stmt visit(const AssertStmt *op) override { return threads_.empty() ? IRMutator::visit(op) : Evaluate::make(0); }

    int slot(const std::string &name, const Expr &given) {
        const Expr index = simplify(WithoutMod().mutate(substitute(lets_, given)), true, bounds_);
        std::map<std::string, Expr> zero;
        for (const std::string &thread : threads_) zero[thread] = 0;
        const Expr offset = simplify(substitute(zero, index));
        std::ostringstream text;
        text << "an element of " << name << " is at " << index;
        const auto constant = as_const_int(offset);
        if (!constant) fail(text.str() + ", which is no constant place of its thread");
        Array &array = arrays_.at(name);
        const Expr part = simplify(index - offset, true, bounds_);
        if (!array.thread_part.defined()) array.thread_part = part;
        if (!can_prove(part == array.thread_part)) fail(text.str() + ", which is another thread's");
        const int next = static_cast<int>(array.slots.size());
        return array.slots.emplace(*constant, next).first->second;
    }

    Stmt visit(const Allocate *op) override {
        const bool ours =
            std::any_of(funcs_.begin(), funcs_.end(), [&](const std::string &func) { return is_of_func(op->name, func); });
        if (!ours) return IRMutator::visit(op);
        if (op->memory_type != MemoryType::Stack) fail(op->name + " must be in MemoryType::Stack");
        arrays_[op->name] = {};
        const Stmt body = mutate(op->body);
        const int elements = static_cast<int>(arrays_.at(op->name).slots.size());
        if (arrays_.at(op->name).stored.size() != arrays_.at(op->name).slots.size())
            fail("an element of " + op->name + " is read that is not computed");
        arrays_.erase(op->name);
        return Allocate::make(op->name, op->type, MemoryType::Register, {elements}, const_true(), body);
    }

    Stmt visit(const Store *op) override {
        if (!arrays_.count(op->name)) return IRMutator::visit(op);
        const Expr value = mutate(op->value), index = mutate(op->index);
        const int place = slot(op->name, index);
        arrays_.at(op->name).stored.insert(place);
        return Store::make(op->name, value, place, Parameter(), mutate(op->predicate), ModulusRemainder());
    }

    Expr visit(const Load *op) override {
        if (!arrays_.count(op->name)) return IRMutator::visit(op);
        return Load::make(op->type, op->name, slot(op->name, mutate(op->index)), Buffer<>(), Parameter(), mutate(op->predicate),
                          ModulusRemainder());
    }
};

}  // namespace

IRMutator *make_thread_registers_pass(const std::vector<std::string> &funcs) {
    return new ThreadRegisters(funcs);
}

}  // namespace halation
