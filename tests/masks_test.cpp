// The pass over masks (generators/masks.h): what it takes away is true of every lane at every turn, and the kernels of a build
// have no masks left where a tile is whole.
#include "generators/masks.h"

#include "draw.h"
#include "lowered.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <sstream>

using namespace Halide;
using namespace Halide::Internal;

CATCH_TRANSLATE_EXCEPTION(const Halide::Error &error) {
    return error.what();
}

namespace {

Expr var(const std::string &name) {
    return Variable::make(Int(32), name);
}

const Expr a = var("a"), b = var("b"), n = var("n"), m = var("m"), x = var("x"), y = var("y");

Stmt loop(const std::string &name, Expr first, Expr turns, Stmt body) {
    return For::make(name, first, turns, ForType::Serial, Partition::Auto, DeviceAPI::None, body);
}

Expr ramp(Expr base, int stride = 1, int lanes = 4) {
    return Ramp::make(base, stride, lanes);
}

Expr all(Expr e, int lanes = 4) {
    return Broadcast::make(e, lanes);
}

Stmt store(Expr mask, Expr value = Expr()) {
    const int lanes = mask.type().lanes();
    if (!value.defined()) value = make_zero(Float(32, lanes));
    return Store::make("out", value, lanes == 1 ? Expr(0) : ramp(0, 1, lanes), Parameter(), mask, ModulusRemainder());
}

Stmt passed(const Stmt &s) {
    const std::unique_ptr<IRMutator> pass(halation::make_masks_pass());
    return pass->mutate(s);
}

// How many loads and stores have a mask, and how many selects a condition a lane.
class Masks : public IRVisitor {
public:
    explicit Masks(const Stmt &s) { s.accept(this); }
    int loads = 0, stores = 0, selects = 0;
    int any() const { return loads + stores + selects; }

private:
    using IRVisitor::visit;
    void visit(const Load *op) override {
        loads += !is_const_one(op->predicate);
        IRVisitor::visit(op);
    }
    void visit(const Store *op) override {
        stores += !is_const_one(op->predicate);
        IRVisitor::visit(op);
    }
    void visit(const Select *op) override {
        selects += op->condition.type().is_vector();
        IRVisitor::visit(op);
    }
};

bool gone(const Stmt &s) {
    return Masks(passed(s)).any() == 0;
}

}  // namespace

TEST_CASE("masks: those of whole tiles are gone, those of the last are not") {
    const Stmt whole = loop("a", 0, n / 4, store(ramp(a * 4) < all(n)));
    CHECK(gone(whole));
    CHECK_FALSE(gone(loop("a", 0, (n + 3) / 4, store(ramp(a * 4) < all(n)))));
    CHECK_FALSE(gone(loop("a", n / 4, 1, store(ramp(a * 4) < all(n)))));
    // One turn too many, one lane too many, one element too few.
    CHECK_FALSE(gone(loop("a", 0, n / 4 + 1, store(ramp(a * 4) < all(n)))));
    CHECK_FALSE(gone(loop("a", 0, n / 4, store(ramp(a * 4, 1, 5) < all(n, 5)))));
    CHECK_FALSE(gone(loop("a", 0, n / 4, store(ramp(a * 4 + 1) < all(n)))));
    CHECK_FALSE(gone(loop("a", 0, n / 4, store(ramp(a * 4) < all(n - 1)))));
    CHECK(gone(loop("a", 0, n / 4, store(ramp(a * 4) <= all(n - 1)))));
    CHECK_FALSE(gone(loop("a", 0, n / 4, store(ramp(a * 4) <= all(n - 2)))));
    // Nor what is false, or not known to be one or the other.
    CHECK_FALSE(gone(store(ramp(0) < all(0))));
    CHECK_FALSE(gone(store(ramp(0) < all(n))));
    CHECK_FALSE(gone(loop("a", 0, n, store(all(a < m)))));
}

TEST_CASE("masks: ramps that fall, stand still or lie in the larger side") {
    CHECK(gone(loop("a", 0, n / 4, store(ramp(a * 4 + 3, -1) < all(n)))));
    CHECK_FALSE(gone(loop("a", 0, n / 4, store(ramp(a * 4 + 4, -1) < all(n)))));
    CHECK(gone(store(ramp(3, -1) < all(4))));
    CHECK_FALSE(gone(store(ramp(4, -1) < all(4))));
    CHECK(gone(store(ramp(3, 0) < all(4))));
    CHECK_FALSE(gone(store(ramp(4, 0) < all(4))));
    CHECK(gone(store(all(-1) < ramp(0))));
    CHECK_FALSE(gone(store(all(0) < ramp(0))));
    CHECK(gone(store(all(-1) < ramp(3, -1))));
    CHECK_FALSE(gone(store(all(-1) < ramp(2, -1))));
    CHECK_FALSE(gone(store(ramp(0) < ramp(1, -1))));
    CHECK_FALSE(gone(store(Ramp::make(Expr(0), m, 4) < all(4))));  // of any stride
    CHECK(gone(store(Broadcast::make(ramp(0), 2) < all(4, 8))));
    CHECK_FALSE(gone(store(Broadcast::make(ramp(1), 2) < all(4, 8))));
    CHECK_FALSE(gone(store(Ramp::make(ramp(0), all(100), 2) < all(4, 8))));
}

TEST_CASE("masks: of both conditions each must hold") {
    const Expr holds = ramp(a * 4) < all(n), fails = ramp(a * 4) < all(m);
    CHECK(gone(loop("a", 0, n / 4, store(holds && holds))));
    CHECK_FALSE(gone(loop("a", 0, n / 4, store(holds && fails))));
    CHECK_FALSE(gone(loop("a", 0, n / 4, store(fails && holds))));
    CHECK(gone(loop("a", 0, n, store(all(a < n)))));
    CHECK(gone(loop("a", 0, n, loop("b", 0, m / 4, store(all(a < n) && ramp(b * 4) < all(m))))));
    CHECK_FALSE(gone(loop("a", 0, n, loop("b", 0, m / 4, store(all(a < n) && ramp(b * 4) < all(n))))));
}

TEST_CASE("masks: through lets, where their values are known") {
    CHECK(gone(LetStmt::make("x", n / 4, loop("a", 0, x, LetStmt::make("y", a * 4, store(ramp(y) < all(n)))))));
    CHECK_FALSE(gone(LetStmt::make("x", n / 4 + 1, loop("a", 0, x, LetStmt::make("y", a * 4, store(ramp(y) < all(n)))))));
    // A name that means something else in the next let, or in the next loop.
    const Stmt masked = store(ramp(x) < all(n));
    CHECK(gone(LetStmt::make("x", n - 4, masked)));
    CHECK_FALSE(gone(LetStmt::make("x", n - 4, LetStmt::make("x", n - 3, masked))));
    CHECK_FALSE(gone(
        LetStmt::make("x", n - 4, Block::make(LetStmt::make("x", n - 3, Evaluate::make(0)), LetStmt::make("x", x + 1, masked)))));
    CHECK_FALSE(gone(Block::make(LetStmt::make("x", n - 4, Evaluate::make(0)), masked)));
    const Stmt by_loop = store(ramp(a) < all(n));
    CHECK(Masks(passed(Block::make(loop("a", 0, n - 3, by_loop), loop("a", 0, n - 2, by_loop)))).stores == 1);
    CHECK(Masks(passed(Block::make(loop("a", 0, n - 3, Evaluate::make(0)), by_loop))).stores == 1);
}

TEST_CASE("masks: a call may give another value each time") {
    const Expr call = Call::make(Int(32), "another_each_time", {}, Call::Extern);
    const Stmt masked = store(all(x) <= all(y));
    CHECK_FALSE(gone(LetStmt::make("x", call, LetStmt::make("y", call, masked))));
    CHECK_FALSE(gone(LetStmt::make("x", call + 1, LetStmt::make("y", call + 1, masked))));
    CHECK(gone(LetStmt::make("x", call, LetStmt::make("y", x + 1, masked))));
    // So may what is loaded.
    const Expr load = Load::make(Int(32), "changes", 0, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
    const Stmt change = Store::make("changes", load - 1, 0, Parameter(), const_true(), ModulusRemainder());
    CHECK_FALSE(gone(LetStmt::make("x", load, Block::make(change, LetStmt::make("y", load, masked)))));
}

TEST_CASE("masks: what stands under one goes with it, and what else there is stays") {
    const Expr holds = ramp(a * 4) < all(n), fails = ramp(a * 4) < all(m);
    const auto load = [](const Expr &mask) {
        return Load::make(Float(32, 4), "in", ramp(a * 4), Buffer<>(), Parameter(), mask, ModulusRemainder());
    };
    const auto in_loop = [](Stmt body) { return passed(loop("a", 0, n / 4, body)); };
    const Expr zero = make_zero(Float(32, 4));
    CHECK(Masks(in_loop(store(holds, Select::make(holds, load(holds), zero)))).any() == 0);
    Masks left = Masks(in_loop(store(holds, Select::make(fails, load(holds), zero))));
    CHECK((left.stores == 0 && left.selects == 1 && left.loads == 0));
    left = Masks(in_loop(store(fails, Select::make(holds, load(fails), zero))));
    CHECK((left.stores == 1 && left.selects == 0 && left.loads == 1));
    // In an index, and in what is chosen from.
    const Expr index = Select::make(holds, ramp(0), Cast::make(Int(32, 4), load(holds)));
    const Stmt scattered =
        Store::make("out", Select::make(fails, load(holds), load(fails)), index, Parameter(), holds, ModulusRemainder());
    left = Masks(in_loop(scattered));
    CHECK((left.stores == 0 && left.selects == 1 && left.loads == 1));
    const Stmt gathered = store(holds, Load::make(Float(32, 4), "in", index, Buffer<>(), Parameter(), holds, ModulusRemainder()));
    CHECK(Masks(in_loop(gathered)).any() == 0);
}

namespace {

// Statements drawn at random: loops, lets and masks over n and m.
class DrawnStmt {
public:
    explicit DrawnStmt(unsigned seed) : draw_(seed) {}

    Stmt stmt(int depth = 0) {
        if (depth < 5 && draw_.chance(85)) {
            const bool is_loop = draw_.chance(50);
            const std::vector<std::string> unused =
                names(is_loop ? std::vector<std::string>{"a", "b", "c"} : std::vector<std::string>{"x", "y", "z"});
            // The name of a let may be that of another.
            const std::string name = is_loop ? (unused.empty() ? "" : unused[0]) : draw_.one_of<std::string>({"x", "y", "z"});
            if (name.empty()) return stmt(depth + 1);
            const Expr first = is_loop && draw_.chance(60) ? Expr(0) : integer(2), extent = integer(2);
            known_.push_back(name);
            const Stmt body = stmt(depth + 1);
            known_.pop_back();
            return is_loop ? loop(name, first, extent, body) : LetStmt::make(name, first, body);
        }
        const Stmt masked = store(mask());
        return depth < 3 && draw_.chance(30) ? Block::make(masked, stmt(depth + 1)) : masked;
    }

private:
    Draw draw_;
    std::vector<std::string> known_ = {"n", "m"};

    std::vector<std::string> names(const std::vector<std::string> &of) const {
        std::vector<std::string> unused;
        for (const std::string &name : of)
            if (std::find(known_.begin(), known_.end(), name) == known_.end()) unused.push_back(name);
        return unused;
    }

    Expr integer(int depth) {
        if (depth == 0 || draw_.chance(25)) return draw_.chance(70) ? var(draw_.one_of(known_)) : Expr(int(draw_.number(-2, 5)));
        const Expr p = integer(depth - 1), q = draw_.chance(60) ? Expr(int(draw_.number(-3, 4))) : integer(depth - 1);
        switch (draw_.number(0, 8)) {
        case 0:
            return p - q;
        case 1:
            return p * int(draw_.number(-2, 4));
        case 2:
            return p / int(draw_.number(1, 4));
        case 3:
            return p % int(draw_.number(1, 4));
        case 4:
            return min(p, q);
        case 5:
            return max(p, q);
        case 6:
            return select(p < q, integer(depth - 1), p);
        default:
            return p + q;
        }
    }

    Expr mask() {
        const int lanes = 4;
        const Expr p = integer(2);
        // Of things that have to do with one another, so that some masks hold.
        const Expr q = draw_.chance(50) ? simplify(p + integer(1)) : integer(2);
        const auto vector = [&](const Expr &e) {
            return draw_.chance(60) ? ramp(e, int(draw_.number(-2, 2)), lanes) : all(e, lanes);
        };
        const Expr left = vector(p), right = vector(q);
        const Expr condition = draw_.chance(50) ? LT::make(left, right) : LE::make(left, right);
        return draw_.chance(20) ? condition && mask() : condition;
    }
};

}  // namespace

TEST_CASE("masks: none of those taken away is ever false") {
    int taken = 0, kept = 0;
    for (unsigned seed = 1; seed <= 4000; seed++) {
        const Stmt before = DrawnStmt(seed).stmt(), after = passed(before);
        // Both are gone through in step: the pass leaves loops, lets and stores where they are.
        for (int64_t n = -2; n <= 6; n += 2)
            for (int64_t m = -1; m <= 9; m += 5) {
                std::vector<bool> still_masked;
                lowered::each_reached(after, {{"n", n}, {"m", m}}, [&](const Stmt &s, const lowered::Values &) {
                    still_masked.push_back(!is_const_one(s.as<Store>()->predicate));
                });
                size_t at = 0;
                lowered::each_reached(before, {{"n", n}, {"m", m}}, [&](const Stmt &s, const lowered::Values &values) {
                    REQUIRE(at < still_masked.size());
                    if (still_masked[at++]) {
                        kept++;
                        return;
                    }
                    const Expr &mask = s.as<Store>()->predicate;
                    if (is_const_one(mask)) return;
                    taken++;
                    for (int lane = 0; lane < mask.type().lanes(); lane++) {
                        if (lowered::value_of(lowered::lane(mask, lane), values) == 1) continue;
                        std::ostringstream text;
                        text << before;
                        FAIL("seed " << seed << ", n = " << n << ", m = " << m << ", lane " << lane << " of " << mask << "\n"
                                     << text.str());
                    }
                });
            }
    }
    INFO(taken << " taken away, " << kept << " kept");
    CHECK(taken > 1000);
    CHECK(kept > 1000);
}

namespace {

// The first loop over a Var of a Func of this name, which may have a number after it; and what else there is without it.
class LoopOver : public IRMutator {
public:
    LoopOver(const Stmt &s, std::string func, std::string var) : func_(std::move(func)), var_(std::move(var)) {
        rest = mutate(s);
    }
    Stmt found, rest;

private:
    using IRMutator::visit;
    const std::string func_, var_;

    Stmt visit(const For *op) override {
        if (found.defined() || op->name.rfind(func_, 0) != 0 || !ends_with(op->name, "." + var_)) return IRMutator::visit(op);
        found = op;
        return Evaluate::make(0);
    }
};

void check_whole_tiles_have_no_masks(const std::string &kernel, const std::string &tile_loop) {
    INFO(kernel);
    const LoopOver tiles(lowered::kernel(kernel), "output", tile_loop);
    REQUIRE(tiles.found.defined());
    // The state before the first chunk has rows that no key channel has, which are masked in every tile.
    const Stmt whole = LoopOver(tiles.found, "state_before", "d").rest;
    CHECK(Masks(whole).loads == 0);
    CHECK(Masks(whole).stores == 0);
    // In the last tile, at least v, o and the state are; so are rows of keys, which are prepared before the tiles.
    CHECK(Masks(tiles.rest).loads >= 4);
    CHECK(Masks(tiles.rest).stores >= 4);
}

}  // namespace

TEST_CASE("masks: kernels have none in whole tiles") {
    for (const std::string isa : {"avx2", "avx512"}) {
        for (const std::string recurrence : {"gated", "gated_delta"}) {
            const std::string of = " isa=" + isa + " recurrence=" + recurrence;
            check_whole_tiles_have_no_masks("form=chunkwise" + of, "tile_loop");
            check_whole_tiles_have_no_masks("form=recurrent" + of, "vo");
        }
    }
}
