#include "among_threads.h"

#include <sstream>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// x % y as x - x / y * y, of which more is known where x is a sum.
class WithoutMod : public IRMutator {
    using IRMutator::visit;
    Expr visit(const Mod *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        return a - a / b * b;
    }
};

}  // namespace

void AmongThreads::fail(const std::string &what) const {
    throw CompileError(pass_ + ": " + what);
}

Stmt AmongThreads::visit(const For *op) {
    if (op->for_type != ForType::GPUThread) return IRMutator::visit(op);
    threads_.push_back(op->name);
    const ScopedBinding<Interval> bound(bounds_, op->name, Interval(op->min, simplify(op->min + op->extent - 1)));
    Stmt result = IRMutator::visit(op);
    threads_.pop_back();
    return result;
}

int AmongThreads::place(Array *array, const std::string &name, const Expr &given) const {
    const Expr index = simplify(WithoutMod().mutate(substitute(lets_, given)), true, bounds_);
    std::map<std::string, Expr> zero;
    for (const std::string &thread : threads_) zero[thread] = 0;
    const Expr offset = simplify(substitute(zero, index));
    std::ostringstream text;
    text << "an element of " << name << " is at " << index;
    const auto constant = as_const_int(offset);
    if (!constant) fail(text.str() + ", which is no constant place of its thread");
    const Expr part = simplify(index - offset, true, bounds_);
    if (!array->thread_part.defined()) array->thread_part = part;
    if (!can_prove(part == array->thread_part)) fail(text.str() + ", which is another thread's");
    return array->slots.emplace(*constant, array->size()).first->second;
}

}  // namespace halation
