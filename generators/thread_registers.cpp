#include "thread_registers.h"

#include "among_threads.h"
#include "lowered_names.h"

#include <map>
#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

class ThreadRegisters : public AmongThreads {
public:
    explicit ThreadRegisters(std::vector<std::string> funcs)
        : AmongThreads("keeping a Func in the registers of threads"), funcs_(std::move(funcs)) {}

private:
    using AmongThreads::visit;

    struct Kept {
        Array array;
        std::set<int> stored;  // of its places
    };

    const std::vector<std::string> funcs_;
    std::set<std::string> found_;       // of the Funcs
    std::map<std::string, Kept> kept_;  // of the allocations around what is visited

    // In other memory they would go by another name, and past this pass.
    void check() override {
        for (const std::string &func : funcs_)
            if (!found_.count(func)) fail(func + " must be in MemoryType::Stack at the block");
    }

    // Halide cannot see in a kernel that the promised bounds hold, and would warn that it does not look. The places of elements
    // are looked at here.
    Stmt visit(const AssertStmt *op) override { return threads_.empty() ? IRMutator::visit(op) : Evaluate::make(0); }

    Stmt visit(const Allocate *op) override {
        const std::string *func = func_of(op->name, funcs_);
        if (!func) return IRMutator::visit(op);
        if (op->memory_type != MemoryType::Stack) fail(op->name + " must be in MemoryType::Stack");
        found_.insert(*func);
        kept_[op->name] = {};
        const Stmt body = mutate(op->body);
        const Kept kept = kept_.at(op->name);
        kept_.erase(op->name);
        if (static_cast<int>(kept.stored.size()) != kept.array.size())
            fail("an element of " + op->name + " is read that is not computed");
        return Allocate::make(op->name, op->type, MemoryType::Register, {kept.array.size()}, const_true(), body);
    }

    Stmt visit(const Store *op) override {
        if (!kept_.count(op->name)) return IRMutator::visit(op);
        const Expr value = mutate(op->value), index = mutate(op->index);
        Kept &kept = kept_.at(op->name);
        const int at = place(&kept.array, op->name, index);
        kept.stored.insert(at);
        return Store::make(op->name, value, at, Parameter(), mutate(op->predicate), ModulusRemainder());
    }

    Expr visit(const Load *op) override {
        if (!kept_.count(op->name)) return IRMutator::visit(op);
        const int at = place(&kept_.at(op->name).array, op->name, mutate(op->index));
        return Load::make(op->type, op->name, at, Buffer<>(), Parameter(), mutate(op->predicate), ModulusRemainder());
    }
};

}  // namespace

IRMutator *make_thread_registers_pass(const std::vector<std::string> &funcs) {
    return new ThreadRegisters(funcs);
}

}  // namespace halation
