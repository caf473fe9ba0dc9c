// Threads: results are bitwise the same at any cap, work is shared out, contexts are independent.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <thread>

using namespace fakes;
using halation::Tensor;

namespace {

struct Results {
    std::vector<float> o, states;
};

Results run_with(int threads, Gated data, halation_form form, int chunk = 0, bool with_final = true) {
    halation::Context context(threads);
    context.add_kernels(*table());
    halation::Problem problem = gated_problem(data, form);
    problem.chunk = chunk;
    halation::Plan plan(context, problem);
    plan.run(data.tensors(true, with_final));
    return {data.o, data.final};
}

}  // namespace

TEST_CASE("results are bitwise the same at any thread count") {
    // Many heads; few heads, so that value channels are shared out; one head.
    for (const int64_t HV : {8, 2, 1})
        for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
            const Gated data(1, 600 * 8 / HV, 1, HV, 16, 30);
            const Results one = run_with(1, data, form);
            std::vector<float> expected, states;
            data.reference_all(true, &expected, &states);
            CHECK(close(one.o, expected, 1e-3f));
            for (const int threads : {2, 3, 7}) {
                const Results many = run_with(threads, data, form);
                INFO("HV " << HV << " form " << form << " threads " << threads);
                CHECK(same_bits(many.o, one.o));
                CHECK(same_bits(many.states, one.states));
            }
            CHECK(same_bits(run_with(4, data, form, 0, false).o, one.o));
        }
}

TEST_CASE("value channels are shared out at whole tiles, only when heads are few and the kernel allows it") {
    const Gated one_head(1, 4096, 1, 1, 16, 30);  // 7 whole tiles of 4, the rest goes to the last
    seen.reset();
    run_with(4, one_head, HALATION_FORM_CHUNKWISE);
    CHECK(seen.most_values == 10);
    CHECK(seen.least_values == 4);
    seen.reset();
    run_with(1, one_head, HALATION_FORM_CHUNKWISE);
    CHECK(seen.least_values == 30);
    seen.reset();
    run_with(4, one_head, HALATION_FORM_CHUNKWISE, 16);  // value_tile 0
    CHECK(seen.least_values == 30);
    seen.reset();
    run_with(4, Gated(1, 512, 8, 8, 16, 30), HALATION_FORM_CHUNKWISE);
    CHECK(seen.least_values == 30);
    seen.reset();
    run_with(4, Gated(4, 1024, 1, 1, 16, 30), HALATION_FORM_CHUNKWISE);  // sequences are enough
    CHECK(seen.least_values == 30);
}

TEST_CASE("a normalizer forbids sharing out value channels, whatever the kernel says") {
    Gated data(1, 2048, 1, 1, 16, 32);
    std::vector<float> z(16);
    for (std::vector<float> *values : {&data.q, &data.k})
        for (float &x : *values) x = std::abs(x) + 0.1f;
    auto tensors = data.tensors(false, true);
    tensors.erase(tensors.begin() + 3);
    tensors.push_back({"final_normalizer", Tensor(z.data(), {1, 1, 16})});
    halation::Context context(4);
    context.add_kernels(*table());
    seen.reset();
    halation::Plan(context, halation::Problem("normalized", 1, 1, 16, 32)).run(tensors);
    CHECK(seen.least_values == 32);
}

TEST_CASE("a call too small to be worth a thread stays on the caller's") {
    static std::thread::id caller;
    static std::atomic<bool> elsewhere;
    caller = std::this_thread::get_id();
    elsewhere = false;
    static int (*const run)(void **) = table()->kernels[0].run;
    halation_kernel kernel = table()->kernels[0];
    kernel.run = [](void **argv) {
        if (std::this_thread::get_id() != caller) elsewhere = true;
        return run(argv);
    };
    halation_kernel_table only = *table();
    only.kernels = &kernel;
    only.kernel_count = 1;
    halation::Context context(8);
    context.add_kernels(only);
    Gated data(1, 1, 4, 4, 16, 16);
    halation::Plan plan(context, gated_problem(data));
    for (int i = 0; i < 100; i++) plan.run(data.tensors());
    CHECK(!elsewhere);
    CHECK(seen.most_heads >= 4);
}

TEST_CASE("contexts on threads of their own do not meet") {
    const Gated data(2, 300, 2, 4, 16, 16);
    const Results alone = run_with(2, data, HALATION_FORM_AUTO);
    std::atomic<int> same{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 3; c++)
        callers.emplace_back([&] {
            for (int i = 0; i < 5; i++) {
                const Results mine = run_with(2, data, HALATION_FORM_AUTO);
                if (same_bits(mine.o, alone.o) && same_bits(mine.states, alone.states)) same++;
            }
        });
    for (std::thread &caller : callers) caller.join();
    CHECK(same == 15);
}

TEST_CASE("calls on one context from many threads are serialised") {
    halation::Context context(3);
    context.add_kernels(*table());
    const Gated data(1, 400, 2, 4, 16, 16);
    halation::Plan shared(context, gated_problem(data));
    Gated first = data;
    shared.run(first.tensors());
    std::atomic<int> same{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; c++)
        callers.emplace_back([&, c] {
            for (int i = 0; i < 10; i++) {
                Gated mine = data;
                if (c % 2) {
                    shared.run(mine.tensors());
                } else {
                    halation::Plan(context, gated_problem(mine)).run(mine.tensors());
                }
                if (same_bits(mine.o, first.o)) same++;
                // Messages belong to the thread that failed.
                auto wrong = mine.tensors();
                wrong.pop_back();
                wrong[static_cast<size_t>(c)].second = Tensor();
                const char *names[] = {"q: ", "k: ", "v: ", "g: "};
                if (!failure_of([&] { shared.run(wrong); }).says(names[c])) same = -1000;
            }
        });
    for (std::thread &caller : callers) caller.join();
    CHECK(same == 40);
}

TEST_CASE("a batch of very unlike sequences is shared out and right") {
    std::vector<int32_t> offsets = {0};
    for (int n = 0; n < 40; n++) offsets.push_back(offsets.back() + (n == 13 ? 2000 : n % 4));
    Gated data(1, offsets.back(), 1, 1, 16, 16);
    std::vector<float> final(40 * 256), one_final(40 * 256), expected(data.o.size());
    halation::Batch batch;
    batch.offsets = Tensor(offsets.data(), {41});
    std::vector<float> first;
    for (const int threads : {1, 2, 5}) {
        halation::Context context(threads);
        context.add_kernels(*table());
        auto tensors = data.tensors(false, false);
        tensors.push_back({"final_state", Tensor(final.data(), {40, 1, 16, 16})});
        halation::Plan(context, gated_problem(data)).run(tensors, batch);
        if (threads == 1) {
            first = data.o;
            one_final = final;
        }
        CHECK(same_bits(data.o, first));
        CHECK(same_bits(final, one_final));
    }
    for (size_t n = 0; n < 40; n++) {
        std::vector<float> state(256);
        data.reference(0, offsets[n], offsets[n + 1], &state, &expected);
    }
    CHECK(close(data.o, expected, 1e-3f));
}
