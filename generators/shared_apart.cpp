#include "shared_apart.h"

#include "checked_pass.h"
#include "lowered_names.h"

#include <map>
#include <optional>
#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// Bytes that a place is a multiple of, for loads of several elements at once.
constexpr int aligned = 16;

// Puts arrays into the block's shared memory, in front of what is there.
class Moved : public IRMutator {
public:
    Moved(std::string shared, int taken, const std::map<std::string, int> &places)
        : shared_(std::move(shared)), taken_(taken), places_(places) {}

private:
    using IRMutator::visit;

    const std::string shared_;
    const int taken_;
    const std::map<std::string, int> &places_;

    // Where an array begins, in elements; none if it is in other memory.
    std::optional<int> begin(const std::string &array, const Type &type) const {
        const auto place = places_.find(array);
        if (array != shared_ && place == places_.end()) return {};
        return (array == shared_ ? taken_ : place->second) / type.bytes();
    }
    Expr visit(const Load *op) override {
        const std::optional<int> at = begin(op->name, op->type.element_of());
        if (!at) return IRMutator::visit(op);
        return Load::make(op->type, shared_, simplify(mutate(op->index) + *at), Buffer<>(), Parameter(), mutate(op->predicate),
                          ModulusRemainder());
    }
    Stmt visit(const Store *op) override {
        const std::optional<int> at = begin(op->name, op->value.type().element_of());
        if (!at) return IRMutator::visit(op);
        return Store::make(shared_, mutate(op->value), simplify(mutate(op->index) + *at), Parameter(), mutate(op->predicate),
                           ModulusRemainder());
    }
    Stmt visit(const Free *op) override { return places_.count(op->name) ? Evaluate::make(0) : Stmt(op); }
};

class SharedApart : public CheckedPass {
public:
    explicit SharedApart(std::vector<std::string> funcs) : funcs_(std::move(funcs)) {}

private:
    using IRMutator::visit;

    const std::vector<std::string> funcs_;
    std::set<std::string> found_;
    std::map<std::string, int> places_;  // of allocations, in the block's shared memory, in bytes
    const Allocate *shared_ = nullptr;   // of the block around what is visited
    int taken_ = 0;                      // of it, by all of them

    [[noreturn]] static void fail(const std::string &what) {
        throw CompileError("giving a Func shared memory to itself: " + what);
    }

    void check() override {
        for (const std::string &func : funcs_)
            if (!found_.count(func)) fail(func + " must be in MemoryType::Stack at a block that shares memory");
    }

    static Expr size_of(const Allocate *op) {
        Expr size = 1;
        for (const Expr &extent : op->extents) size *= extent;
        return size;
    }

    Stmt visit(const Allocate *op) override {
        if (op->memory_type == MemoryType::GPUShared) return block(op);
        const std::string *func = func_of(op->name, funcs_);
        if (!func || !shared_ || op->memory_type != MemoryType::Stack) return IRMutator::visit(op);
        const auto known = as_const_int(simplify(size_of(op)));
        if (!known) fail(op->name + " has no constant size");
        found_.insert(*func);
        places_[op->name] = taken_;
        taken_ += (static_cast<int>(*known) * op->type.bytes() + aligned - 1) / aligned * aligned;
        return mutate(op->body);
    }

    Stmt block(const Allocate *op) {
        if (shared_) fail("a block has two allocations of shared memory");
        shared_ = op;
        Stmt body = mutate(op->body);
        shared_ = nullptr;
        if (taken_ == 0) return op;
        body = Moved(op->name, taken_, places_).mutate(body);
        const Expr size = size_of(op) + taken_ / op->type.bytes();
        taken_ = 0;
        places_.clear();
        return Allocate::make(op->name, op->type, op->memory_type, {size}, op->condition, body);
    }
};

}  // namespace

IRMutator *make_shared_apart_pass(const std::vector<std::string> &funcs) {
    return new SharedApart(funcs);
}

}  // namespace halation
