// Calls of kernels that see the whole batch, on an OpenCL device.
#include "device_fakes.h"

#include <HalideRuntime.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <tuple>

using namespace device_fakes;
using fakes::close;
using fakes::failure_of;
using fakes::Gated;
using halation::Tensor;

namespace {

halation::Problem problem_of(const Gated &data, halation_form form = HALATION_FORM_AUTO) {
    halation::Problem problem = fakes::gated_problem(data, form);
    problem.backend = "opencl";
    return problem;
}

}  // namespace

TEST_CASE("a batch on a device is what the plain loop makes of it", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE})
        for (const int64_t T : {1, 5})
            for (const bool tiled : {false, true})
                for (const bool initial : {false, true})
                    for (const bool final : {false, true}) {
                        CAPTURE(form, T, tiled, initial, final);
                        const Gated data(3, T, 2, 4, 8, 12);
                        OnDevice there(*context, data);
                        halation::Problem problem = problem_of(data, form);
                        problem.head_mapping = tiled ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
                        halation::Plan plan(*context, problem);
                        plan.run(there.tensors(initial, final));
                        std::vector<float> o, states;
                        data.reference_all(initial, &o, &states, tiled);
                        CHECK(close(there.read("o"), o));
                        if (final) CHECK(close(there.read("final_state"), states));
                    }
}

TEST_CASE("sequences of any lengths in one call; form auto goes by each sequence's length", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(1, 9, 2, 2, 4, 4);
    OnDevice there(*context, data);
    const std::vector<int32_t> offsets = {0, 1, 6, 6, 7, 9};
    halation::Batch batch;
    batch.offsets = Tensor(offsets.data(), {6});
    halation::NamedTensors tensors = there.tensors(false, false);
    const std::vector<float> nan(5 * 2 * 4 * 4, std::nanf(""));
    halation::DeviceMemory final(*context, nan.data(), nan.size() * 4);
    tensors.emplace_back("final_state", Tensor(final.data(), halation::float32, {5, 2, 4, 4}).on(context->device().device));
    std::vector<float> o(data.o.size()), expected;
    for (size_t n = 0; n < 5; n++) {
        std::vector<float> state(2 * 4 * 4);
        data.reference(0, offsets[n], offsets[n + 1], &state, &o);
        expected.insert(expected.end(), state.begin(), state.end());
    }
    for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT}) {
        halation::Plan plan(*context, problem_of(data, form));
        seen = {};
        plan.run(tensors, batch);
        std::vector<float> states(nan.size());
        final.copy_to(states.data(), states.size() * 4);
        CHECK(close(there.read("o"), o));
        CHECK(close(states, expected));
        if (form == HALATION_FORM_AUTO) {
            CHECK(seen.calls == 2);
            CHECK(seen.chunkwise_calls == 1);
            CHECK(seen.entries == 2 + 3);
            CHECK(seen.most_tokens == 5);
        } else {
            CHECK(seen.calls == 1);
            CHECK(seen.chunkwise_calls == 0);
            CHECK(seen.entries == 5);
            CHECK(seen.most_tokens == 5);
        }
        final.copy_from(nan.data(), nan.size() * 4);
    }
}

TEST_CASE("slots of a pool on a device, skipped sequences, and those that start from zero", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(4, 3, 1, 2, 4, 4);
    OnDevice there(*context, data);
    const int64_t one = 2 * 4 * 4;
    std::vector<float> pool(6 * one);
    for (size_t i = 0; i < pool.size(); i++) pool[i] = static_cast<float>(i % 13) / 13;
    halation::DeviceMemory memory(*context, pool.data(), pool.size() * 4);
    const Tensor states = Tensor(memory.data(), halation::float32, {6, 2, 4, 4}).on(context->device().device);
    halation::NamedTensors tensors = there.tensors(false, false);
    tensors.emplace_back("initial_state", states);
    tensors.emplace_back("final_state", states);
    const std::vector<int64_t> read = {5, -1, 2, 0}, write = {5, 3, 2, 1};
    const std::vector<uint8_t> has = {1, 1, 0, 1};
    halation::Batch batch;
    batch.read_slots = Tensor(read.data(), {4});
    batch.write_slots = Tensor(write.data(), {4});
    batch.has_initial_state = Tensor(has.data(), {4});

    std::vector<float> o(data.o.size()), after = pool;
    for (size_t n = 0; n < 4; n++) {
        if (read[n] < 0) continue;
        std::vector<float> state = has[n] ? fakes::row(pool, read[n], one) : std::vector<float>(static_cast<size_t>(one));
        data.reference(static_cast<int64_t>(n), 0, 3, &state, &o);
        std::copy(state.begin(), state.end(), after.begin() + write[n] * one);
    }
    for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
        memory.copy_from(pool.data(), pool.size() * 4);
        halation::Plan(*context, problem_of(data, form)).run(tensors, batch);
        std::vector<float> found(pool.size());
        memory.copy_to(found.data(), found.size() * 4);
        CHECK(close(there.read("o"), o));
        CHECK(close(found, after));
    }

    // A row that one reads and another writes.
    const std::vector<int64_t> crossed = {1, -1, 2, 0};
    batch.read_slots = Tensor(crossed.data(), {4});
    halation::Plan plan(*context, problem_of(data));
    CHECK(failure_of([&] { plan.run(tensors, batch); }).says("sequence 0 reads slot 1, which the same call writes for another"));
}

TEST_CASE("tensors that a device does not take are refused before anything runs", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(2, 5, 2, 4, 8, 12);
    OnDevice there(*context, data);
    halation::Plan plan(*context, problem_of(data));
    const DLDevice device = context->device().device;
    const auto refusal = [&](const char *name, Tensor tensor) {
        return failure_of([&] { plan.run(there.tensors_with(name, tensor)); });
    };
    CHECK(refusal("k", Tensor(data.k.data(), {2, 5, 2, 8})).says("k: is on the CPU; must be on opencl:0"));
    CHECK(refusal("o", Tensor(data.o.data(), {2, 5, 4, 12}).on({kDLCUDA, 1})).says("o: is on cuda:1; must be on opencl:0"));
    CHECK(refusal("q", Tensor(there.named("q").data(), halation::float32, {2, 5, 2, 8}).on({kDLOpenCL, 7}))
              .says("q: is on opencl:7; must be on opencl:0"));
    CHECK(refusal("q", Tensor(there.named("q").data(), halation::float32, {2, 5, 2, 8}).on(device, 4))
              .says("q: takes 640 bytes of its cl_mem, which has 636 from there on"));
    CHECK(refusal("q", Tensor(there.named("q").data(), halation::float32, {2, 5, 2, 8}).on(device, 641))
              .says("byte_offset is 641"));
    CHECK(refusal("q", Tensor(there.named("q").data(), halation::float32, {2, 5, 2, 8}, {80, 16, 8, -1}).on(device, 28))
              .says("q: has a negative stride; backend opencl takes strides of 0 and more"));
    CHECK(refusal("q", Tensor(there.named("q").data(), halation::float32, {2, 5, 2, 8}, {int64_t(1) << 31, 16, 8, 1}).on(device))
              .says("kernels of backend opencl reach 2147483647; share the batch out over several calls"));
    const fakes::Failure misaligned =
        refusal("q", Tensor(there.named("q").data(), halation::float32, {2, 5, 2, 8}).on(device, 6));
    CHECK(misaligned.says("q: byte_offset is 6; must be a multiple of its elements of 4 bytes"));
    halation::DeviceMemory large(*context, 1000);
    CHECK(
        refusal("q", Tensor(large.data(), halation::float32, {2, 5, 2, 8}).on(device, 4)).says("begins at byte 4 of its cl_mem"));
    for (const float x : there.read("o")) CHECK(std::isnan(x));
}

TEST_CASE("tensors on a device may be parts of larger memory, with any strides from 0 up", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(2, 4, 2, 2, 8, 8);
    OnDevice there(*context, data);
    // q and k in one memory, channels outermost; all heads of v are the first.
    const size_t elements = data.q.size(), apart = 1024;
    std::vector<float> both(apart / 4 + elements);
    for (int64_t token = 0; token < 2 * 4; token++)
        for (int64_t h = 0; h < 2; h++)
            for (int64_t d = 0; d < 8; d++) {
                const auto from = static_cast<size_t>((token * 2 + h) * 8 + d), to = static_cast<size_t>((d * 8 + token) * 2 + h);
                both[to] = data.q[from];
                both[apart / 4 + to] = data.k[from];
            }
    for (int64_t token = 0; token < 8; token++)
        for (size_t x = 0; x < 8; x++) {
            const auto at = static_cast<size_t>(token * 16) + x;
            data.v[at + 8] = data.v[at];
        }
    halation::DeviceMemory memory(*context, both.data(), both.size() * 4);
    const DLDevice device = context->device().device;
    halation::NamedTensors tensors = there.tensors();
    for (auto &[name, tensor] : tensors) {
        if (name == "q" || name == "k")
            tensor = Tensor(memory.data(), halation::float32, {2, 4, 2, 8}, {8, 2, 1, 16}).on(device, name == "k" ? apart : 0);
        if (name == "v") tensor = Tensor(tensor.data(), halation::float32, {2, 4, 2, 8}, {64, 16, 0, 1}).on(device);
    }
    halation::Plan(*context, problem_of(data)).run(tensors);
    std::vector<float> o, states;
    data.reference_all(true, &o, &states);
    CHECK(close(there.read("o"), o));
    CHECK(close(there.read("final_state"), states));
}

TEST_CASE("memory that kernels may only read or only write serves where that is enough, at any offset", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(2, 5, 2, 2, 8, 8);
    OnDevice there(*context, data);
    halation::Plan plan(*context, problem_of(data));
    const DLDevice device = context->device().device;
    constexpr uint64_t write_only = 2, read_only = 4;
    const size_t apart = 4096, q_bytes = data.q.size() * 4, o_bytes = data.o.size() * 4;
    const OpenclMemory q(*context, apart + q_bytes, read_only), o(*context, apart + o_bytes, write_only),
        state(*context, data.final.size() * 4, write_only);
    halation::check(halation_device_copy_to(context->get(), q.get(), apart, data.q.data(), q_bytes));
    std::vector<float> expected, states, found(data.o.size());
    data.reference_all(true, &expected, &states);
    plan.run(there.tensors_with("q", Tensor(q.get(), halation::float32, {2, 5, 2, 8}).on(device, apart)));
    CHECK(close(there.read("o"), expected));
    plan.run(there.tensors_with("o", Tensor(o.get(), halation::float32, {2, 5, 2, 8}).on(device, apart)));
    halation::check(halation_device_copy_from(context->get(), o.get(), apart, found.data(), o_bytes));
    CHECK(close(found, expected));

    const auto refusal = [&](const char *name, void *memory, std::vector<int64_t> shape) {
        return failure_of(
            [&] { plan.run(there.tensors_with(name, Tensor(memory, halation::float32, std::move(shape)).on(device))); });
    };
    CHECK(refusal("o", q.get(), {2, 5, 2, 8}).says("o: its cl_mem is CL_MEM_READ_ONLY; kernels write it"));
    CHECK(refusal("q", o.get(), {2, 5, 2, 8}).says("q: its cl_mem is CL_MEM_WRITE_ONLY; kernels read it"));
    const fakes::Failure carried = refusal("final_state", state.get(), {2, 2, 8, 8});
    CHECK(carried.status == HALATION_INVALID_ARGUMENT);
    CHECK(carried.says("final_state: its cl_mem is CL_MEM_WRITE_ONLY; kernels read it"));
}

TEST_CASE("runs that follow each other without waiting keep their own slots and lengths", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(1, 40, 1, 1, 8, 8);
    OnDevice there(*context, data);
    halation::Plan plan(*context, problem_of(data));
    // Each run computes one token of 40 sequences of one, and starts from the slot of the last.
    std::vector<float> pool(41 * 64);
    halation::DeviceMemory memory(*context, pool.data(), pool.size() * 4);
    const Tensor states = Tensor(memory.data(), halation::float32, {41, 1, 8, 8}).on(context->device().device);
    halation::NamedTensors tensors = there.tensors(false, false);
    tensors.emplace_back("initial_state", states);
    tensors.emplace_back("final_state", states);
    std::vector<int32_t> offsets(41);
    std::iota(offsets.begin(), offsets.end(), 0);
    for (int64_t t = 0; t < 40; t++) {
        std::vector<int64_t> read(40, -1), write(40, -1);
        read[static_cast<size_t>(t)] = t;
        write[static_cast<size_t>(t)] = t + 1;
        halation::Batch batch;
        batch.offsets = Tensor(offsets.data(), {41});
        batch.read_slots = Tensor(read.data(), {40});
        batch.write_slots = Tensor(write.data(), {40});
        plan.run(tensors, batch);
    }
    std::vector<float> o, state;
    data.reference_all(false, &o, &state);
    memory.copy_to(pool.data(), pool.size() * 4);
    CHECK(close(fakes::row(pool, 40, 64), state));
}

TEST_CASE("sequences that would have an o of 2^31 elements, were all as long as the longest, fall into launches", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    // One long sequence among many of one token, of which each counts as one worth a launch.
    constexpr int64_t V = 2048, longest = 256, N = 4097, T = longest + N - 1;
    Gated data(1, 1, 1, 1, 1, V);
    const DLDevice device = context->device().device;
    OnDevice there(*context, data);
    const halation::DeviceMemory o(*context, static_cast<size_t>(T * V) * sizeof(float));
    // Every token is the same one.
    const auto same = [&](const char *name, std::vector<int64_t> shape) {
        std::vector<int64_t> strides(shape.size(), 0);
        strides.back() = 1;
        return Tensor(there.named(name).data(), halation::float32, std::move(shape), std::move(strides)).on(device);
    };
    std::vector<int32_t> offsets(N + 1);
    std::iota(offsets.begin() + 1, offsets.end(), static_cast<int32_t>(longest));
    halation::Batch batch;
    batch.offsets = Tensor(offsets.data(), {N + 1});
    halation::Plan plan(*context, problem_of(data, HALATION_FORM_RECURRENT));
    seen = {};
    plan.run({{"q", same("q", {1, T, 1, 1})},
              {"k", same("k", {1, T, 1, 1})},
              {"v", same("v", {1, T, 1, V})},
              {"g", Tensor(there.named("g").data(), halation::float32, {1, T, 1}, {0, 0, 0}).on(device)},
              {"o", Tensor(o.data(), halation::float32, {1, T, 1, V}).on(device)}},
             batch);
    CHECK(seen.calls == 2);
    CHECK(seen.entries == N);
    CHECK(seen.most_tokens == longest);
    std::vector<float> found(static_cast<size_t>(T * V)), expected, states;
    o.copy_to(found.data(), found.size() * sizeof(float));
    data.reference_all(false, &expected, &states);
    for (const int64_t t : {int64_t(0), longest, T - 2, T - 1}) CHECK(close(fakes::row(found, t, V), expected));
}

TEST_CASE("what kernels on a device report reaches the caller", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(1, 1, 1, 1, 4, 4);
    OnDevice there(*context, data);
    halation::Plan plan(*context, problem_of(data));
    seen.fail = true;
    const fakes::Failure failure = failure_of([&] { plan.run(there.tensors()); });
    CHECK(failure.status == HALATION_INTERNAL_ERROR);
    CHECK(failure.says("kernel gated_recurrent_opencl: opencl: decays_of is launched before its code is loaded"));
    seen.fail = false;
    plan.run(there.tensors());
    std::vector<float> o, states;
    data.reference_all(true, &o, &states);
    CHECK(close(there.read("o"), o));
}

TEST_CASE("an empty batch and sequences without tokens hand states on", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(2, 0, 1, 2, 4, 4);
    OnDevice there(*context, data);
    for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT}) {
        halation::Plan plan(*context, problem_of(data, form));
        plan.run(there.tensors());
        CHECK(close(there.read("final_state"), data.initial));
        CHECK(plan.workspace(there.tensors()) == 0);
    }
}

TEST_CASE("which kernels a device has is asked apart from running them", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    Gated data(1, 2, 1, 1, 4, 4);
    auto choice = HALATION_INIT(halation_choice);
    halation::Problem problem = problem_of(data);
    REQUIRE(halation_can_run(context->get(), &problem, &choice) == HALATION_OK);
    CHECK(std::string(choice.kernel) == "gated_recurrent_opencl+gated_chunkwise_opencl");
    CHECK(std::string(choice.isa) == "gpu");
    problem.isa = "gpu";
    CHECK(halation_can_run(context->get(), &problem, nullptr) == HALATION_OK);
    problem.isa = "avx2";
    CHECK(failure_of(halation_can_run(context->get(), &problem, nullptr)).says("isa: got 'avx2'; must be NULL or 'gpu'"));
    problem.isa = nullptr;
    problem.state_type = halation::bfloat16;
    CHECK(failure_of(halation_can_run(context->get(), &problem, nullptr))
              .says("state_type: got bfloat16; must be float32 with kernel gated_recurrent_opencl"));
    problem.state_type = halation::float32;
    problem.key_dim = 128;
    problem.value_dim = (1 << 24) - 1;
    CHECK(halation_can_run(context->get(), &problem, nullptr) == HALATION_OK);
    problem.value_dim = 1 << 24;
    const fakes::Failure large = failure_of(halation_can_run(context->get(), &problem, nullptr));
    CHECK(large.status == HALATION_UNSUPPORTED);
    CHECK(
        large.says("value_heads, key_dim, value_dim: got 1, 128 and 16777216; initial_state of one sequence has 2147483648 "
                   "elements, and kernels of backend opencl reach 2147483647; share the value channels out over several calls"));
    problem.key_dim = problem.value_dim = 4;
    problem.recurrence = "plain";
    CHECK(failure_of(halation_can_run(context->get(), &problem, nullptr)).status != HALATION_OK);
    // The CPU's kernels go on serving the same context.
    problem = fakes::gated_problem(data);
    REQUIRE(halation_can_run(context->get(), &problem, &choice) == HALATION_OK);
    CHECK(std::string(choice.kernel) == "gated_recurrent+gated_chunkwise");
}

namespace {

std::vector<halide_filter_argument_t> arguments_of_half;
halide_filter_metadata_t metadata_of_half;

}  // namespace

TEST_CASE("what a kernel says of its states as bfloat16 is checked", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    // The kernel of float32 as if of float16, with arguments more.
    const halation_kernel &known = table()->kernels[0];
    const halide_filter_metadata_t &of_float = *known.metadata();
    constexpr halide_type_t u16(halide_type_uint, 16), i32(halide_type_int, 32), f32(halide_type_float, 32);
    constexpr int in = halide_argument_kind_input_buffer, out = halide_argument_kind_output_buffer;
    constexpr int scalar = halide_argument_kind_input_scalar;
    const auto refusal = [&](const std::vector<std::tuple<const char *, int, int, halide_type_t>> &more) {
        arguments_of_half.assign(of_float.arguments, of_float.arguments + of_float.num_arguments);
        for (halide_filter_argument_t &argument : arguments_of_half)
            for (const char *name : {"q", "k", "v", "o"})
                if (!std::strcmp(argument.name, name)) argument.type = u16;
        for (const auto &[name, kind, dimensions, type] : more)
            arguments_of_half.push_back({name, kind, dimensions, type, nullptr, nullptr, nullptr, nullptr, nullptr});
        metadata_of_half = of_float;
        metadata_of_half.num_arguments = static_cast<int32_t>(arguments_of_half.size());
        metadata_of_half.arguments = arguments_of_half.data();
        halation_kernel half = known;
        half.name = "gated_half";
        half.type = halation::float16;
        half.metadata = [] { return static_cast<const halide_filter_metadata_t *>(&metadata_of_half); };
        halation_kernel_table added = *table();
        added.name = "half";
        added.kernels = &half;
        added.kernel_count = 1;
        halation::Context another(1);
        another.add_kernels(*fakes::table());
        another.add_kernels(added);
        another.open_device("opencl");
        halation::Problem problem = problem_of(Gated(1, 1, 1, 1, 4, 4), HALATION_FORM_RECURRENT);
        problem.type = halation::float16;
        problem.state_type = halation::bfloat16;
        return failure_of(halation_can_run(another.get(), &problem, nullptr));
    };
    CHECK(refusal({}).says("state_type: got bfloat16; must be float32 with kernel gated_half"));
    CHECK(refusal({{"initial_state_bits", in, 4, f32}}).says("initial_state_bits must be a buffer like that of the state"));
    CHECK(refusal({{"final_state_bits", in, 4, u16}}).says("final_state_bits must be a buffer like that of the state"));
    CHECK(refusal({{"writes_bits", scalar, 0, f32}}).says("writes_bits must be an int32 scalar"));
    const fakes::Failure some =
        refusal({{"initial_state_bits", in, 4, u16}, {"final_state_bits", out, 4, u16}, {"reads_bits", scalar, 0, i32}});
    CHECK(some.status == HALATION_INTERNAL_ERROR);
    CHECK(some.says(
        "kernel gated_half: has some of initial_state_bits, final_state_bits, reads_bits, writes_bits; must have all or none"));
}
