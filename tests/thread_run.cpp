#include "thread_run.h"

#include <algorithm>
#include <map>
#include <set>

namespace thread_run {

using namespace Halide;
using namespace Halide::Internal;

namespace {

class Names : public IRVisitor {
public:
    std::set<std::string> stored, kept;  // kept: in registers

private:
    using IRVisitor::visit;
    void visit(const Store *op) override {
        stored.insert(op->name);
        IRVisitor::visit(op);
    }
    void visit(const Allocate *op) override {
        if (op->memory_type == MemoryType::Register) kept.insert(op->name);
        IRVisitor::visit(op);
    }
};

class Run : public IRMutator {
public:
    Run(const Stmt &s, lowered::Values values, std::string thread, const std::map<std::string, std::vector<int32_t>> &table)
        : values_(std::move(values)), thread_name_(std::move(thread)), table_(table) {
        s.accept(&names_);
        round(s);
        std::vector<Event> before;
        do {
            before = result.events;
            round(s);
        } while (!same_stores(before, result.events));
        last_ = true;
        round(s);
    }

    Result result;

private:
    using IRMutator::visit;

    struct Written {
        Expr value;
        int64_t thread, barriers;  // that the thread had met
    };
    using Memory = std::map<std::pair<std::string, int64_t>, std::vector<Written>>;  // of each element, in order
    lowered::Values values_;
    const std::string thread_name_;
    const std::map<std::string, std::vector<int32_t>> &table_;
    Names names_;
    bool last_ = false;  // of the rounds; in the first ones what others store is not there yet
    int64_t thread_ = 0, barriers_ = 0;
    Memory memory_, before_;            // in this round, in the one before
    std::map<std::string, Expr> lets_;  // that are not known integers

    void round(const Stmt &s) {
        result = {};
        before_ = std::move(memory_);
        memory_ = {};
        mutate(s);
    }
    std::optional<int64_t> known(const Expr &e) { return e.type().is_float() ? std::nullopt : lowered::value_of(e, values_); }
    Expr value(const Expr &e) {
        const Expr result = mutate(e);
        const auto integer = known(result);
        return integer ? make_const(e.type(), *integer) : result;
    }
    Expr unknown(const Type &type, const std::string &what) const {
        if (last_) throw InternalError("not known: " + what);
        return Variable::make(type, "nothing");
    }
    // An element of what a thread has to itself goes by its number, too.
    std::pair<std::string, int64_t> place(const std::string &array, int64_t at) const {
        return {names_.kept.count(array) ? array + "#" + std::to_string(thread_) : array, at};
    }

    Expr visit(const Variable *op) override {
        const auto found = values_.find(op->name);
        if (found != values_.end()) return make_const(op->type, found->second);
        const auto let = lets_.find(op->name);
        return let == lets_.end() ? Expr(op) : let->second;
    }

    Expr visit(const Load *op) override {
        const Expr index = value(op->index);
        const auto at = known(index);
        if (!at) return unknown(op->type, "where " + op->name + " is loaded");
        const auto table = table_.find(op->name);
        if (table != table_.end()) return table->second.at(static_cast<size_t>(*at));
        if (!names_.stored.count(op->name)) {
            result.events.push_back({false, thread_, op->name, *at, {}});
            return Load::make(op->type, op->name, index, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
        }
        // What the thread has stored itself, or another before a later barrier.
        const Written *found = nullptr;
        for (const Written &own : memory_[place(op->name, *at)])
            if (own.thread == thread_) found = &own;
        for (const Written &other : before_[place(op->name, *at)]) {
            if (other.thread == thread_) continue;
            if (other.barriers == barriers_) result.races.push_back(op->name + "[" + std::to_string(*at) + "]");
            if (other.barriers < barriers_ && (!found || other.barriers > found->barriers)) found = &other;
        }
        return found ? found->value : Variable::make(op->type, "nothing");  // as in registers before anything is there
    }

    Expr visit(const Call *op) override {
        if (op->is_intrinsic(Call::if_then_else)) {
            const auto condition = known(value(op->args[0]));
            if (!condition) return unknown(op->type, "a condition of a value");
            return *condition ? value(op->args[1]) : op->args.size() == 3 ? value(op->args[2]) : make_zero(op->type);
        }
        return IRMutator::visit(op);
    }

    Expr visit(const Reinterpret *op) override {  // and back
        const Expr e = value(op->value);
        const Reinterpret *inner = e.as<Reinterpret>();
        return inner && inner->value.type() == op->type ? inner->value : Reinterpret::make(op->type, e);
    }

    Expr visit(const Let *op) override {
        bind(op->name, value(op->value));
        return value(op->body);
    }
    Stmt visit(const LetStmt *op) override {
        bind(op->name, value(op->value));
        return mutate(op->body);
    }
    void bind(const std::string &name, const Expr &value) {
        values_.erase(name);
        lets_.erase(name);
        if (const auto integer = known(value))
            values_[name] = *integer;
        else
            lets_[name] = value;
    }

    Stmt visit(const For *op) override {
        const auto first = known(value(op->min)), turns = known(value(op->extent));
        if (!first || !turns) return unknown(Int(32), "how often " + op->name + " turns"), Stmt(op);
        for (int64_t turn = *first; turn < *first + *turns; turn++) {
            if (op->name == thread_name_) thread_ = turn, barriers_ = 0;
            values_[op->name] = turn;
            mutate(op->body);
        }
        values_.erase(op->name);
        return op;
    }
    Stmt visit(const IfThenElse *op) override {
        const auto condition = known(value(op->condition));
        if (!condition)
            unknown(Bool(), "a condition");
        else if (*condition)
            mutate(op->then_case);
        else if (op->else_case.defined())
            mutate(op->else_case);
        return op;
    }
    Stmt visit(const Evaluate *op) override {
        const Call *call = op->value.as<Call>();
        barriers_ += call && call->is_intrinsic(Call::gpu_thread_barrier);
        return op;
    }
    Stmt visit(const Store *op) override {
        const Expr stored = value(op->value);
        const auto at = known(value(op->index));
        if (!at) return unknown(Int(32), "where " + op->name + " is stored"), Stmt(op);
        result.events.push_back({true, thread_, op->name, *at, stored});
        memory_[place(op->name, *at)].push_back({stored, thread_, barriers_});
        return op;
    }
};

}  // namespace

std::vector<Event> Result::of(const std::string &array) const {
    std::vector<Event> found;
    std::copy_if(events.begin(), events.end(), std::back_inserter(found), [&](const Event &e) { return e.array == array; });
    return found;
}

int64_t Result::first(const std::string &array, int64_t thread, int64_t at) const {
    const auto found = std::find_if(events.begin(), events.end(),
                                    [&](const Event &e) { return e.array == array && e.thread == thread && e.at == at; });
    return found == events.end() ? -1 : found - events.begin();
}

Result run(const Stmt &s, const lowered::Values &values, const std::string &thread,
           const std::map<std::string, std::vector<int32_t>> &table) {
    return Run(s, values, thread, table).result;
}

bool same_stores(const std::vector<Event> &a, const std::vector<Event> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Event &x, const Event &y) {
        return x.is_store == y.is_store && x.thread == y.thread && x.array == y.array && x.at == y.at &&
               (!x.is_store || equal(simplify(x.value), simplify(y.value)));
    });
}

}  // namespace thread_run
