// What barriers of a block of threads order (generators/barrier_memory.h).
#include "generators/barrier_memory.h"
#include "generators/device_code.h"
#include "generators/variant.h"

#include <catch2/catch.hpp>

#include <memory>
#include <set>

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int device = 1, shared = 2;

Stmt barrier(const std::vector<Expr> &ordered) {
    return Evaluate::make(Call::make(Int(32), Call::gpu_thread_barrier, ordered, Call::Intrinsic));
}

Stmt changed(const Stmt &s) {
    const std::unique_ptr<IRMutator> pass(halation::make_barrier_memory_pass());
    return pass->mutate(s);
}

std::string refusal(const Stmt &s) {
    try {
        changed(s);
    } catch (const CompileError &error) {
        return error.what();
    }
    return "";
}

// Whether there are such kernels for GPUs.
bool is_made(const halation::Recurrence &recurrence, const std::string &form) {
    std::vector<std::string> words = {"name=kernel", "recurrence=" + recurrence.name, "form=" + form, "backend=metal", "isa=gpu"};
    if (!recurrence.default_feature_map.empty()) words.push_back("feature_map=" + recurrence.default_feature_map);
    try {
        halation::Variant::parse(words);
    } catch (const CompileError &) {
        return false;
    }
    return true;
}

std::string text_for_metal(const std::string &generator_name, const std::string &recurrence, const std::string &form) {
    const GeneratorContext context{Target("x86-64-linux-metal-user_context-no_runtime")};
    const auto generator = GeneratorRegistry::create(generator_name, context);
    generator->set_generatorparam_value("recurrence", recurrence);
    generator->set_generatorparam_value("form", form);
    std::string text;
    halation::with_device_code(generator->build_module("kernel"), [&](const std::string &code) { return text = code; });
    return text;
}

size_t count(const std::string &text, const std::string &words) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(words, at)) != std::string::npos; at++) found++;
    return found;
}

}  // namespace

TEST_CASE("barriers: shared memory is ordered besides what was") {
    const Expr turn = Variable::make(Int(32), "turn");
    const auto in_turns = [](const Stmt &body) {
        return For::make("turn", 0, 4, ForType::Serial, Partition::Auto, DeviceAPI::None, body);
    };
    for (const auto &[before, after] :
         {std::pair<int, int>{0, shared}, {device, device | shared}, {shared, shared}, {device | shared, device | shared}}) {
        const Stmt store = Store::make("x", 1.0f, turn, Parameter(), const_true(), ModulusRemainder());
        CHECK(equal(changed(in_turns(Block::make(store, barrier({before})))), in_turns(Block::make(store, barrier({after})))));
    }
}

TEST_CASE("barriers: what one orders must be known") {
    for (const std::vector<Expr> &ordered : {std::vector<Expr>{Variable::make(Int(32), "ordered")}, {}, {0, 0}})
        CHECK_THAT(refusal(barrier(ordered)),
                   Catch::Contains("memory at barriers") && Catch::Contains("must have one argument, a constant"));
}

TEST_CASE("barriers: no kernel has one of threads alone") {
    size_t barriers = 0;
    std::set<std::string> seen;
    for (const halation::Recurrence &recurrence : halation::recurrences())
        for (const std::string form : {"recurrent", "chunkwise", "parallel"}) {
            // The first recurrence of a generator stands for all.
            const std::string generator = recurrence.generator + "_gpu";
            if (!is_made(recurrence, form) || !seen.insert(generator + " " + form).second) continue;
            const std::string text = text_for_metal(generator, recurrence.name, form);
            INFO(recurrence.name << ", " << form);
            CHECK(count(text, "mem_none") == 0);
            barriers += count(text, "threadgroup_barrier(");
        }
    CHECK(barriers > 20);
    CHECK(seen.size() >= 8);
}
