#include "masks.h"

#include <map>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

class Masks : public IRMutator {
    using IRMutator::visit;

    // Of integers, in terms of loop variables and of extents and strides. Not those that would have another value where they are
    // put in: loads, and calls that need not give the same each time.
    std::map<std::string, Expr> lets_;
    Scope<Interval> loops_;

    Expr expanded(const Expr &e) const { return substitute(lets_, e); }

    Stmt visit(const LetStmt *op) override {
        if (op->value.type() != Int(32) || !is_pure(op->value)) return IRMutator::visit(op);
        lets_[op->name] = expanded(op->value);
        Stmt result = IRMutator::visit(op);
        lets_.erase(op->name);
        return result;
    }

    Stmt visit(const For *op) override {
        const Expr first = expanded(op->min), last = expanded(op->min + op->extent - 1);
        ScopedBinding<Interval> bound(loops_, op->name, Interval(first, simplify(last)));
        return IRMutator::visit(op);
    }

    // The least or the largest lane; undefined where it cannot be said.
    static Expr lane(const Expr &e, bool largest) {
        if (e.type().is_scalar()) return e;
        if (const Broadcast *broadcast = e.as<Broadcast>()) return lane(broadcast->value, largest);
        const Ramp *ramp = e.as<Ramp>();
        if (!ramp || !ramp->base.type().is_scalar() || !is_const(ramp->stride)) return Expr();
        return is_positive_const(ramp->stride) == largest ? simplify(ramp->base + ramp->stride * (ramp->lanes - 1)) : ramp->base;
    }

    bool below(const Expr &a, const Expr &b, bool or_equal) const {
        const Expr most = lane(a, true), least = lane(b, false);
        if (!most.defined() || !least.defined() || most.type() != Int(32)) return false;
        const Interval difference = bounds_of_expr_in_scope(simplify(expanded(most) - expanded(least)), loops_);
        if (!difference.has_upper_bound()) return false;
        return can_prove(or_equal ? difference.max <= 0 : difference.max < 0);
    }

    bool always(const Expr &condition) const {
        if (is_const_one(condition)) return true;
        if (const Broadcast *broadcast = condition.as<Broadcast>()) return always(broadcast->value);
        if (const And *both = condition.as<And>()) return always(both->a) && always(both->b);
        if (const LT *less = condition.as<LT>()) return below(less->a, less->b, false);
        if (const LE *at_most = condition.as<LE>()) return below(at_most->a, at_most->b, true);
        return false;
    }

    Expr visit(const Select *op) override {
        if (!op->condition.type().is_scalar() && always(op->condition)) return mutate(op->true_value);
        return IRMutator::visit(op);
    }

    Expr visit(const Load *op) override {
        if (is_const_one(op->predicate) || !always(op->predicate)) return IRMutator::visit(op);
        return Load::make(op->type, op->name, mutate(op->index), op->image, op->param, const_true(op->type.lanes()),
                          op->alignment);
    }

    Stmt visit(const Store *op) override {
        if (is_const_one(op->predicate) || !always(op->predicate)) return IRMutator::visit(op);
        return Store::make(op->name, mutate(op->value), mutate(op->index), op->param, const_true(op->predicate.type().lanes()),
                           op->alignment);
    }
};

}  // namespace

IRMutator *make_masks_pass() {
    return new Masks;
}

}  // namespace halation
