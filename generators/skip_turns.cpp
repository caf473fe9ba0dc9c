#include "skip_turns.h"

#include "checked_pass.h"
#include "lowered_names.h"

#include <algorithm>
#include <map>
#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// The conditions around the stores to a Func in the body of a loop, in terms of what is defined outside and of the loop's
// variable.
class Conditions : public IRVisitor {
public:
    explicit Conditions(std::string func) : func_(std::move(func)) {}

    std::vector<std::vector<Expr>> of_stores;
    std::set<std::string> variables, stored;  // of loops, and memory written, in the body

private:
    using IRVisitor::visit;
    const std::string func_;
    std::map<std::string, Expr> lets_;
    std::vector<Expr> around_;

    void visit(const LetStmt *op) override {
        lets_[op->name] = substitute(lets_, op->value);
        op->body.accept(this);
        lets_.erase(op->name);
    }
    void visit(const For *op) override {
        variables.insert(op->name);
        IRVisitor::visit(op);
    }
    void visit(const IfThenElse *op) override {
        if (op->else_case.defined()) return IRVisitor::visit(op);
        std::vector<Expr> all = {substitute(lets_, op->condition)};
        const size_t outside = around_.size();
        while (!all.empty()) {
            const Expr next = all.back();
            all.pop_back();
            if (const And *both = next.as<And>()) {
                all.push_back(both->a);
                all.push_back(both->b);
            } else {
                around_.push_back(next);
            }
        }
        op->then_case.accept(this);
        around_.resize(outside);
    }
    void visit(const Store *op) override {
        stored.insert(op->name);
        if (is_of_func(op->name, func_)) of_stores.push_back(around_);
    }
};

class Uses : public IRVisitor {
public:
    std::set<std::string> names;  // variables and memory

private:
    using IRVisitor::visit;
    void visit(const Variable *op) override { names.insert(op->name); }
    void visit(const Load *op) override {
        names.insert(op->name);
        IRVisitor::visit(op);
    }
};

class SkipTurns : public CheckedPass {
public:
    explicit SkipTurns(std::vector<LoopOfSum> loops) : loops_(std::move(loops)), found_(loops_.size(), false) {}

private:
    using IRMutator::visit;
    const std::vector<LoopOfSum> loops_;
    std::vector<bool> found_;
    std::set<std::string> threads_;

    void check() override {
        for (size_t i = 0; i < loops_.size(); i++)
            if (!found_[i])
                throw CompileError("skipping turns of the loop over " + loops_[i].first + ": there is no condition around " +
                                   loops_[i].second + " that holds for all threads of a block");
    }

    Stmt visit(const For *op) override {
        if (op->for_type == ForType::GPUThread) threads_.insert(op->name);
        Stmt result = IRMutator::visit(op);
        for (size_t i = 0; i < loops_.size(); i++)
            if (is_loop_over(op->name, loops_[i].first)) result = skipping(result.as<For>(), i);
        return result;
    }

    Stmt skipping(const For *loop, size_t index) {
        Conditions conditions(loops_[index].second);
        loop->body.accept(&conditions);
        if (conditions.of_stores.empty()) return loop;
        Expr of_turns = const_true(), of_loop = const_true();
        for (const Expr &condition : conditions.of_stores[0]) {
            const bool everywhere =
                std::all_of(conditions.of_stores.begin(), conditions.of_stores.end(), [&](const std::vector<Expr> &all) {
                    return std::any_of(all.begin(), all.end(), [&](const Expr &other) { return graph_equal(condition, other); });
                });
            Uses uses;
            condition.accept(&uses);
            const bool uniform = std::none_of(uses.names.begin(), uses.names.end(), [&](const std::string &name) {
                return threads_.count(name) || conditions.variables.count(name) || conditions.stored.count(name);
            });
            if (!everywhere || !uniform) continue;
            found_[index] = true;
            Expr &all = uses.names.count(loop->name) ? of_turns : of_loop;
            all = all && condition;
        }
        const Stmt body = is_const_one(of_turns) ? loop->body : IfThenElse::make(simplify(of_turns), loop->body);
        const Stmt turns =
            For::make(loop->name, loop->min, loop->extent, loop->for_type, loop->partition_policy, loop->device_api, body);
        return is_const_one(of_loop) ? turns : IfThenElse::make(simplify(of_loop), turns);
    }
};

}  // namespace

IRMutator *make_skip_turns_pass(const std::vector<LoopOfSum> &loops) {
    return new SkipTurns(loops);
}

}  // namespace halation
