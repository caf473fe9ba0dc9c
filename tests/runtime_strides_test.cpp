// Every way in which a tensor may lie in memory.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

#include <sys/mman.h>

using namespace fakes;
using halation::Tensor;

namespace {

const std::vector<int64_t> q_shape = {2, 5, 2, 8}, v_shape = {2, 5, 4, 12}, g_shape = {2, 5, 4}, s_shape = {2, 4, 8, 12};

// The elements of a compact tensor of four axes, laid out otherwise; NaN in between.
std::vector<float> moved(const std::vector<float> &from, const std::vector<int64_t> &shape, const std::vector<int64_t> &strides,
                         size_t size, int64_t first) {
    std::vector<float> to(size, std::nanf(""));
    for (int64_t a = 0, i = 0; a < shape[0]; a++)
        for (int64_t b = 0; b < shape[1]; b++)
            for (int64_t c = 0; c < shape[2]; c++)
                for (int64_t d = 0; d < shape[3]; d++, i++)
                    to[static_cast<size_t>(first + a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3])] =
                        from[static_cast<size_t>(i)];
    return to;
}

// Close where something is wanted, NaN still where nothing is.
bool close_or_left_alone(const std::vector<float> &result, const std::vector<float> &wanted) {
    for (size_t i = 0; i < wanted.size(); i++)
        if (std::isnan(wanted[i]) ? !std::isnan(result[i]) : !(std::abs(result[i] - wanted[i]) < 1e-4f)) return false;
    return result.size() == wanted.size();
}

// Reserved addresses, of which only the pages that are touched come into being.
struct Sparse {
    float *data = nullptr;
    size_t bytes;
    explicit Sparse(size_t size) : bytes(size) {
        void *reserved = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (reserved == MAP_FAILED)
            WARN("skipped: the system does not reserve " << (bytes >> 30) << " GiB of addresses");
        else
            data = static_cast<float *>(reserved);
    }
    ~Sparse() {
        if (data) munmap(data, bytes);
    }
    Sparse(const Sparse &) = delete;
    Sparse &operator=(const Sparse &) = delete;
};

}  // namespace

TEST_CASE("strides are honoured") {
    Call call;
    Gated &data = call.data;
    std::vector<float> expected, states;
    data.reference_all(true, &expected, &states);
    SECTION("heads outside tokens, [B, H, T, D]") {
        const std::vector<int64_t> q_strides = {80, 8, 40, 1}, v_strides = {240, 12, 60, 1}, g_strides = {20, 1, 5, 1};
        auto q = moved(data.q, q_shape, q_strides, 160, 0), k = moved(data.k, q_shape, q_strides, 160, 0);
        auto v = moved(data.v, v_shape, v_strides, 480, 0), g = moved(data.g, {2, 5, 4, 1}, g_strides, 40, 0);
        std::vector<float> o(480, std::nanf(""));
        call.set("q", Tensor(q.data(), q_shape, q_strides));
        call.set("k", Tensor(k.data(), q_shape, q_strides));
        call.set("v", Tensor(v.data(), v_shape, v_strides));
        call.set("g", Tensor(g.data(), g_shape, {20, 1, 5}));
        call.set("o", Tensor(o.data(), v_shape, v_strides));
        for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT}) {
            halation::Plan plan(call.context, gated_problem(data, form));
            plan.run(call.tensors);
            CHECK(close(o, moved(expected, v_shape, v_strides, 480, 0)));
            CHECK(close(data.final, states));
        }
    }
    SECTION("q, k and v interleaved in one tensor, by byte_offset too") {
        const int64_t token = 2 * 8 + 2 * 8 + 4 * 12;
        std::vector<int64_t> q_strides = {5 * token, token, 8, 1}, v_strides = {5 * token, token, 12, 1};
        std::vector<float> all(static_cast<size_t>(2 * 5 * token));
        auto into = [&](const std::vector<float> &from, const std::vector<int64_t> &shape, const std::vector<int64_t> &strides,
                        int64_t first) {
            const auto part = moved(from, shape, strides, all.size(), first);
            for (size_t i = 0; i < all.size(); i++)
                if (!std::isnan(part[i])) all[i] = part[i];
        };
        into(data.q, q_shape, q_strides, 0);
        into(data.k, q_shape, q_strides, 16);
        into(data.v, v_shape, v_strides, 32);
        std::vector<DLTensor> views;
        std::vector<halation_named_tensor> named;
        views.reserve(call.tensors.size());
        call.set("q", Tensor(all.data(), q_shape, q_strides));
        call.set("k", Tensor(all.data(), q_shape, q_strides));
        call.set("v", Tensor(all.data(), v_shape, v_strides));
        for (const auto &[name, tensor] : call.tensors) {
            views.push_back(tensor.view());
            if (name == "k") views.back().byte_offset = 16 * sizeof(float);
            if (name == "v") views.back().byte_offset = 32 * sizeof(float);
            named.push_back({name.c_str(), &views.back()});
        }
        auto arguments = HALATION_INIT(halation_arguments);
        arguments.tensors = named.data();
        arguments.tensor_count = static_cast<int32_t>(named.size());
        REQUIRE(halation_run(call.plan.get(), &arguments) == HALATION_OK);
        CHECK(close(data.o, expected));
        CHECK(close(data.final, states));
    }
    SECTION("padded states, laid out differently before and after") {
        const std::vector<int64_t> before = {600, 16, 64, 1}, after = {700, 150, 17, 1};
        auto initial = moved(data.initial, s_shape, before, 1200, 0);
        std::vector<float> final(1500, 7.f);
        call.set("initial_state", Tensor(initial.data(), s_shape, before));
        call.set("final_state", Tensor(final.data(), s_shape, after));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(data.o, expected));
        auto wanted = moved(states, s_shape, after, 1500, 0);
        for (float &x : wanted)
            if (std::isnan(x)) x = 7.f;  // what lies between is left alone
        CHECK(close(final, wanted));
    }
    SECTION("inputs broadcast with strides of 0") {
        for (int64_t b = 0; b < 2; b++)
            for (int64_t t = 0; t < 5; t++)
                for (int64_t h = 0; h < 4; h++) data.g[static_cast<size_t>((b * 5 + t) * 4 + h)] = data.g[static_cast<size_t>(h)];
        data.reference_all(true, &expected, &states);
        call.set("g", Tensor(data.g.data(), g_shape, {0, 0, 1}));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(data.o, expected));
    }
    SECTION("innermost axes that are not adjacent, through scratch memory") {
        // Every tensor with its last two axes exchanged, and every second element only.
        const std::vector<int64_t> q_strides = {160, 32, 2, 4}, v_strides = {480, 96, 2, 8}, g_strides = {40, 8, 2, 1};
        const std::vector<int64_t> state_strides = {768, 192, 2, 16};
        auto q = moved(data.q, q_shape, q_strides, 320, 0), k = moved(data.k, q_shape, q_strides, 320, 0);
        auto v = moved(data.v, v_shape, v_strides, 960, 0), g = moved(data.g, {2, 5, 4, 1}, g_strides, 80, 0);
        auto initial = moved(data.initial, s_shape, state_strides, 1536, 0);
        std::vector<float> o(960, std::nanf("")), final(1536, std::nanf(""));
        call.set("q", Tensor(q.data(), q_shape, q_strides));
        call.set("k", Tensor(k.data(), q_shape, q_strides));
        call.set("v", Tensor(v.data(), v_shape, v_strides));
        call.set("g", Tensor(g.data(), g_shape, {40, 8, 2}));
        call.set("o", Tensor(o.data(), v_shape, v_strides));
        call.set("initial_state", Tensor(initial.data(), s_shape, state_strides));
        call.set("final_state", Tensor(final.data(), s_shape, state_strides));
        for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT}) {
            halation::Plan plan(call.context, gated_problem(data, form));
            plan.run(call.tensors);
            CHECK(close_or_left_alone(o, moved(expected, v_shape, v_strides, 960, 0)));
            CHECK(close_or_left_alone(final, moved(states, s_shape, state_strides, 1536, 0)));
        }
        // In place, too.
        call.set("final_state", Tensor(initial.data(), s_shape, state_strides));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close_or_left_alone(initial, moved(states, s_shape, state_strides, 1536, 0)));
    }
    SECTION("negative strides: tokens and channels backwards") {
        const std::vector<int64_t> q_strides = {80, -16, 8, -1}, v_strides = {-240, 48, -12, 1}, g_strides = {20, -4, 1, 1};
        const int64_t q_first = 4 * 16 + 7, v_first = 240 + 3 * 12, g_first = 16;
        auto q = moved(data.q, q_shape, q_strides, 160, q_first), k = moved(data.k, q_shape, q_strides, 160, q_first);
        auto v = moved(data.v, v_shape, v_strides, 480, v_first), g = moved(data.g, {2, 5, 4, 1}, g_strides, 40, g_first);
        std::vector<float> o(480, std::nanf(""));
        call.set("q", Tensor(q.data() + q_first, q_shape, q_strides));
        call.set("k", Tensor(k.data() + q_first, q_shape, q_strides));
        call.set("v", Tensor(v.data() + v_first, v_shape, v_strides));
        call.set("g", Tensor(g.data() + g_first, g_shape, {20, -4, 1}));
        call.set("o", Tensor(o.data() + v_first, v_shape, v_strides));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(o, moved(expected, v_shape, v_strides, 480, v_first)));
        CHECK(close(data.final, states));
    }
    SECTION("one key for all channels, stride 0 innermost") {
        for (size_t i = 0; i < data.k.size(); i++) data.k[i] = data.k[i / 8 * 8];
        data.reference_all(true, &expected, &states);
        std::vector<float> k;
        for (size_t i = 0; i < data.k.size(); i += 8) k.push_back(data.k[i]);
        call.set("k", Tensor(k.data(), q_shape, {10, 2, 1, 0}));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(data.o, expected));
    }
    SECTION("the output in the same buffer as the inputs") {
        // [B, T, 4, 12 + 12 + 8 + 8]: v, o, and q and k of heads 0 and 1 behind them.
        const int64_t head = 40, token = 4 * head;
        const std::vector<int64_t> strides = {5 * token, token, head, 1};
        std::vector<float> all(static_cast<size_t>(2 * 5 * token), std::nanf(""));
        const auto put = [&](const std::vector<float> &from, const std::vector<int64_t> &shape, int64_t first) {
            const auto part = moved(from, shape, strides, all.size(), first);
            for (size_t i = 0; i < all.size(); i++)
                if (!std::isnan(part[i])) all[i] = part[i];
        };
        put(data.v, v_shape, 0);
        put(data.q, q_shape, 24);
        put(data.k, q_shape, 32);
        call.set("v", Tensor(all.data(), v_shape, strides));
        call.set("o", Tensor(all.data() + 12, v_shape, strides));
        call.set("q", Tensor(all.data() + 24, q_shape, strides));
        call.set("k", Tensor(all.data() + 32, q_shape, strides));
        REQUIRE(call.run().status == HALATION_OK);
        put(expected, v_shape, 12);
        const auto result = moved(expected, v_shape, strides, all.size(), 12);
        for (size_t i = 0; i < all.size(); i++)
            if (!std::isnan(result[i])) CHECK(all[i] == Approx(result[i]).margin(1e-4));
    }
    SECTION("an innermost axis of one element may have any stride") {
        Call one(Gated(1, 3, 1, 1, 1, 1));
        one.data.reference_all(true, &expected, &states);
        one.set("q", Tensor(one.data.q.data(), {1, 3, 1, 1}, {99, 1, -5, 77}));
        REQUIRE(one.run().status == HALATION_OK);
        CHECK(close(one.data.o, expected));
    }
}

TEST_CASE("strides beyond 32 bits within one call are cut, or go through scratch memory") {
    SECTION("tokens too far apart for one chunk, through scratch memory") {
        const int64_t T = 6, step = int64_t(1) << 30;
        Sparse memory(static_cast<size_t>(T * step) * sizeof(float));
        if (!memory.data) return;
        Call call(Gated(1, T, 1, 1, 1, 1), HALATION_FORM_CHUNKWISE);
        std::vector<float> expected, states;
        call.data.reference_all(true, &expected, &states);
        for (int64_t t = 0; t < T; t++) memory.data[t * step] = call.data.q[static_cast<size_t>(t)];
        call.set("q", Tensor(memory.data, {1, T, 1, 1}, {1, step, 1, 1}));
        seen.reset();
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(call.data.o, expected));
    }
    SECTION("channels too far apart, states too") {
        const int64_t step = int64_t(1) << 30;
        Sparse memory(static_cast<size_t>(8 * step) * sizeof(float));
        if (!memory.data) return;
        Call call(Gated(1, 6, 1, 1, 4, 4));
        std::vector<float> expected, states;
        call.data.reference_all(true, &expected, &states);
        for (int64_t d = 0; d < 4; d++) {
            for (int64_t c = 0; c < 4; c++) memory.data[d * step + c] = call.data.initial[static_cast<size_t>(d * 4 + c)];
            for (int64_t t = 0; t < 6; t++) memory.data[(4 + d) * step + t] = call.data.k[static_cast<size_t>(t * 4 + d)];
        }
        call.set("k", Tensor(memory.data + 4 * step, {1, 6, 1, 4}, {1, 1, 1, step}));
        call.set("initial_state", Tensor(memory.data, {1, 1, 4, 4}, {1, 1, step, 1}));
        call.set("final_state", Tensor(memory.data, {1, 1, 4, 4}, {1, 1, step, 1}));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(call.data.o, expected));
        for (int64_t d = 0; d < 4; d++)
            for (int64_t c = 0; c < 4; c++)
                CHECK(memory.data[d * step + c] == Approx(states[static_cast<size_t>(d * 4 + c)]).margin(1e-4));
    }
    SECTION("a token further than 2^31 bytes from the next") {
        const int64_t T = 3, step = (int64_t(1) << 29) + 16;
        Sparse memory(static_cast<size_t>(T * step) * sizeof(float));
        if (!memory.data) return;
        Call call(Gated(1, T, 1, 2, 8, 8), HALATION_FORM_RECURRENT);
        std::vector<float> expected, states;
        call.data.reference_all(true, &expected, &states);
        for (int64_t t = 0; t < T; t++) std::copy_n(&call.data.v[static_cast<size_t>(t * 16)], 16, memory.data + t * step);
        call.set("v", Tensor(memory.data, {1, T, 2, 8}, {1, step, 8, 1}));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(call.data.o, expected));
    }
    SECTION("channels apart, tokens beyond 2^31 bytes") {
        const int64_t T = 40, step = int64_t(1) << 26;
        Sparse memory(static_cast<size_t>(T * step) * sizeof(float));
        if (!memory.data) return;
        Call call(Gated(1, T, 1, 1, 4, 4), HALATION_FORM_CHUNKWISE);
        std::vector<float> expected, states;
        call.data.reference_all(true, &expected, &states);
        for (int64_t t = 0; t < T; t++)
            for (int64_t c = 0; c < 4; c++) memory.data[t * step + 2 * c] = call.data.v[static_cast<size_t>(t * 4 + c)];
        call.set("v", Tensor(memory.data, {1, T, 1, 4}, {1, step, 1, 2}));
        REQUIRE(call.run().status == HALATION_OK);
        CHECK(close(call.data.o, expected));
    }
    SECTION("cut at whole chunks") {
        const int64_t T = 40, step = int64_t(1) << 27;  // 15 tokens fit into a call, so 12 are taken
        Sparse memory(static_cast<size_t>(T * step) * sizeof(float));
        if (!memory.data) return;
        Gated data(1, T, 1, 1, 1, 1);
        std::vector<float> expected, states;
        data.reference_all(true, &expected, &states);
        float *q = memory.data;
        for (int64_t t = 0; t < T; t++) q[t * step] = data.q[static_cast<size_t>(t)];
        halation_kernel whole = table()->kernels[1];
        whole.segment = 0;
        halation_kernel_table only = *table();
        only.kernels = &whole;
        only.kernel_count = 1;
        halation::Context context(1);
        context.add_kernels(only);
        halation::Plan plan(context, gated_problem(data, HALATION_FORM_CHUNKWISE));
        auto tensors = data.tensors();
        tensors[0].second = Tensor(q, {1, T, 1, 1}, {1, step, 1, 1});
        seen.reset();
        plan.run(tensors);
        CHECK(seen.most_tokens == 12);
        CHECK(seen.calls == 4);
        CHECK(close(data.o, expected));
    }
}
