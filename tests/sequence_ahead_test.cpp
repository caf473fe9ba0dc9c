// What the sequences of a block start from is asked for ahead (generators/sequence_ahead.h): it is what each would have loaded,
// it is loaded while the one before is served, and what the pass cannot know to be right it refuses.
#include "generators/sequence_ahead.h"

#include "thread_run.h"

#include <catch2/catch.hpp>

#include <functional>
#include <memory>

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int count = 4, columns = 4;  // threads of a block; of the table: first token, tokens, row of the state

Expr var(const std::string &name) {
    return Variable::make(Int(32), name);
}
Stmt store(const std::string &name, const Expr &index, const Expr &value) {
    return Store::make(name, value, index, Parameter(), const_true(), ModulusRemainder());
}
Expr load(const std::string &name, const Expr &index, const Type &type = Float(32)) {
    return Load::make(type, name, index, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
}
Expr where(const Expr &condition, const Expr &value) {
    return Call::make(value.type(), Call::if_then_else, {condition, value, make_zero(value.type())}, Call::PureIntrinsic);
}
Stmt barrier() {
    return Evaluate::make(Call::make(Int(32), Call::gpu_thread_barrier, {2}, Call::Intrinsic));
}
Stmt loop(const std::string &name, const Expr &turns, const Stmt &body, ForType type = ForType::Serial) {
    return For::make(name, 0, turns, type, Partition::Auto, DeviceAPI::None, body);
}
Stmt array(const std::string &name, int size, const Stmt &body, MemoryType type = MemoryType::Register) {
    return Allocate::make(name, Float(32), type, {size}, const_true(), body);
}

// A block, as it comes from the passes before: of each of its sequences the state is loaded and grows from token to token by what
// another thread has loaded of the token.
struct Small {
    const Expr thread = var("f.thread_id_x"), sequence = var("f.s0.sequences"), chunk = var("f.s0.chunk"), n = var("n");
    Expr turns = min(max(n, 0), 3), row = var("block") * 3 + sequence, first_row = row * columns;
    Expr tokens = load("table", first_row + 1, Int(32));
    Expr last = max(tokens, 1) - 1;
    Expr token(const Expr &t) const { return (load("table", first_row, Int(32)) + t) * count + thread; }

    Stmt state() const {
        const Expr state_row = load("table", first_row + 2, Int(32));
        const auto of = [&](const char *name) {
            return store("state", 0, where(state_row >= 0, load(name, max(state_row, 0) * count + thread)));
        };
        return ProducerConsumer::make_produce("before",
                                              IfThenElse::make(var("reads_bits") != 0, of("initial_bits"), of("initial")));
    }
    Stmt first_input() const { return IfThenElse::make(thread < 3, store("x.ahead", 0, load("x", token(0)))); }
    Stmt chunks() const {
        const Stmt put = IfThenElse::make(chunk == 0, store("shared", thread, where(thread < 3, load("x.ahead", 0))),
                                          store("shared", thread, where(thread < 3, load("x", token(chunk)))));
        const Expr sum = load("state", 0) * 2.0f + load("shared", count - 1 - thread);
        const Stmt out =
            IfThenElse::make(chunk < tokens, Block::make(store("state", 0, sum), store("out", token(chunk), load("state", 0))));
        return loop("f.s0.chunk", var("chunk.last") + 1, Block::make({barrier(), put, barrier(), out}));
    }

    // In front of the chunks; of the sequences; around these, and around the threads.
    std::function<Stmt()> front = [this] { return Block::make(state(), first_input()); };
    std::function<Stmt(Stmt)> around_chunks = [](Stmt s) { return s; }, around_sequences = around_chunks;
    int threads = count;
    MemoryType shared = MemoryType::GPUShared;

    Stmt made() const {
        const Stmt final = store("final", row * count + thread, load("state", 0));
        const Stmt all = LetStmt::make("chunk.last", last, Block::make({front(), around_chunks(chunks()), final}));
        const Stmt sequences = loop("f.s0.sequences", turns, array("state", 1, array("x.ahead", 1, all)));
        return array("shared", count, loop("f.thread_id_x", threads, around_sequences(sequences), ForType::GPUThread), shared);
    }
};

Stmt ahead(const Stmt &s) {
    const std::unique_ptr<IRMutator> pass(halation::make_sequence_ahead_pass({"sequences", "chunk", "table"}));
    return pass->mutate(s);
}
std::string refusal(const Small &block) {
    try {
        ahead(block.made());
    } catch (const CompileError &error) {
        return error.what();
    }
    return "";
}

// Six sequences for two blocks; without tokens, without a state.
const std::map<std::string, std::vector<int32_t>> table = {
    {"table", {0, 1, 5, 9, 1, 3, -1, 9, 4, 0, 2, 9, 4, 1, 0, 9, 5, 2, 4, 9, 7, 1, 1, 9}}};

}  // namespace

TEST_CASE("sequences ahead: each starts from what it would have loaded") {
    const Small block;
    const Stmt plain = block.made(), made = ahead(plain);
    for (const int64_t n : {-1, 0, 1, 2, 3, 5})
        for (const int64_t number : {0, 1})
            for (const int64_t bits : {0, 1}) {
                INFO(n << " sequences, block " << number << ", bits " << bits);
                const lowered::Values values = {{"n", n}, {"block", number}, {"reads_bits", bits}};
                const auto wanted = thread_run::run(plain, values, "f.thread_id_x", table),
                           got = thread_run::run(made, values, "f.thread_id_x", table);
                CHECK(wanted.of("final").size() == static_cast<size_t>(count * std::clamp<int64_t>(n, 0, 3)));
                for (const char *output : {"out", "final"}) CHECK(thread_run::same_stores(got.of(output), wanted.of(output)));
                CHECK(wanted.races.empty());
                CHECK(got.races.empty());
                CHECK(got.of("x").size() == wanted.of("x").size());  // nothing is loaded for nobody
                CHECK(got.of("initial").size() == wanted.of("initial").size());
            }
}

TEST_CASE("sequences ahead: loaded while the one before is served") {
    const Small block;
    const lowered::Values values = {{"n", 3}, {"block", 1}, {"reads_bits", 0}};
    const auto plain = thread_run::run(block.made(), values, "f.thread_id_x", table),
               made = thread_run::run(ahead(block.made()), values, "f.thread_id_x", table);
    // The second sequence of the block is the table's fifth: state 4, first token 5; the first is its fourth, token 4.
    for (const auto &[name, row] : {std::pair<const char *, int>{"initial", 4}, {"x", 5}})
        for (int thread = 0; thread < 3; thread++) {
            INFO(name << ", thread " << thread);
            const auto loaded = [&](const thread_run::Result &r) { return r.first(name, thread, row * count + thread); };
            const auto served = [&](const thread_run::Result &r) { return r.first("out", thread, 4 * count + thread); };
            REQUIRE(loaded(made) >= 0);
            REQUIRE(served(made) >= 0);
            CHECK(loaded(made) < served(made));
            CHECK(loaded(plain) > served(plain));
        }
}

TEST_CASE("sequences ahead: the table's rows have room after what the block shares, a column each") {
    const Stmt made = ahead(Small().made());
    const Allocate *shared = made.as<Allocate>();
    REQUIRE(shared);
    CHECK(is_const(simplify(shared->extents[0]), count + 3 * 3));
}

TEST_CASE("sequences ahead: the first chunk is out of the loop over chunks, which does not ask which chunk it is at") {
    struct Chunks : public IRVisitor {
        using IRVisitor::visit;
        int loops = 0, loads = 0;
        bool inside = false;
        void visit(const For *op) override {
            inside = op->name == "f.s0.chunk";
            loops += inside && is_const_one(simplify(op->min));
            IRVisitor::visit(op);
            inside = false;
        }
        void visit(const Load *op) override {
            loads += inside && op->name == "x.ahead";
            IRVisitor::visit(op);
        }
    } chunks;
    ahead(Small().made()).accept(&chunks);
    CHECK(chunks.loops == 1);
    CHECK(chunks.loads == 0);
}

TEST_CASE("sequences ahead: what is not known to be right is refused") {
    CHECK(refusal(Small()) == "");
    const auto refused = [](const std::string &why, const std::function<void(Small &)> &change) {
        Small block;
        change(block);
        INFO(why);
        CHECK_THAT(refusal(block), Catch::Contains(why));
    };
    refused("there is not one loop over sequences in threads",
            [](Small &b) { b.around_sequences = [](const Stmt &) { return Evaluate::make(0); }; });
    refused("there is not one loop over sequences in threads",
            [](Small &b) { b.around_sequences = [](const Stmt &s) { return Block::make(s, s); }; });
    refused("f.s0.sequences is in another loop or under a condition",
            [](Small &b) { b.around_sequences = [](const Stmt &s) { return IfThenElse::make(var("n") > 1, s); }; });
    refused("f.s0.sequences is in another loop or under a condition",
            [](Small &b) { b.around_sequences = [](const Stmt &s) { return loop("again", 2, s); }; });
    refused("f.s0.sequences may have more turns than there are threads in a row", [](Small &b) { b.turns = b.n; });
    refused("f.s0.sequences may have more turns than there are threads in a row", [](Small &b) { b.threads = 2; });
    refused("no shared memory of float32", [](Small &b) { b.shared = MemoryType::Stack; });
    refused("reads nothing of table", [](Small &b) {
        b.around_chunks = [](const Stmt &) { return Evaluate::make(0); };
        b.front = [] { return Evaluate::make(0); };
        b.last = 0;
    });
    refused("no loop over chunk in f.s0.sequences",
            [](Small &b) { b.around_chunks = [](const Stmt &) { return Evaluate::make(0); }; });
    refused("f.s0.chunk is in another loop or under a condition",
            [](Small &b) { b.around_chunks = [](const Stmt &s) { return IfThenElse::make(var("n") > 1, s); }; });
    refused("f.s0.chunk is in another loop or under a condition",
            [](Small &b) { b.around_chunks = [](const Stmt &s) { return loop("again", 2, s); }; });
    refused("a sequence may have no turn of f.s0.chunk", [](Small &b) { b.last = b.tokens - 1; });
    refused("nothing is loaded in front of f.s0.chunk", [](Small &b) { b.front = [] { return Evaluate::make(0); }; });
    refused("an entry depends on f.s0.chunk", [](Small &b) {
        b.around_chunks = [&b](const Stmt &s) {
            const Stmt more = store("out", 0, cast<float>(load("table", b.first_row + b.chunk, Int(32))));
            const For *chunks = s.as<For>();
            return loop(chunks->name, chunks->extent, Block::make(chunks->body, more));
        };
    });
    refused("an entry is at a place that is loaded",
            [](Small &b) { b.tokens = load("table", load("order", b.sequence, Int(32)), Int(32)); });
    refused("state is touched in front of f.s0.chunk, not only loaded", [](Small &b) {
        b.front = [&b] {
            const Stmt touched = store("state", 0, load("state", 0) + load("shared", 0));
            return Block::make({b.state(), b.first_input(), touched});
        };
    });
    refused("x.ahead is touched in front of f.s0.chunk, not only loaded", [](Small &b) {
        b.front = [&b] { return Block::make({b.first_input(), b.state(), store("out", 0, load("x.ahead", 0))}); };
    });
}

TEST_CASE("sequences ahead: what reads the memory that a sequence stores to stays with its sequence") {
    Small block;
    block.front = [&block] {
        const Stmt inputs = block.first_input();
        return Block::make({inputs, store("shared", block.thread, 1.0f), barrier(),
                            store("state", 0, load("shared", count - 1 - block.thread)), barrier()});
    };
    const Stmt plain = block.made(), made = ahead(plain);
    const lowered::Values values = {{"n", 3}, {"block", 0}, {"reads_bits", 0}};
    const auto wanted = thread_run::run(plain, values, "f.thread_id_x", table),
               got = thread_run::run(made, values, "f.thread_id_x", table);
    for (const char *output : {"out", "final"}) CHECK(thread_run::same_stores(got.of(output), wanted.of(output)));
    CHECK(got.of("state.sequence").empty());
    CHECK(!got.of("x.ahead.sequence").empty());
}
