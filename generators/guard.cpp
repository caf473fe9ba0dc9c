#include "guard.h"

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

const char *const guard_marker = "halation_guarded";

class Guard : public IRMutator {
    using IRMutator::visit;

    Expr visit(const Call *op) override {
        if (op->call_type != Call::PureExtern || op->name != guard_marker) return IRMutator::visit(op);
        const Expr inside = mutate(op->args[0]);
        if (const Broadcast *one = op->args[1].as<Broadcast>(); one && one->value.as<Load>()) {
            // The same element for all channels, of which there is at least one.
            return Select::make(inside, mutate(op->args[1]), make_zero(op->type));
        }
        const Load *load = op->args[1].as<Load>();
        if (!load) throw CompileError("a guarded load was moved out of its guard");
        if (is_const_one(inside)) return IRMutator::visit(load);
        const Expr zero = make_zero(load->type);
        if (load->type.is_scalar())
            return Call::make(load->type, Call::if_then_else, {inside, IRMutator::visit(load), zero}, Call::PureIntrinsic);
        const int lanes = load->type.lanes();
        const Expr predicate = inside.type().lanes() == lanes ? inside : Broadcast::make(inside, lanes);
        const Expr masked = Load::make(load->type, load->name, mutate(load->index), load->image, load->param,
                                       simplify(load->predicate && predicate), load->alignment);
        return Select::make(predicate, masked, zero);
    }
};

}  // namespace

Expr guarded(Expr inside, Expr load) {
    return Call::make(load.type(), guard_marker, {inside, load}, Call::PureExtern);
}

Expr within(Expr channel, Expr extent) {
    return unsafe_promise_clamped(channel, 0, extent - 1);
}

IRMutator *make_guard_pass() {
    return new Guard;
}

}  // namespace halation
