#include "chunk_ahead.h"

#include "block_walk.h"
#include "lowered_names.h"

#include <algorithm>
#include <map>
#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// What there is in the code of a staged Func.
class Contents : public IRVisitor {
public:
    bool branches = false;
    std::vector<std::string> stored, loaded;

private:
    using IRVisitor::visit;
    void visit(const For *op) override {
        branches = true;
        IRVisitor::visit(op);
    }
    void visit(const IfThenElse *op) override {
        branches |= op->else_case.defined();
        IRVisitor::visit(op);
    }
    void visit(const Store *op) override {
        stored.push_back(op->name);
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        loaded.push_back(op->name);
        IRVisitor::visit(op);
    }
};

// The code of a staged Func in two: what is loaded goes to registers, and what becomes of it comes from there, so that nobody
// waits for a load where it is issued.
class SplitLoads : public IRMutator {
public:
    // `own`: what the code stores, intermediate results among it.
    SplitLoads(std::string array, std::vector<std::string> own) : array_(std::move(array)), own_(std::move(own)) {}

    struct Registers {
        std::string name;
        Type type;
        int count;
    };
    std::vector<Registers> registers;  // one array a type: Metal has a limit to how many scopes are around a statement
    std::vector<Stmt> loads;

private:
    using IRMutator::visit;
    const std::string array_;
    const std::vector<std::string> own_;
    std::vector<Expr> conditions_;  // around what is visited

    struct Ahead {
        Expr load;
        std::vector<Expr> conditions;
        Expr in_register;
        bool same(const Expr &other, const std::vector<Expr> &around) const {
            return equal(load, other) && std::equal(conditions.begin(), conditions.end(), around.begin(), around.end(),
                                                    [](const Expr &a, const Expr &b) { return equal(a, b); });
        }
    };
    std::vector<Ahead> ahead_;

    // Floats, and those that are kept as bits; other integers are what says where to load from.
    static bool is_value(const Type &type) { return type.is_float() || type == UInt(16); }

    // The same load once: an exponential, say, has its argument in many places.
    Expr visit(const Load *op) override {
        if (!is_value(op->type) || std::find(own_.begin(), own_.end(), op->name) != own_.end()) return IRMutator::visit(op);
        const auto known =
            std::find_if(ahead_.begin(), ahead_.end(), [&](const Ahead &other) { return other.same(op, conditions_); });
        if (known != ahead_.end()) return known->in_register;
        auto array = std::find_if(registers.begin(), registers.end(), [&](const Registers &r) { return r.type == op->type; });
        if (array == registers.end())
            array = registers.insert(array, {array_ + "." + std::to_string(registers.size()), op->type, 0});
        const int index = array->count++;
        Stmt load = Store::make(array->name, op, index, Parameter(), const_true(), ModulusRemainder());
        for (const Expr &condition : conditions_) load = IfThenElse::make(condition, load);
        loads.push_back(load);
        const Expr in_register =
            Load::make(op->type, array->name, index, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
        ahead_.push_back({op, conditions_, in_register});
        return in_register;
    }
    Expr visit(const Call *op) override {
        if (!op->is_intrinsic(Call::if_then_else)) return IRMutator::visit(op);
        conditions_.push_back(op->args[0]);
        const Expr then = mutate(op->args[1]);
        conditions_.pop_back();
        std::vector<Expr> args = {op->args[0], then};
        if (op->args.size() == 3) {
            conditions_.push_back(!op->args[0]);
            args.push_back(mutate(op->args[2]));
            conditions_.pop_back();
        }
        return Call::make(op->type, op->name, args, op->call_type);
    }
    Stmt visit(const IfThenElse *op) override {
        conditions_.push_back(op->condition);
        const Stmt then = mutate(op->then_case);
        conditions_.pop_back();
        return IfThenElse::make(op->condition, then);
    }
};

// Lets of expressions and statements put in their place.
class InlineLets : public IRMutator {
    using IRMutator::visit;
    Stmt visit(const LetStmt *op) override { return mutate(substitute(op->name, op->value, op->body)); }
    Expr visit(const Let *op) override { return mutate(substitute(op->name, op->value, op->body)); }
};

// Which staged Funcs have the elements that they store to themselves, and read nothing that others store.
class Alone : public BlockWalk {
public:
    Alone(const ChunkAheadNames &names, const ThreadLoops &loops) : BlockWalk(loops.lockstep()), names_(names) {
        loops.body().accept(this);
    }

    bool is_alone(const std::string &func) const {
        if (!storing_.count(func) || together_.count(func)) return false;
        const auto reads = read_.find(func);
        if (reads == read_.end()) return true;
        for (const auto &[array, parts] : reads->second) {
            const auto stored = stored_.find(array);
            if (stored == stored_.end()) continue;
            if (parts.count(anywhere)) return false;
            for (const size_t part : parts) {
                const auto by = stored->second.by.find(part);
                if (by != stored->second.by.end() && by->second != func) return false;
            }
        }
        return true;
    }

private:
    const ChunkAheadNames &names_;
    bool in_loop_ = false;
    std::string func_;  // that is being computed, if it is a staged one
    std::set<std::string> storing_, together_;
    struct Stored {
        std::map<size_t, std::string> by;  // a part
        std::set<std::string> all;
        bool anywhere = false;
    };
    std::map<std::string, Stored> stored_;  // of an array
    static constexpr size_t anywhere = SIZE_MAX;
    std::map<std::string, std::map<std::string, std::set<size_t>>> read_;  // by a staged Func, of an array

    using BlockWalk::visit;
    void visit(const ProducerConsumer *op) override {
        const std::string outer = func_;
        const std::string *func = op->is_producer ? func_of(op->name, names_.staged) : nullptr;
        if (func) func_ = *func;
        IRVisitor::visit(op);
        func_ = outer;
    }
    void loop_with_barriers(const For *op) override {
        const bool outer = in_loop_;
        in_loop_ |= is_loop_over(op->name, names_.chunk_loop);
        any_turn(op);
        in_loop_ = outer;
    }
    void touch(const Access &access) override {
        if (!in_loop_) return;
        if (!access.is_store) {
            if (func_.empty()) return;
            std::set<size_t> &parts = read_[func_][access.array];
            if (!access.is_followed) parts.insert(anywhere);
            for (const auto &[part, thread] : access.parts) parts.insert(part);
            return;
        }
        storing_.insert(func_);
        Stored &stored = stored_[access.array];
        stored.anywhere |= !access.is_followed;
        stored.all.insert(func_);
        for (const auto &[part, thread] : access.parts) {
            const std::string &other = stored.by.emplace(part, func_).first->second;
            if (other != func_) together_.insert(func_), together_.insert(other);
        }
        if (stored.anywhere) together_.insert(stored.all.begin(), stored.all.end());
    }
};

class ChunkAhead : public IRMutator {
public:
    explicit ChunkAhead(ChunkAheadNames names) : names_(std::move(names)) {}

private:
    using IRMutator::visit;

    const ChunkAheadNames names_;
    const For *loop_ = nullptr;
    std::vector<std::string> stored_;   // all that is computed in the loop
    std::map<std::string, Expr> lets_;  // inside the loop
    std::vector<Expr> conditions_;      // around what is visited, inside the loop
    int cases_ = 0;                     // of conditions with two around it, inside the loop
    std::vector<Stmt> first_;           // before the loop
    std::vector<Stmt> begin_;           // at the beginning of each of its turns
    std::vector<SplitLoads::Registers> registers_;
    std::optional<Alone> alone_;  // in a block whose threads can be followed

    Stmt visit(const For *op) override {
        if (!alone_) {
            if (const std::optional<ThreadLoops> threads = ThreadLoops::of(op)) {
                alone_.emplace(names_, *threads);
                Stmt result = IRMutator::visit(op);
                alone_.reset();
                return result;
            }
        }
        if (loop_ || !is_loop_over(op->name, names_.chunk_loop)) return IRMutator::visit(op);
        loop_ = op;
        Contents contents;
        op->body.accept(&contents);
        stored_ = contents.stored;
        Stmt body = mutate(op->body);
        loop_ = nullptr;
        if (!begin_.empty()) {
            // Others read what is stored there in the turn before, and later in this one.
            const Stmt barrier =
                Evaluate::make(Call::make(Int(32), Call::gpu_thread_barrier, {CodeGen_GPU_Dev::Shared}, Call::Intrinsic));
            body = Block::make({barrier, Block::make(begin_), barrier, body});
            begin_.clear();
        }
        Stmt result = For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, body);
        if (first_.empty()) return result;
        first_.push_back(result);
        for (const SplitLoads::Registers &array : registers_) first_.push_back(Free::make(array.name));
        result = Block::make(first_);
        for (const SplitLoads::Registers &array : registers_)
            result = Allocate::make(array.name, array.type, MemoryType::Register, {array.count}, const_true(), result);
        first_.clear();
        registers_.clear();
        return result;
    }

    template<typename LetOrLetStmt> auto with_let(const LetOrLetStmt *op) {
        if (!loop_) return IRMutator::visit(op);
        lets_[op->name] = substitute(lets_, op->value);
        auto result = IRMutator::visit(op);
        lets_.erase(op->name);
        return result;
    }
    Stmt visit(const LetStmt *op) override { return with_let(op); }

    Stmt visit(const IfThenElse *op) override {
        if (!loop_) return IRMutator::visit(op);
        if (op->else_case.defined()) {
            cases_++;
            Stmt result = IRMutator::visit(op);
            cases_--;
            return result;
        }
        conditions_.push_back(substitute(lets_, op->condition));
        Stmt result = IRMutator::visit(op);
        conditions_.pop_back();
        return result;
    }

    Stmt visit(const ProducerConsumer *op) override {
        const std::string *func = op->is_producer ? func_of(op->name, names_.staged) : nullptr;
        if (!loop_ || !func || cases_ > 0) return IRMutator::visit(op);
        Contents contents;
        op->body.accept(&contents);
        if (contents.branches) return IRMutator::visit(op);
        const auto is_own = [&](const std::string &name) {
            return std::find(contents.stored.begin(), contents.stored.end(), name) != contents.stored.end();
        };
        for (const std::string &load : contents.loaded)
            if (!is_own(load) && std::find(stored_.begin(), stored_.end(), load) != stored_.end())
                throw CompileError("asking for chunks ahead: " + op->name + " reads " + load +
                                   ", which is computed in the same loop");
        SplitLoads split(op->name + ".ahead", contents.stored);
        const Stmt storing = split.mutate(InlineLets().mutate(substitute(lets_, op->body)));
        if (split.loads.empty()) return IRMutator::visit(op);
        registers_.insert(registers_.end(), split.registers.begin(), split.registers.end());
        const Stmt loading = Block::make(split.loads);
        const Expr chunk = Variable::make(Int(32), loop_->name), last = loop_->min + loop_->extent - 1;
        Stmt first = substitute(loop_->name, loop_->min, loading);
        for (const Expr &condition : conditions_) first = IfThenElse::make(substitute(loop_->name, loop_->min, condition), first);
        first_.push_back(first);
        Stmt each;
        if (names_.next == ChunkAheadNames::Next::never)
            each = IfThenElse::make(chunk == loop_->min, storing, substitute(lets_, op->body));
        else if (names_.next == ChunkAheadNames::Next::if_any)
            each = Block::make(storing, IfThenElse::make(chunk < last, substitute(loop_->name, chunk + 1, loading)));
        else
            each = Block::make(storing, substitute(loop_->name, min(chunk + 1, last), loading));
        const Stmt both = ProducerConsumer::make(op->name, true, common_subexpression_elimination(each));
        if (!alone_ || !alone_->is_alone(*func)) return both;
        begin_.push_back(both);
        for (const Expr &condition : conditions_) begin_.back() = IfThenElse::make(condition, begin_.back());
        return Evaluate::make(0);
    }
};

}  // namespace

IRMutator *make_chunk_ahead_pass(const ChunkAheadNames &names) {
    return new ChunkAhead(names);
}

}  // namespace halation
