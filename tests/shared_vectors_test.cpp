// Loads of shared memory that become vectors (generators/shared_vectors.h): which do, and that each thread loads what it did.
#include "generators/shared_vectors.h"

#include "lowered.h"

#include <catch2/catch.hpp>

#include <map>
#include <memory>

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int count = 8;

Stmt store(const Expr &index, const Expr &value) {
    return Store::make("out", value, index, Parameter(), const_true(), ModulusRemainder());
}
Expr load(const std::string &name, const Expr &index, const Type &type = Float(32)) {
    return Load::make(type, name, index, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
}

class Loads : public IRVisitor {
public:
    std::map<std::string, std::vector<Expr>> places;  // by array

private:
    using IRVisitor::visit;
    void visit(const Load *op) override { places[op->name].push_back(op->index); }
};

// Of a block whose threads begin at `first`, in a Func that is computed there.
std::map<std::string, std::vector<Expr>> places(const Stmt &computed, const std::string &func = "scanned.3", int first = 0) {
    Stmt s = ProducerConsumer::make_produce(func, computed);
    s = For::make("f.thread_id_x", first, count, ForType::GPUThread, Partition::Auto, DeviceAPI::None, s);
    s = For::make("f.thread_id_y", 0, 2, ForType::GPUThread, Partition::Auto, DeviceAPI::None, s);
    s = Allocate::make("shared", Float(32), MemoryType::GPUShared, {64}, const_true(), s);
    const std::unique_ptr<IRMutator> pass(halation::make_shared_vectors_pass("scanned"));
    Loads loads;
    pass->mutate(s).accept(&loads);
    return loads.places;
}

}  // namespace

TEST_CASE("shared vectors: a constant place is told from others by multiples of 16 bytes, and is the same in every thread") {
    for (const int first : {0, 3})
        for (const int at : {0, 5, 16}) {
            const Expr place = places(store(0, load("shared", at)), "scanned.3", first).at("shared").at(0);
            CHECK(!is_const(place));
            for (int thread = first; thread < first + count; thread++)
                CHECK(lowered::value_of(place, {{"f.thread_id_x", thread}}) == at);
            // As LLVM sees it, which does not know how many threads there are.
            const Expr rest = simplify(place - at);
            CHECK(modulus_remainder(rest).modulus % 4 == 0);
            CHECK(modulus_remainder(rest).remainder == 0);
        }
}

TEST_CASE("shared vectors: other loads stay as they are") {
    const Expr thread = Variable::make(Int(32), "f.thread_id_x");
    const auto same = [](const Expr &place, const std::string &array, const Type &type, const std::string &func) {
        return equal(places(store(0, load(array, place, type)), func).at(array).at(0), place);
    };
    CHECK_FALSE(same(5, "shared", Float(32), "scanned"));
    CHECK(same(5, "shared", Float(32), "outputs"));
    CHECK(same(5, "shared", Float(32), "scanned_too"));
    CHECK(same(5, "registers", Float(32), "scanned"));
    CHECK(same(5, "shared", Float(64), "scanned"));
    CHECK(same(thread + 5, "shared", Float(32), "scanned"));
}
