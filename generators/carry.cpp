#include "carry.h"

#include "checked_pass.h"

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

const char *const state_before_marker = "halation_state_before";
const char *const state_after_marker = "halation_state_after";
const char *const copy_out_marker = "halation_copy_out";
const char *const copy_out_too_marker = "halation_copy_out_too";
const char *const in_order_marker = "halation_in_order";
const char *const last_chunk_marker = "halation_last_chunk";

bool is_marker(const Call *call, const char *marker) {
    return call->call_type == Call::PureExtern && call->name == marker;
}

bool is_any_marker(const Call *call) {
    return is_marker(call, state_before_marker) || is_marker(call, state_after_marker) || is_marker(call, copy_out_marker) ||
           is_marker(call, copy_out_too_marker) || is_marker(call, in_order_marker);
}

namespace {

Expr marker(const char *name, std::vector<Expr> args) {
    const Type type = args[0].type();
    return Call::make(type, name, args, Call::PureExtern);
}

[[noreturn]] void fail(const std::string &what) {
    throw CompileError("carrying the state round the chunk loop: " + what);
}

bool ends_with(const std::string &text, const std::string &end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// One load or store of the state: where it lies in its storage, less its place in v and d. Equal for SB and S exactly
// if both have the same layout.
Expr layout_of(const Expr &index, const Expr &v, const Expr &d, const std::vector<Expr> &extents) {
    auto first_lane = [](const Expr &e) -> Expr {
        const Ramp *ramp = e.as<Ramp>();
        const Broadcast *broadcast = e.as<Broadcast>();
        return ramp ? ramp->base : broadcast ? broadcast->value : e;
    };
    return simplify(first_lane(index) - first_lane(v) - first_lane(d) * extents[0]);
}

class Carry : public CheckedPass {
public:
    explicit Carry(CarryNames names) : names_(std::move(names)) {}

private:
    using IRMutator::visit;

    const CarryNames names_;
    const For *chunk_loop_ = nullptr;
    int chunk_loops_ = 0;  // since the storage of SB was allocated
    bool in_state_after_ = false, state_written_ = false;
    bool in_state_reads_ = false, taken_ = false;  // where there is one pass over the state
    std::vector<Expr> before_extents_, after_extents_;
    Expr before_layout_, after_layout_;

    Expr chunk_variable() const { return Variable::make(Int(32), chunk_loop_->name); }

    void check() override {
        check_layouts();
        if (!names_.state_taken.empty() && !taken_) fail(names_.state_taken + " is inlined: it must be computed");
    }

    void check_layouts() {
        if (!before_layout_.defined() && !after_layout_.defined()) return;  // both inlined
        if (!before_layout_.defined() || !after_layout_.defined())
            fail("one of the states before and after a chunk is stored, the other inlined");
        if (before_extents_.size() != after_extents_.size())
            fail("the states before and after a chunk have storage of different rank");
        for (size_t k = 0; k < before_extents_.size(); k++) {
            if (!can_prove(before_extents_[k] == after_extents_[k])) {
                std::ostringstream text;
                text << "the states before and after a chunk have storage of different extents: " << before_extents_[k] << " and "
                     << after_extents_[k];
                fail(text.str());
            }
        }
        if (!can_prove(before_layout_ == after_layout_)) {
            std::ostringstream text;
            text << "the states before and after a chunk are laid out differently: " << before_layout_ << " and "
                 << after_layout_;
            fail(text.str());
        }
    }

    Stmt visit(const For *op) override {
        if (names_.chunk_loop.empty() || !ends_with(op->name, "." + names_.chunk_loop)) return IRMutator::visit(op);
        if (op->for_type != ForType::Serial) fail("the loop over chunks must be serial");
        // A loop cut in parts, or run twice, would start from the initial state again.
        if (chunk_loop_ || ++chunk_loops_ > 1) fail("more than one loop over the chunks of one state; is it partitioned?");
        chunk_loop_ = op;
        state_written_ = false;
        Stmt result = IRMutator::visit(op);
        chunk_loop_ = nullptr;
        return result;
    }

    Stmt visit(const ProducerConsumer *op) override {
        if (!op->is_producer) return IRMutator::visit(op);
        if (!names_.state_reads.empty()) {
            if (op->name == names_.state_reads) {
                ScopedValue<bool> inside(in_state_reads_, true);
                return IRMutator::visit(op);
            }
            if ((op->name == names_.state_taken || op->name == names_.final_state_copy) && !in_state_reads_)
                fail(op->name + " is computed outside " + names_.state_reads + ", which reads the state while it is replaced");
            taken_ = taken_ || op->name == names_.state_taken;
        }
        if (names_.chunk_loop.empty()) {
            if (op->name == names_.state_before || op->name == names_.state_after)
                fail("with a single chunk both states must be inlined");
            return IRMutator::visit(op);
        }
        if (op->name == names_.state_before) {
            if (!chunk_loop_) fail("the state before a chunk is computed outside the loop over chunks");
            return IfThenElse::make(chunk_variable() == chunk_loop_->min, IRMutator::visit(op));
        }
        if (op->name == names_.final_state_copy) {
            if (!chunk_loop_) fail("the final state is copied outside the loop over chunks");
            return IfThenElse::make(chunk_variable() == chunk_loop_->min + chunk_loop_->extent - 1, IRMutator::visit(op));
        }
        if (op->name == names_.state_after) {
            if (!chunk_loop_) fail("the state after a chunk is computed outside the loop over chunks");
            in_state_after_ = true;
            Stmt result = IRMutator::visit(op);
            in_state_after_ = false;
            state_written_ = true;
            return result;
        }
        return IRMutator::visit(op);
    }

    Stmt visit(const Store *op) override {
        const Call *call = op->value.as<Call>();
        if (const auto copy = names_.copies.find(op->name); copy != names_.copies.end()) {
            if (!call || !is_marker(call, copy_out_marker)) fail("a copy to an output must be the marker alone");
            const std::vector<Expr> point(call->args.begin() + 2, call->args.end());
            return Store::make(copy->second, mutate(call->args[0]), output_index(copy->second, point), Parameter(),
                               mutate(simplify(op->predicate && call->args[1])), ModulusRemainder());
        }
        if (op->name == names_.state_before && call && is_marker(call, state_before_marker)) {
            before_layout_ = layout_of(op->index, call->args[1], call->args[2], before_extents_);
            if (expr_uses_var(before_layout_, chunk_loop_->name)) fail("the storage of the state must hold one chunk: fold it");
        }
        if (op->name == names_.state_after) {
            if (!call || !is_marker(call, state_after_marker)) fail("the state after a chunk must be the marker alone");
            after_layout_ = layout_of(op->index, call->args[1], call->args[2], after_extents_);
            return Store::make(names_.state_before, mutate(op->value), mutate(op->index), op->param, mutate(op->predicate),
                               op->alignment);
        }
        return IRMutator::visit(op);
    }

    // The place of a point in an output buffer.
    Expr output_index(const std::string &output, const std::vector<Expr> &point) {
        int lanes = 1;
        for (const Expr &coordinate : point) lanes = std::max(lanes, coordinate.type().lanes());
        const auto spread = [&](const Expr &e) { return e.type().lanes() == lanes ? e : Broadcast::make(e, lanes); };
        Expr index = make_zero(Int(32, lanes));
        for (size_t k = 0; k < point.size(); k++) {
            const std::string dim = std::to_string(k);
            Expr offset = spread(mutate(point[k])) - spread(Variable::make(Int(32), output + ".min." + dim));
            if (k > 0) offset *= spread(Variable::make(Int(32), output + ".stride." + dim));
            index += offset;
        }
        return simplify(index);
    }

    Expr visit(const Load *op) override {
        if (op->name == names_.state_before && state_written_ && !in_state_after_) {
            fail("the state before a chunk is read after the state of the next was written over it");
        }
        if (op->name == names_.state_after) {
            return Load::make(op->type, names_.state_before, mutate(op->index), op->image, op->param, mutate(op->predicate),
                              op->alignment);
        }
        return IRMutator::visit(op);
    }

    // What is redirected into other storage needs none of its own.
    bool redirected(const std::string &name) const { return name == names_.state_after || names_.copies.count(name); }

    Stmt visit(const Allocate *op) override {
        if (op->name == names_.state_before) before_extents_ = op->extents, chunk_loops_ = 0;
        if (op->name == names_.state_after) after_extents_ = op->extents;
        return redirected(op->name) ? mutate(op->body) : IRMutator::visit(op);
    }

    Stmt visit(const Free *op) override { return redirected(op->name) ? Evaluate::make(0) : IRMutator::visit(op); }

    Expr visit(const Call *op) override {
        if (is_marker(op, copy_out_too_marker)) fail("a Func is copied out where it is computed, which only kernels for GPUs do");
        // Where nothing ends the loop after a sequence's own last chunk, chunks beyond it would be copied out over it.
        if (is_marker(op, last_chunk_marker)) fail("the last chunk of a sequence is asked for, which only kernels for GPUs do");
        return is_any_marker(op) ? mutate(op->args[0]) : IRMutator::visit(op);
    }
};

}  // namespace

Expr mark_state_before(Expr value, Expr v, Expr d) {
    return marker(state_before_marker, {value, v, d});
}

Expr mark_state_after(Expr value, Expr v, Expr d, const std::vector<Expr> &order) {
    std::vector<Expr> args = {value, v, d};
    args.insert(args.end(), order.begin(), order.end());
    return marker(state_after_marker, args);
}

Expr mark_copy_out(Expr value, const std::vector<Expr> &point, Expr inside, bool too) {
    std::vector<Expr> args = {value, inside};
    args.insert(args.end(), point.begin(), point.end());
    return marker(too ? copy_out_too_marker : copy_out_marker, args);
}

Expr in_order(Expr value, const std::vector<Expr> &order) {
    std::vector<Expr> args = {value};
    args.insert(args.end(), order.begin(), order.end());
    return marker(in_order_marker, args);
}

Expr mark_last_chunk(Expr c, Expr last) {
    return Call::make(Bool(), last_chunk_marker, {c, last}, Call::PureExtern);
}

Expr last_chunk_of(Expr tokens, int chunk) {
    return (tokens + chunk - 1) / chunk - 1;
}

IRMutator *make_carry_pass(const CarryNames &names) {
    return new Carry(names);
}

}  // namespace halation
