#include "sequence_table.h"

#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

[[noreturn]] void fail(const std::string &what) {
    throw CompileError("rows of the table of sequences in shared memory: " + what);
}

class Loops : public IRVisitor {
public:
    std::vector<std::string> names;

private:
    using IRVisitor::visit;
    void visit(const For *op) override {
        names.push_back(op->name);
        IRVisitor::visit(op);
    }
};

class HasLoad : public IRVisitor {
public:
    bool found = false;

private:
    using IRVisitor::visit;
    void visit(const Load *) override { found = true; }
};

}  // namespace

class SequenceTable::FromRows : public IRMutator {
public:
    FromRows(SequenceTable &table, const std::string &once) : table_(table), once_(once) { table.loop_->body.accept(&inner_); }

    Stmt body() {
        Stmt result = mutate(table_.loop_->body);
        const Expr turn = Variable::make(Int(32), table_.loop_->name) - table_.loop_->min;
        for (const auto &[entry, name] : loaded_once_) result = LetStmt::make(name, table_.row(entry, turn), result);
        return result;
    }

private:
    using IRMutator::visit;

    SequenceTable &table_;
    const std::string &once_;
    Loops inner_;
    std::map<std::string, Expr> lets_;  // inside the loop
    std::map<size_t, std::string> loaded_once_;
    bool in_once_ = false;

    template<typename LetOrLetStmt> auto with_let(const LetOrLetStmt *op) {
        lets_[op->name] = substitute(lets_, op->value);
        in_once_ = op->name == once_;
        const Expr value = mutate(op->value);
        in_once_ = false;
        return LetOrLetStmt::make(op->name, value, mutate(op->body));
    }
    Stmt visit(const LetStmt *op) override { return with_let(op); }
    Expr visit(const Let *op) override { return with_let(op); }

    Expr visit(const Load *op) override {
        if (op->name != table_.table_) return IRMutator::visit(op);
        const size_t entry = entry_at(substitute(lets_, op->index));
        if (in_once_) loaded_once_[entry] = table_.loop_->name + "." + std::to_string(entry);
        const auto once = loaded_once_.find(entry);
        if (once != loaded_once_.end()) return Variable::make(Int(32), once->second);
        return table_.row(entry, Variable::make(Int(32), table_.loop_->name) - table_.loop_->min);
    }

    size_t entry_at(const Expr &place) {
        std::vector<Expr> &entries = table_.entries_;
        for (size_t entry = 0; entry < entries.size(); entry++)
            if (equal(entries[entry], place)) return entry;
        HasLoad loads;
        place.accept(&loads);
        if (!place.type().is_scalar() || loads.found) fail("an entry is at a place that is loaded");
        for (const std::string &name : inner_.names)
            if (expr_uses_var(place, name)) fail("an entry depends on " + name);
        entries.push_back(place);
        return entries.size() - 1;
    }
};

SequenceTable::SequenceTable(const std::string &table, const For *loop, int most)
    : table_(table), rows_(table + ".rows"), loop_(loop), most_(most) {}

Stmt SequenceTable::body(const std::string &once) {
    return FromRows(*this, once).body();
}

Expr SequenceTable::row(size_t entry, const Expr &turn) const {
    return Load::make(Int(32), rows_, simplify(turn + static_cast<int>(entry) * most_), Buffer<>(), Parameter(), const_true(),
                      ModulusRemainder());
}

Stmt SequenceTable::copy(const Expr &thread) const {
    std::vector<Stmt> copies;
    for (size_t entry = 0; entry < entries_.size(); entry++) {
        const Expr place = substitute(loop_->name, loop_->min + thread, entries_[entry]);
        const Expr value = Load::make(Int(32), table_, place, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
        copies.push_back(
            Store::make(rows_, value, thread + static_cast<int>(entry) * most_, Parameter(), const_true(), ModulusRemainder()));
    }
    return copies.empty() ? Evaluate::make(0) : IfThenElse::make(thread < loop_->extent, Block::make(copies));
}

Stmt SequenceTable::in_shared(const Stmt &s, const std::string &rows, const std::string &shared, const Expr &begin) {
    // As bits: the array is one of floats.
    struct InShared : public IRMutator {
        InShared(const std::string &rows, const std::string &shared, const Expr &begin)
            : rows(rows), shared(shared), begin(begin) {}
        const std::string &rows, &shared;
        const Expr &begin;

        using IRMutator::visit;
        Expr visit(const Load *op) override {
            if (op->name != rows) return IRMutator::visit(op);
            return reinterpret<int32_t>(Load::make(Float(32), shared, simplify(begin + op->index), Buffer<>(), Parameter(),
                                                   const_true(), ModulusRemainder()));
        }
        Stmt visit(const Store *op) override {
            if (op->name != rows) return IRMutator::visit(op);
            return Store::make(shared, reinterpret<float>(op->value), simplify(begin + op->index), Parameter(), const_true(),
                               ModulusRemainder());
        }
    };
    return InShared(rows, shared, begin).mutate(s);
}

}  // namespace halation
