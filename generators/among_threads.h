// What passes over the code of a block of threads share: the lets and thread loops around what is visited, and the elements of a
// Func that each thread keeps to itself, as an array of its own.
#ifndef HALATION_GENERATORS_AMONG_THREADS_H
#define HALATION_GENERATORS_AMONG_THREADS_H

#include "checked_pass.h"

#include <Halide.h>

#include <map>
#include <string>
#include <vector>

namespace halation {

class AmongThreads : public CheckedPass {
private:
    template<typename LetOrLetStmt> auto with_let(const LetOrLetStmt *op) {
        const auto outer = lets_.find(op->name);
        const Halide::Expr shadowed = outer == lets_.end() ? Halide::Expr() : outer->second;
        lets_[op->name] = Halide::Internal::substitute(lets_, op->value);
        auto result = IRMutator::visit(op);
        if (shadowed.defined())
            lets_[op->name] = shadowed;
        else
            lets_.erase(op->name);
        return result;
    }

protected:
    // `pass`: what it does, for its messages.
    explicit AmongThreads(std::string pass) : pass_(std::move(pass)) {}

    // Of one Func: where an element is in its tile, less what depends on the thread, and its place in the thread's array.
    struct Array {
        std::map<int64_t, int> slots;
        Halide::Expr thread_part;
        int size() const { return static_cast<int>(slots.size()); }
    };

    // The place of the element of `name` at an index, a new one if it is new. Throws Halide::CompileError if that is no constant
    // for a thread, or if the element is another thread's.
    int place(Array *array, const std::string &name, const Halide::Expr &index) const;

    [[noreturn]] void fail(const std::string &what) const;

    std::map<std::string, Halide::Expr> lets_;  // around what is visited, in terms of what is none of them
    std::vector<std::string> threads_;          // thread loops around what is visited

    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override { return with_let(op); }
    Halide::Expr visit(const Halide::Internal::Let *op) override { return with_let(op); }
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

private:
    const std::string pass_;
    Halide::Internal::Scope<Halide::Internal::Interval> bounds_;  // of threads
};

}  // namespace halation
#endif
