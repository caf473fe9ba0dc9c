// Every argument of a call that can be wrong, and what is said of it.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

using namespace fakes;
using halation::Tensor;

namespace {

const std::vector<int64_t> q_shape = {2, 5, 2, 8}, v_shape = {2, 5, 4, 12}, g_shape = {2, 5, 4}, s_shape = {2, 4, 8, 12};

}  // namespace

TEST_CASE("a wrong tensor is named, with what it is and what it may be") {
    Call call;
    float *q = call.data.q.data(), *v = call.data.v.data(), *o = call.data.o.data();
    float *initial = call.data.initial.data();
    std::vector<float> spare(4096, 1.f);
    std::string words;
    SECTION("rank") {
        call.set("q", Tensor(q, {10, 2, 8}));
        words = "q: shape is [10, 2, 8]; must be [B, T, H, K] = [B, T, 2, 8]";
    }
    SECTION("extent of the problem") {
        call.set("q", Tensor(q, {2, 5, 2, 7}));
        words = "q: shape is [2, 5, 2, 7]; must be [B, T, H, K] = [2, 5, 2, 8]; K is set by the problem";
    }
    SECTION("extent of another tensor") {
        call.set("v", Tensor(v, {2, 4, 4, 12}));
        words = "v: shape is [2, 4, 4, 12]; must be [B, T, HV, V] = [2, 5, 4, 12]; T is set by q";
    }
    SECTION("negative extent") {
        call.set("q", Tensor(q, {-2, 5, 2, 8}));
        words = "q: shape is [-2, 5, 2, 8]";
    }
    SECTION("type") {
        call.set("k", Tensor(q, halation::float16, q_shape));
        words = "k: type is float16; must be float32, the problem's type";
    }
    SECTION("gate type") {
        call.set("g", Tensor(q, halation::bfloat16, g_shape));
        words = "g: type is bfloat16; must be float32, the problem's gate_type";
    }
    SECTION("state type") {
        call.set("initial_state", Tensor(initial, DLDataType{kDLFloat, 64, 1}, s_shape));
        words = "initial_state: type is float64; must be float32, the problem's state_type";
    }
    SECTION("lanes") {
        call.set("q", Tensor(q, DLDataType{kDLFloat, 32, 2}, q_shape));
        words = "q: type is float32 x 2 lanes";
    }
    SECTION("NULL data") {
        call.set("k", Tensor(static_cast<float *>(nullptr), q_shape));
        words = "k: data is NULL";
    }
    SECTION("alignment") {
        call.set("k", Tensor(reinterpret_cast<char *>(spare.data()) + 2, halation::float32, q_shape));
        words = "must be aligned to its elements of 4 bytes";
    }
    SECTION("output with stride 0") {
        call.set("o", Tensor(o, v_shape, {0, 48, 12, 1}));
        words = "o: stride of B is 0 over 2 elements; an output's elements must be apart";
    }
    SECTION("output that meets itself") {
        call.set("o", Tensor(o, v_shape, {240, 48, 8, 1}));
        words = "o: stride of HV is 8, less than the 12 elements it must step over";
    }
    SECTION("strides past memory") {
        call.set("q", Tensor(q, q_shape, {int64_t(1) << 62, int64_t(1) << 61, 8, 1}));
        words = "q: shape and strides reach past what memory can hold";
    }
    SECTION("output on an input") {
        call.set("o", Tensor(v, v_shape));
        words = "o: shares memory with v; an output must be apart from every other tensor";
    }
    SECTION("output over the end of an input") {
        spare.assign(960, 1.f);
        call.set("v", Tensor(spare.data(), v_shape));
        call.set("o", Tensor(spare.data() + 479, v_shape));
        words = "o: shares memory with v";
    }
    SECTION("output in the gaps of an input, but for one element") {
        spare.assign(960, 1.f);
        call.set("v", Tensor(spare.data(), v_shape, {480, 96, 24, 1}));
        call.set("o", Tensor(spare.data() + 11, v_shape, {480, 96, 24, 1}));
        words = "o: shares memory with v";
    }
    SECTION("state on an input") {
        call.set("v", Tensor(spare.data(), v_shape));
        call.set("final_state", Tensor(spare.data(), s_shape));
        words = "final_state: shares memory with v";
    }
    SECTION("state on the output") {
        call.set("o", Tensor(spare.data(), v_shape));
        call.set("final_state", Tensor(spare.data(), s_shape));
        words = "o: shares memory with final_state";
    }
    SECTION("final state laid out otherwise on the initial one") {
        call.set("initial_state", Tensor(spare.data(), s_shape));
        call.set("final_state", Tensor(spare.data(), s_shape, {384, 12, 48, 1}));
        words = "final_state: overlaps initial_state";
    }
    SECTION("final state between rows of the initial one") {
        call.set("initial_state", Tensor(spare.data(), s_shape));
        call.set("final_state", Tensor(spare.data() + 12, s_shape));
        words = "final_state: overlaps initial_state";
    }
    SECTION("unknown name") {
        call.tensors.push_back({"gate", Tensor(q, q_shape)});
        words = "tensors[7]: recurrence gated has no 'gate'; may be q, k, v, g, o, initial_state, final_state";
    }
    SECTION("given twice") {
        call.tensors.push_back({"q", Tensor(q, q_shape)});
        words = "q: given twice";
    }
    SECTION("missing input") {
        call.tensors.erase(call.tensors.begin() + 3);
        words = "g: is missing; must be given, of shape [B, T, HV] = [2, 5, 4]";
    }
    SECTION("missing output") {
        call.tensors.erase(call.tensors.begin() + 4);
        words = "o: is missing";
    }
    SECTION("state shape") {
        call.set("initial_state", Tensor(initial, {1, 4, 8, 12}));
        words = "initial_state: shape is [1, 4, 8, 12]; must be [N, HV, K, V] = [2, 4, 8, 12]; N is set by B, the batch";
    }
    const Failure failure = call.run();
    INFO(failure.message);
    CHECK(failure.status == HALATION_INVALID_ARGUMENT);
    CHECK(failure.says(words.c_str()));
    CHECK(call.untouched());
}

TEST_CASE("what the C structs themselves can get wrong") {
    Call call;
    auto arguments = HALATION_INIT(halation_arguments);
    size_t bytes = 0;
    halation_plan *plan = call.plan.get();
    CHECK(failure_of(halation_run(nullptr, &arguments)).says("plan: is NULL"));
    CHECK(failure_of(halation_run(plan, nullptr)).says("halation_arguments: is NULL"));
    CHECK(failure_of(halation_plan_workspace(nullptr, &arguments, &bytes)).says("plan: is NULL"));
    CHECK(failure_of(halation_plan_workspace(plan, &arguments, nullptr)).says("bytes: is NULL"));
    arguments.tensor_count = 2;
    CHECK(failure_of(halation_run(plan, &arguments)).says("tensors: count is 2 and the list is NULL"));
    halation_named_tensor named = {nullptr, nullptr};
    arguments.tensors = &named;
    arguments.tensor_count = 1;
    CHECK(failure_of(halation_run(plan, &arguments)).says("tensors[0]: name is NULL"));
    named.name = "q";
    CHECK(failure_of(halation_run(plan, &arguments)).says("q: tensor is NULL"));
    DLTensor tensor{};
    named.tensor = &tensor;
    tensor.device = {kDLCUDA, 0};
    CHECK(failure_of(halation_run(plan, &arguments)).says("q: is on cuda:0; must be on the CPU"));
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 4;
    CHECK(failure_of(halation_run(plan, &arguments)).says("q: has 4 dimensions and a NULL shape"));
    arguments.version = 0;
    CHECK(failure_of(halation_run(plan, &arguments)).says("halation_arguments: size is"));
}

TEST_CASE("the message stays with its thread and is never NULL") {
    REQUIRE(halation_last_message() != nullptr);
    failure_of(halation_context_create(nullptr, nullptr));
    CHECK(std::string(halation_last_message()) == "context: is NULL");
    Call call;
    CHECK(call.run().status == HALATION_OK);
    CHECK(std::string(halation_last_message()) == "context: is NULL");
}

TEST_CASE("grouped and tiled heads read the keys they should") {
    for (const bool tiled : {false, true})
        for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT})
            for (const int64_t H : {1, 2, 3, 6})
                for (const int64_t T : {1, 5}) {
                    Gated data(2, T, H, 6, 4, 8);
                    std::vector<float> expected, states;
                    data.reference_all(true, &expected, &states, tiled);
                    halation::Context context(1);
                    context.add_kernels(*table());
                    halation::Problem problem = gated_problem(data, form);
                    problem.head_mapping = tiled ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
                    halation::Plan plan(context, problem);
                    plan.run(data.tensors());
                    INFO("tiled " << tiled << " H " << H << " T " << T);
                    CHECK(close(data.o, expected));
                    CHECK(close(data.final, states));
                }
}

TEST_CASE("heads are gathered into one call of a recurrent kernel as far as keys allow") {
    auto calls = [](int64_t H, bool tiled) {
        Gated data(1, 1, H, 8, 4, 8);
        halation::Context context(1);
        context.add_kernels(*table());
        halation::Problem problem = gated_problem(data);
        problem.head_mapping = tiled ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
        halation::Plan plan(context, problem);
        seen.reset();
        plan.run(data.tensors());
        return seen.calls.load();
    };
    CHECK(calls(8, false) == 1);
    CHECK(calls(1, false) == 1);
    CHECK(calls(2, false) == 2);
    CHECK(calls(2, true) == 4);
}

TEST_CASE("optional inputs get the values the row says") {
    halation::Context context(1);
    context.add_kernels(*table());
    SECTION("gamma of a retention head") {
        Gated data(2, 7, 2, 4, 4, 8);
        for (int64_t i = 0; i < 2 * 7; i++)
            for (int64_t h = 0; h < 4; h++)
                data.g[static_cast<size_t>(i * 4 + h)] = std::log(1 - std::ldexp(1.f, static_cast<int>(-5 - h)));
        std::vector<float> expected, states;
        data.reference_all(true, &expected, &states);
        auto tensors = data.tensors();
        tensors.erase(tensors.begin() + 3);
        halation::Problem problem("retention", 2, 4, 4, 8);
        halation::Plan plan(context, problem);
        plan.run(tensors);
        CHECK(close(data.o, expected));
        std::vector<float> gamma = {1, 1, 0.5f, 0.25f};
        for (int64_t i = 0; i < 2 * 7 * 4; i++) data.g[static_cast<size_t>(i)] = std::log(gamma[static_cast<size_t>(i % 4)]);
        data.reference_all(true, &expected, &states);
        tensors.push_back({"gamma", Tensor(gamma.data(), {4})});
        plan.run(tensors);
        CHECK(close(data.o, expected));
    }
    SECTION("zero and one, in a row without heads") {
        std::vector<float> x = {1, 2, 3, 4, 5, 6}, A = {1, 10, 1, 10, 1, 10}, o(6), state(6, 99.f), gain = {2, 2, 2},
                           skip = {1, 1, 1};
        halation::Problem problem("plain", 1, 1, 2, 3);
        halation::Plan plan(context, problem);
        halation::NamedTensors tensors = {{"x", Tensor(x.data(), {1, 2, 3})},
                                          {"A", Tensor(A.data(), {3, 2})},
                                          {"o", Tensor(o.data(), {1, 2, 3})},
                                          {"final_state", Tensor(state.data(), {1, 2, 3})}};
        plan.run(tensors);
        CHECK(o == std::vector<float>{11, 22, 33, 55, 77, 99});
        CHECK(state == std::vector<float>{5, 7, 9, 50, 70, 90});
        tensors.push_back({"gain", Tensor(gain.data(), {3})});
        tensors.push_back({"skip", Tensor(skip.data(), {3})});
        plan.run(tensors);
        CHECK(o == std::vector<float>{23, 46, 69, 114, 159, 204});
    }
}

TEST_CASE("scale is the default of the row, or what the problem says") {
    Call call;
    REQUIRE(call.run().status == HALATION_OK);
    const std::vector<float> with_default = call.data.o;
    halation::Problem problem = gated_problem(call.data);
    problem.scale = 3 / std::sqrt(8.0);
    halation::Plan plan(call.context, problem);
    plan.run(call.tensors);
    for (size_t i = 0; i < with_default.size(); i++) CHECK(call.data.o[i] == Approx(3 * with_default[i]).margin(1e-5));
}
