#include "needless_barriers.h"

#include "block_walk.h"

#include <set>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// The arrays that threads of a block exchange values through, and its barriers, each of which becomes a statement of its own.
class Exchanged : public IRMutator {
public:
    // Arrays in registers are a thread's own, also those that are allocated around its code.
    explicit Exchanged(std::set<std::string> registers) : own_(std::move(registers)) {}

    bool contains(const std::string &name) const { return loaded_.count(name) && stored_.count(name) && !own_.count(name); }

private:
    std::set<std::string> loaded_, stored_, own_;

    using IRMutator::visit;
    Expr visit(const Load *op) override {
        loaded_.insert(op->name);
        return IRMutator::visit(op);
    }
    Stmt visit(const Store *op) override {
        stored_.insert(op->name);
        return IRMutator::visit(op);
    }
    Stmt visit(const Allocate *op) override {
        own_.insert(op->name);
        return IRMutator::visit(op);
    }
    Stmt visit(const Evaluate *op) override { return is_barrier(op) ? Evaluate::make(op->value) : IRMutator::visit(op); }
};

// Who has touched the elements of an array in one way.
class Who {
public:
    void add(const Access &access) {
        any_ = true;
        all_ |= !access.is_followed;
        for (const auto &[part, thread] : access.parts) add(part, thread);
    }
    void add(const Who &other) {
        any_ |= other.any_;
        all_ |= other.all_;
        for (size_t part = 0; part < other.one_.size(); part++)
            if (other.one_[part] != nobody) add(part, other.one_[part]);
    }
    // May others have touched what is accessed?
    bool others(const Access &access) const {
        if (all_ || (any_ && !access.is_followed)) return true;
        for (const auto &[part, thread] : access.parts)
            if (part < one_.size() && one_[part] != nobody && one_[part] != thread) return true;
        return false;
    }

private:
    static constexpr int nobody = -1, many = -2;
    std::vector<int> one_;  // of a part: the thread, or one of these
    bool any_ = false, all_ = false;

    void add(size_t part, int thread) {
        if (one_.size() <= part) one_.resize(part + 1, nobody);
        one_[part] = one_[part] == nobody || one_[part] == thread ? thread : many;
    }
};

struct Touched {
    Who readers, writers;
};
using Arrays = std::map<std::string, Touched>;

void add(Arrays *to, const Arrays &from) {
    for (const auto &[name, touched] : from) {
        (*to)[name].readers.add(touched.readers);
        (*to)[name].writers.add(touched.writers);
    }
}

// Finds the barriers that a block needs.
class NeededBarriers : public BlockWalk {
public:
    NeededBarriers(const Exchanged &exchanged, Lockstep lockstep) : BlockWalk(std::move(lockstep)), exchanged_(exchanged) {}

    std::set<const Evaluate *> needed;

private:
    // A place in the code: what has been touched since a needed barrier, before the last barrier and after it. A place that is
    // reached in several ways has a last barrier for each.
    struct Place {
        Arrays before, since;
        std::set<const Evaluate *> last;
        void add(const Place &other) {
            halation::add(&before, other.before);
            halation::add(&since, other.since);
            last.insert(other.last.begin(), other.last.end());
        }
    };

    const Exchanged &exchanged_;
    Place place_;
    std::vector<Place> starts_, ends_;  // of the cases around what is visited

    using BlockWalk::visit;
    void visit(const Evaluate *op) override {
        if (!is_barrier(op)) return IRVisitor::visit(op);
        if (needed.count(op))
            place_.before.clear();
        else
            add(&place_.before, place_.since);
        place_.since.clear();
        place_.last = {op};
    }

    void touch(const Access &access) override {
        if (!exchanged_.contains(access.array)) return;
        const Touched &before = place_.before[access.array];
        if (before.writers.others(access) || (access.is_store && before.readers.others(access))) {
            needed.insert(place_.last.begin(), place_.last.end());
            place_.before.clear();
        }
        Touched &since = place_.since[access.array];
        (access.is_store ? since.writers : since.readers).add(access);
    }

    // Any number of turns: what two do to each other, all do.
    void loop_with_barriers(const For *op) override {
        const Place start = place_;
        any_turn(op);
        any_turn(op);
        place_.add(start);
    }

    void begin_case() override { starts_.push_back(place_); }
    void begin_other_case() override {
        ends_.push_back(place_);
        place_ = starts_.back();
    }
    void end_cases() override {
        place_.add(ends_.back());
        starts_.pop_back();
        ends_.pop_back();
    }
};

class OnlyNeeded : public IRMutator {
public:
    explicit OnlyNeeded(const std::set<const Evaluate *> &needed) : needed_(needed) {}

private:
    using IRMutator::visit;
    Stmt visit(const Evaluate *op) override { return is_barrier(op) && !needed_.count(op) ? Evaluate::make(0) : Stmt(op); }
    const std::set<const Evaluate *> &needed_;
};

class NeedlessBarriers : public IRMutator {
    using IRMutator::visit;
    std::set<std::string> registers_;

    Stmt visit(const Allocate *op) override {
        if (op->memory_type == MemoryType::Register) registers_.insert(op->name);
        return IRMutator::visit(op);
    }
    Stmt visit(const For *op) override {
        if (op->for_type != ForType::GPUThread) return IRMutator::visit(op);
        Exchanged exchanged(registers_);
        const Stmt code = exchanged.mutate(Stmt(op));
        const std::optional<ThreadLoops> loops = ThreadLoops::of(code.as<For>());
        if (!loops) return op;
        NeededBarriers search(exchanged, loops->lockstep());
        loops->body().accept(&search);
        return OnlyNeeded(search.needed).mutate(code);
    }
};

}  // namespace

IRMutator *make_needless_barriers_pass() {
    return new NeedlessBarriers;
}

}  // namespace halation
