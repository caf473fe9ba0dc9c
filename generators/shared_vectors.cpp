#include "shared_vectors.h"

#include "lowered_names.h"

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

class SharedVectors : public IRMutator {
public:
    explicit SharedVectors(std::string func) : func_(std::move(func)) {}

private:
    using IRMutator::visit;

    const std::string func_;
    std::string shared_;  // of the block around what is visited
    Expr nothing_;        // in a loop over threads
    bool inside_ = false;

    Stmt visit(const Allocate *op) override {
        if (op->memory_type != MemoryType::GPUShared) return IRMutator::visit(op);
        const ScopedValue<std::string> inside(shared_, op->name);
        return IRMutator::visit(op);
    }
    Stmt visit(const For *op) override {
        if (op->for_type != ForType::GPUThread) return IRMutator::visit(op);
        // LLVM knows that a thread's number is less than 1024, not that of how many.
        const Expr number = Variable::make(Int(32), op->name) - op->min;
        const ScopedValue<Expr> inside(nothing_, number / op->extent * 4);
        return IRMutator::visit(op);
    }
    Stmt visit(const ProducerConsumer *op) override {
        if (!op->is_producer || !is_of_func(op->name, func_)) return IRMutator::visit(op);
        const ScopedValue<bool> inside(inside_, true);
        return IRMutator::visit(op);
    }
    Expr visit(const Load *op) override {
        if (!inside_ || op->name != shared_ || !nothing_.defined() || op->type != Float(32) || !is_const(op->index))
            return IRMutator::visit(op);
        return Load::make(op->type, op->name, nothing_ + op->index, op->image, op->param, op->predicate, ModulusRemainder());
    }
};

}  // namespace

IRMutator *make_shared_vectors_pass(const std::string &func) {
    return new SharedVectors(func);
}

}  // namespace halation
