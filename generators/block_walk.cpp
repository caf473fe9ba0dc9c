#include "block_walk.h"

#include <algorithm>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// Of the loops that are followed, in all.
constexpr int64_t most_turns = 64;
// Of an array.
constexpr int64_t most_bytes = 1 << 20;

class BarrierSearch : public IRVisitor {
public:
    bool found = false;

private:
    using IRVisitor::visit;
    void visit(const Evaluate *op) override { found |= is_barrier(op); }
};

}  // namespace

std::optional<ThreadLoops> ThreadLoops::of(const For *loop) {
    ThreadLoops loops;
    for (; loop && loop->for_type == ForType::GPUThread; loop = loops.body_.as<For>()) {
        const auto min = as_const_int(loop->min), extent = as_const_int(loop->extent);
        if (!min || !extent || *extent < 1) return {};
        loops.dimensions_.push_back({loop->name, *min, *extent});
        loops.threads_ *= *extent;
        loops.body_ = loop->body;
    }
    if (loops.dimensions_.empty()) return {};
    return loops;
}

Lockstep ThreadLoops::lockstep() const {
    Lockstep lockstep(static_cast<size_t>(threads_));
    int64_t inner = threads_;
    for (const Dimension &dimension : dimensions_) {
        inner /= dimension.extent;
        Lockstep::Values at(static_cast<size_t>(threads_));
        for (int64_t thread = 0; thread < threads_; thread++)
            at[static_cast<size_t>(thread)] = dimension.min + thread / inner % dimension.extent;
        lockstep.set(dimension.name, at);
    }
    return lockstep;
}

bool is_barrier(const Evaluate *op) {
    const Call *call = op->value.as<Call>();
    return call && call->is_intrinsic(Call::gpu_thread_barrier);
}

bool has_barrier(const Stmt &s) {
    BarrierSearch search;
    s.accept(&search);
    return search.found;
}

void BlockWalk::touch(const std::string &array, const Type &type, const Expr &index, bool is_store) {
    Expr first = index, step = 0;
    const Ramp *ramp = index.as<Ramp>();
    if (ramp && ramp->base.type().is_scalar()) first = ramp->base, step = ramp->stride;
    const std::optional<Lockstep::Values> at = lockstep_.value(first), steps = lockstep_.value(step);
    Access access{array, is_store, at && steps, {}};
    for (size_t thread = 0; access.is_followed && thread < active_.size(); thread++)
        for (int lane = 0; active_[thread] && lane < index.type().lanes(); lane++) {
            const int64_t begin = ((*at)[thread] + lane * (*steps)[thread]) * type.bytes(), end = begin + type.bytes();
            access.is_followed &= begin >= 0 && end <= most_bytes;
            for (int64_t part = begin / Access::part; access.is_followed && part * Access::part < end; part++)
                access.parts.emplace_back(static_cast<size_t>(part), static_cast<int>(thread));
        }
    if (!access.is_followed) access.parts.clear();
    touch(access);
}

void BlockWalk::visit(const Load *op) {
    IRVisitor::visit(op);
    touch(op->name, op->type.element_of(), op->index, false);
}

void BlockWalk::visit(const Store *op) {
    IRVisitor::visit(op);
    touch(op->name, op->value.type().element_of(), op->index, true);
}

void BlockWalk::visit(const Call *op) {
    if (!op->is_intrinsic(Call::if_then_else)) return IRVisitor::visit(op);
    op->args[0].accept(this);
    where(lockstep_.may_hold(op->args[0]), op->args[1]);
    if (op->args.size() == 3) where(lockstep_.may_hold(!op->args[0]), op->args[2]);
}

void BlockWalk::visit(const IfThenElse *op) {
    op->condition.accept(this);
    const bool parts = has_barrier(op);  // otherwise both cases may as well be gone through
    if (parts) begin_case();
    where(lockstep_.may_hold(op->condition), op->then_case);
    if (parts) begin_other_case();
    if (op->else_case.defined()) where(lockstep_.may_hold(!op->condition), op->else_case);
    if (parts) end_cases();
}

void BlockWalk::any_turn(const For *op) {
    lockstep_.set_unknown(op->name);
    op->body.accept(this);
}

void BlockWalk::visit(const For *op) {
    op->min.accept(this);
    op->extent.accept(this);
    if (has_barrier(op->body)) return loop_with_barriers(op);
    const std::optional<Lockstep::Values> min = lockstep_.value(op->min), extent = lockstep_.value(op->extent);
    const int64_t turns = min && extent ? *std::max_element(extent->begin(), extent->end()) : most_turns + 1;
    // Lanes of a warp are threads, of which nothing is known here.
    if (turns * turns_ > most_turns || op->for_type != ForType::Serial) return any_turn(op);
    turns_ *= std::max<int64_t>(turns, 1);
    for (int64_t turn = 0; turn < turns; turn++) {
        Lockstep::Values at = *min;
        std::vector<bool> goes_on(at.size());
        for (size_t thread = 0; thread < at.size(); thread++) {
            at[thread] += turn;
            goes_on[thread] = turn < (*extent)[thread];
        }
        lockstep_.set(op->name, at);
        where(goes_on, op->body);
    }
    turns_ /= std::max<int64_t>(turns, 1);
}

}  // namespace halation
