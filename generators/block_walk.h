// Goes through the code of a block of threads as they do, all at once, as far as what they do is known when a kernel is made.
#ifndef HALATION_GENERATORS_BLOCK_WALK_H
#define HALATION_GENERATORS_BLOCK_WALK_H

#include "lockstep.h"

#include <utility>

namespace halation {

// The loops over the threads of a block, one in the other, whose numbers of turns are constants.
class ThreadLoops {
public:
    // None unless `loop` is such a loop.
    static std::optional<ThreadLoops> of(const Halide::Internal::For *loop);

    Lockstep lockstep() const;
    const Halide::Internal::Stmt &body() const { return body_; }  // of the innermost

private:
    struct Dimension {
        std::string name;
        int64_t min, extent;
    };
    std::vector<Dimension> dimensions_;
    int64_t threads_ = 1;
    Halide::Internal::Stmt body_;
};

bool is_barrier(const Halide::Internal::Evaluate *op);
bool has_barrier(const Halide::Internal::Stmt &s);

// A load or a store. What is not followed may touch any part of the array.
struct Access {
    static constexpr int part = 4;  // bytes of an array that are told from others, whatever the types that they are used as
    const std::string &array;
    bool is_store, is_followed;
    std::vector<std::pair<size_t, int>> parts;  // and the thread that touches each
};

// Loops whose turns are known, and few, are followed turn by turn, others are gone through once for all turns. A condition that
// is not known may hold.
class BlockWalk : public Halide::Internal::IRVisitor {
protected:
    explicit BlockWalk(Lockstep lockstep) : lockstep_(std::move(lockstep)), active_(lockstep_.threads(), true) {}

    virtual void touch(const Access &access) = 0;
    virtual void loop_with_barriers(const Halide::Internal::For *op) { any_turn(op); }
    // Goes through a loop's body once, for any of its turns.
    void any_turn(const Halide::Internal::For *op);

    using IRVisitor::visit;
    void visit(const Halide::Internal::Load *op) override;
    void visit(const Halide::Internal::Store *op) override;
    void visit(const Halide::Internal::Let *op) override { with_let(op); }
    void visit(const Halide::Internal::LetStmt *op) override { with_let(op); }
    void visit(const Halide::Internal::Call *op) override;
    void visit(const Halide::Internal::IfThenElse *op) override;
    void visit(const Halide::Internal::For *op) override;

    // Around the cases of a condition with barriers in them: before the first, between them (there may be no other), after them.
    virtual void begin_case() {}
    virtual void begin_other_case() {}
    virtual void end_cases() {}

private:
    Lockstep lockstep_;
    std::vector<bool> active_;
    int64_t turns_ = 1;  // of the loops that are being followed

    void touch(const std::string &array, const Halide::Type &type, const Halide::Expr &index, bool is_store);
    template<typename LetOrLetStmt> void with_let(const LetOrLetStmt *op) {
        op->value.accept(this);
        lockstep_.with(op->name, op->value, [&] { op->body.accept(this); });
    }
    // Goes through something as the threads for which a condition may hold.
    template<typename Node> void where(const std::vector<bool> &holds, const Node &node) {
        const std::vector<bool> outer = active_;
        for (size_t thread = 0; thread < active_.size(); thread++) active_[thread] = outer[thread] && holds[thread];
        node.accept(this);
        active_ = outer;
    }
};

}  // namespace halation
#endif
