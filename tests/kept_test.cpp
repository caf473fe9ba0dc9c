// What launches of a GPU kernel hand on to one another: memory for the chunks that there are, and no more, and blocks for no
// others. Results do not show it: nobody reads what chunks beyond the last leave.
#include "lowered.h"
#include "schedules/machines.h"

#include <halation_kernels.h>

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int heads = 3, key_dim = 37, sequences = 300;

// The statements of a pipeline, as they are after all passes.
class Statements : public IRMutator {
public:
    explicit Statements(Stmt *found) : found_(found) {}
    using IRMutator::mutate;
    Stmt mutate(const Stmt &s) override { return found_->defined() ? s : *found_ = s; }

private:
    Stmt *const found_;
};

Stmt chunkwise(const std::string &recurrence) {
    Stmt all;
    const Target target("x86-64-linux-opencl-cl_doubles-no_runtime");
    const auto generator = GeneratorRegistry::create("halation_chunk_gpu", GeneratorContext(target));
    generator->set_generatorparam_value("recurrence", recurrence);
    generator->set_generatorparam_value("form", "chunkwise");
    Pipeline pipeline = generator->build_pipeline();
    pipeline.add_custom_lowering_pass(new Statements(&all));
    pipeline.compile_to_module(pipeline.infer_arguments(), "kernel", target);
    return all;
}

// What a call with sequences of so many tokens keeps, and the chunks that its launches have blocks for.
class Kept : public IRVisitor {
public:
    explicit Kept(int64_t tokens) {
        values_ = {{"most_tokens", tokens},
                   {"sequences.extent.1", sequences},
                   {"initial_state.extent.0", 45},
                   {"initial_state.extent.1", key_dim},
                   {"initial_state.extent.2", heads},
                   {"key_heads", heads},
                   {"key_head_step", 1}};
    }
    std::map<std::string, int64_t> floats;  // by Func
    std::map<std::string, int64_t> chunks;  // by loop
    std::vector<int64_t> turns;             // of the loops over normalizer_turns

private:
    using IRVisitor::visit;
    lowered::Values values_;
    bool in_threads_ = false;

    int64_t known(const Expr &e, const std::string &what) const {
        const auto value = lowered::value_of(e, values_);
        INFO(what << ": " << e);
        REQUIRE(value);
        return *value;
    }
    void visit(const LetStmt *op) override {
        if (const auto value = lowered::value_of(op->value, values_)) values_[op->name] = *value;
        op->body.accept(this);
    }
    void visit(const Allocate *op) override {
        if (in_threads_) return IRVisitor::visit(op);  // a block's own
        int64_t size = op->type.bytes();
        for (const Expr &extent : op->extents) size *= known(extent, op->name);
        floats[op->name] = size / static_cast<int64_t>(sizeof(float));
        op->body.accept(this);
    }
    void visit(const For *op) override {
        const auto is_over = [&](const char *loop) { return op->name.find(loop) != std::string::npos; };
        if (op->for_type == ForType::GPUBlock && is_over(".c.block_id_")) chunks[op->name] = known(op->extent, op->name);
        if (op->for_type == ForType::Serial && is_over(".normalizer_turn$")) turns.push_back(known(op->extent, op->name));
        const bool around = in_threads_;
        in_threads_ = around || op->for_type == ForType::GPUThread;
        op->body.accept(this);
        in_threads_ = around;
    }
};

}  // namespace

TEST_CASE("launches keep memory and have blocks for the chunks that there are") {
    const int chunk = halation::gpu_machine("opencl").chunk;
    for (const char *recurrence : {"linear_normalized", "gated", "kda"}) {
        const Stmt all = chunkwise(recurrence);
        for (const int64_t tokens : {1, 2, 8, 9, 130}) {
            INFO(recurrence << ", " << tokens << " tokens");
            Kept kept(tokens);
            all.accept(&kept);
            const int64_t count = (tokens + chunk - 1) / chunk;
            // What the runtime reckons with (kept_of_sequence in gpu_table.h).
            const int64_t channels = (key_dim + HALATION_KEPT_CHANNELS - 1) / HALATION_KEPT_CHANNELS * HALATION_KEPT_CHANNELS,
                          most = sequences * heads * count * chunk * channels * HALATION_KEPT_VECTORS;
            for (const auto &[name, floats] : kept.floats) {
                INFO(name << " keeps " << floats << " floats");
                CHECK(floats <= most);
            }
            CHECK(!kept.chunks.empty());
            for (const auto &[name, extent] : kept.chunks) {
                INFO(name << " goes over " << extent << " chunks");
                CHECK(extent == count);
            }
            // Of the normalizer, which is there before each chunk and after the last, as many chunks a turn as vectors are kept.
            const int64_t together = chunk * HALATION_KEPT_VECTORS;
            CHECK(kept.turns.size() == (recurrence == std::string("linear_normalized")));
            for (const int64_t turns : kept.turns) CHECK(turns == (count + 1 + together - 1) / together);
        }
    }
}
