// Asking: contexts, tables and problems. Every refusal names the field, what it got and what it may be.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

using namespace fakes;

namespace {

struct Asked {
    halation::Context context{1};
    halation::Problem problem{"gated", 2, 4, 8, 12};
    halation_choice choice = HALATION_INIT(halation_choice);

    Asked() { context.add_kernels(*table()); }
    Failure ask() { return failure_of(halation_can_run(context.get(), &problem, &choice)); }
};

}  // namespace

TEST_CASE("a context refuses options it cannot honour") {
    halation_context *context = nullptr;
    auto options = HALATION_INIT(halation_context_options);
    CHECK(failure_of(halation_context_create(&options, nullptr)).says("context: is NULL"));
    options.threads = -1;
    CHECK(failure_of(halation_context_create(&options, &context)).says("threads: got -1; may be 0"));
    options.threads = 100000;
    CHECK(failure_of(halation_context_create(&options, &context)).says("threads: got 100000"));
    options.threads = 1;
    options.allocate = [](void *, size_t, size_t) -> void * { return nullptr; };
    CHECK(failure_of(halation_context_create(&options, &context)).says("release: is NULL"));
    options.size = 8;
    CHECK(failure_of(halation_context_create(&options, &context)).says("HALATION_INIT(halation_context_options)"));
    CHECK(context == nullptr);
    halation_context_destroy(nullptr);
    halation_plan_destroy(nullptr);
    REQUIRE(halation_context_create(nullptr, &context) == HALATION_OK);
    halation_context_destroy(context);
}

TEST_CASE("a context without kernels says so") {
    halation::Context context(1);
    halation::Problem problem("gated", 1, 1, 4, 4);
    const Failure failure = failure_of(halation_can_run(context.get(), &problem, nullptr));
    CHECK(failure.status == HALATION_INVALID_ARGUMENT);
    CHECK(failure.says("halation_context_add_kernels"));
}

TEST_CASE("a problem that can be run says how") {
    Asked asked;
    REQUIRE(asked.ask().status == HALATION_OK);
    CHECK(asked.choice.form == HALATION_FORM_AUTO);
    CHECK(std::string(asked.choice.kernel) == "gated_recurrent+gated_chunkwise");
    CHECK(asked.choice.chunk == 4);
    asked.problem.form = HALATION_FORM_RECURRENT;
    REQUIRE(asked.ask().status == HALATION_OK);
    CHECK(std::string(asked.choice.kernel) == "gated_recurrent");
    CHECK(asked.choice.chunk == 1);
    asked.problem.form = HALATION_FORM_CHUNKWISE;
    asked.problem.chunk = 16;
    REQUIRE(asked.ask().status == HALATION_OK);
    CHECK(std::string(asked.choice.kernel) == "gated_chunkwise_whole");
    CHECK(asked.choice.chunk == 16);
#if defined(__x86_64__)
    CHECK(std::string(asked.choice.isa) == "x86_64");
    CHECK(std::string(asked.choice.reason).find("chunkwise avx512: ") != std::string::npos);
#endif
    halation::Plan plan(asked.context, asked.problem);
    CHECK(std::string(plan.describe().kernel) == "gated_chunkwise_whole");
}

TEST_CASE("auto falls back to the forms there are, and says what it passed over") {
    Asked asked;
    asked.problem.recurrence = "retention";
    REQUIRE(asked.ask().status == HALATION_OK);
    CHECK(std::string(asked.choice.kernel) == "retention_recurrent");
    CHECK(asked.choice.form == HALATION_FORM_RECURRENT);
    CHECK(std::string(asked.choice.reason).find("no kernel for form chunkwise") != std::string::npos);
    asked.problem = halation::Problem("cached", 2, 4, 8, 12);
    REQUIRE(asked.ask().status == HALATION_OK);
    CHECK(std::string(asked.choice.kernel) == "cached_parallel");
    CHECK(std::string(asked.choice.reason).find("there is no state to carry") != std::string::npos);
    CHECK(asked.choice.chunk == 0);
}

TEST_CASE("every field of a problem is checked") {
    Asked asked;
    halation::Problem &p = asked.problem;
    const int nine = 9;  // where an enum has no such value
    halation_status expected = HALATION_INVALID_ARGUMENT;
    std::string words;
    SECTION("recurrence") {
        p.recurrence = "gatedd";
        words = "recurrence: got 'gatedd'; may be gated, retention, normalized, plain, cached";
    }
    SECTION("recurrence NULL") {
        p.recurrence = nullptr;
        words = "recurrence: is NULL";
    }
    SECTION("size") {
        p.size = 12;
        words = "halation_problem: size is 12";
    }
    SECTION("version") {
        p.version = 7;
        words = "version 7";
    }
    SECTION("backend unknown") {
        p.backend = "tpu";
        words = "backend: got 'tpu'; may be cpu, cuda, metal, opencl";
    }
    SECTION("backend not here") {
        p.backend = "cuda";
        words = "backend: got 'cuda'";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("isa unknown") {
        p.isa = "sse9";
        words = "isa: got 'sse9'; may be avx512, avx2, x86_64, neon";
    }
    SECTION("isa not of this machine") {
#if defined(__x86_64__)
        p.isa = "neon";
        words = "this machine lacks an arm64 processor for neon";
#else
        p.isa = "avx2";
        words = "this machine lacks an x86-64 processor for avx2";
#endif
        p.form = HALATION_FORM_PARALLEL;
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("form") {
        memcpy(&p.form, &nine, sizeof nine);
        words = "form: got 9; may be 0 (auto) to 3 (parallel)";
    }
    SECTION("form that is not compiled") {
        p.form = HALATION_FORM_CHUNKWISE;
        p.recurrence = "retention";
        words = "no kernel for form chunkwise of recurrence retention on backend cpu; kernels exist for: recurrent";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("form the row refuses") {
        p = halation::Problem("plain", 1, 1, 8, 8);
        p.form = HALATION_FORM_PARALLEL;
        words = "recurrence plain has no form parallel: work would be quadratic for nothing";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("isa no kernel can use") {
        p.form = HALATION_FORM_PARALLEL;
        words = "no kernel for isa that this machine can run for form parallel";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("head_mapping") {
        memcpy(&p.head_mapping, &nine, sizeof nine);
        words = "head_mapping: got 9; may be 0 (grouped) or 1 (tiled)";
    }
    SECTION("chunk negative") {
        p.chunk = -4;
        words = "chunk: got -4";
    }
    SECTION("chunk with recurrent") {
        p.form = HALATION_FORM_RECURRENT;
        p.chunk = 4;
        words = "chunk: got 4; may be 0 or 1 with form recurrent";
    }
    SECTION("chunk with parallel") {
        p.form = HALATION_FORM_PARALLEL;
        p.chunk = 4;
        words = "chunk: got 4; must be 0 with form parallel";
    }
    SECTION("chunk not compiled") {
        p.form = HALATION_FORM_CHUNKWISE;
        p.chunk = 5;
        words = "no kernel for chunk 5 for form chunkwise of recurrence gated on backend cpu; kernels exist for: 4, 16, 32";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("chunk not compiled, with form auto") {
        p.chunk = 5;
        words = "no kernel for chunk 5 for form chunkwise of recurrence gated on backend cpu; kernels exist for: 4, 16, 32";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("chunk of one token, with form auto") {
        p.chunk = 1;
        words = "no kernel for chunk 1 for form chunkwise of recurrence gated on backend cpu; kernels exist for: 4, 16, 32";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("chunk of one token where form recurrent is all there is, with form auto") {
        p.recurrence = "retention";
        p.chunk = 1;
        words = "no kernel for form chunkwise of recurrence retention on backend cpu; kernels exist for: recurrent";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("chunk where there is no form for it, with form auto") {
        p = halation::Problem("cached", 2, 4, 8, 12);
        p.chunk = 4;
        words = "recurrence cached has no form chunkwise: there is no state to carry";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("non_causal") {
        p.recurrence = "cached";
        p.non_causal = 3;
        words = "non_causal: got 3; may be 0 or 1";
    }
    SECTION("heads") {
        p.heads = 0;
        words = "heads: got 0; may be 1 to";
    }
    SECTION("heads that do not divide") {
        p.heads = 3;
        words = "value_heads: got 4; must be a multiple of heads, which is 3";
    }
    SECTION("heads where there are none") {
        p.recurrence = "plain";
        words = "recurrence plain has no heads";
    }
    SECTION("key_dim") {
        p.key_dim = -1;
        words = "key_dim: got -1";
    }
    SECTION("value_dim") {
        p.value_dim = int64_t(1) << 40;
        words = "value_dim: got 1099511627776";
    }
    SECTION("type") {
        p.type = {kDLFloat, 64, 1};
        words = "type: got float64; may be float32, float16 or bfloat16";
    }
    SECTION("type with lanes") {
        p.type = {kDLFloat, 32, 4};
        words = "type: got float32 x 4 lanes";
    }
    SECTION("type not compiled") {
        p.type = halation::float16;
        p.form = HALATION_FORM_RECURRENT;
        words = "no kernel of type float16 for form recurrent of recurrence gated on backend cpu; kernels exist for: float32";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("gate_type") {
        p.gate_type = halation::bfloat16;
        words = "gate_type: got bfloat16; may be float32 or the problem's type, float32";
    }
    SECTION("feature_map where there is none") {
        p.feature_map = "relu";
        words = "feature_map: got 'relu', but recurrence gated has none";
    }
    SECTION("feature_map unknown") {
        p.recurrence = "normalized";
        p.feature_map = "gelu";
        words = "feature_map: got 'gelu'; may be elu+1, relu, softmax, identity";
    }
    SECTION("feature_map not compiled") {
        p.recurrence = "normalized";
        p.feature_map = "relu";
        words =
            "no kernel for feature_map relu for form recurrent of recurrence normalized on backend cpu; kernels exist for: elu+1";
        expected = HALATION_UNSUPPORTED;
    }
    SECTION("scale") {
        p.scale = INFINITY;
        words = "scale: got inf";
    }
    const Failure failure = asked.ask();
    INFO(failure.message);
    CHECK(failure.status == expected);
    CHECK(failure.says(words.c_str()));
    CHECK(std::string(asked.choice.reason).find(words) != std::string::npos);
    halation_plan *plan = nullptr;
    CHECK(halation_plan_create(asked.context.get(), &p, &plan) == expected);
    CHECK(plan == nullptr);
}

TEST_CASE("asking needs a context and a choice of this version") {
    Asked asked;
    CHECK(failure_of(halation_can_run(nullptr, &asked.problem, nullptr)).says("context: is NULL"));
    CHECK(failure_of(halation_can_run(asked.context.get(), nullptr, nullptr)).says("halation_problem: is NULL"));
    asked.choice.version = 2;
    CHECK(asked.ask().says("halation_choice"));
    CHECK(failure_of(halation_plan_create(asked.context.get(), &asked.problem, nullptr)).says("plan: is NULL"));
    halation_plan *plan = nullptr;
    CHECK(failure_of(halation_plan_create(nullptr, &asked.problem, &plan)).says("context: is NULL"));
    CHECK(failure_of(halation_plan_describe(nullptr, &asked.choice)).says("plan: is NULL"));
}

TEST_CASE("a plan may outlive its context") {
    Gated data(1, 3, 1, 1, 4, 4);
    halation_context *context = nullptr;
    REQUIRE(halation_context_create(nullptr, &context) == HALATION_OK);
    REQUIRE(halation_context_add_kernels(context, table()) == HALATION_OK);
    const halation::Problem problem = gated_problem(data);
    halation_plan *plan = nullptr;
    REQUIRE(halation_plan_create(context, &problem, &plan) == HALATION_OK);
    halation_context_destroy(context);
    halation_plan_destroy(plan);
}
