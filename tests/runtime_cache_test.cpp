// Recurrences with a cache in place of a state.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace fakes;
using halation::Tensor;

TEST_CASE("attention over a cache: queries are its last tokens, causal or not") {
    const int64_t T = 6, S = 11;
    Gated data(1, S, 2, 4, 8, 12);
    std::vector<float> q(data.g.begin(), data.g.end());
    q.resize(static_cast<size_t>(T * 4 * 8), 0.3f);
    std::vector<float> o(static_cast<size_t>(T * 4 * 12)), k = data.q, v(data.v.begin(), data.v.begin() + S * 2 * 12);
    for (const bool causal : {true, false}) {
        halation::Problem problem("cached", 2, 4, 8, 12);
        problem.non_causal = !causal;
        halation::Plan plan(context(), problem);
        halation::NamedTensors tensors = {{"q", Tensor(q.data(), {1, T, 4, 8})},
                                          {"k", Tensor(k.data(), {1, S, 2, 8})},
                                          {"v", Tensor(v.data(), {1, S, 2, 12})},
                                          {"o", Tensor(o.data(), {1, T, 4, 12})}};
        seen.reset();
        plan.run(tensors);
        CHECK(seen.most_tokens == 4);  // its segment
        for (int64_t t = 0; t < T; t++)
            for (int64_t h = 0; h < 4; h++)
                for (int64_t c = 0; c < 12; c++) {
                    double sum = 0;
                    for (int64_t s = 0; s < (causal ? S - T + t + 1 : S); s++) {
                        double dot = 0;
                        for (int64_t d = 0; d < 8; d++)
                            dot += static_cast<double>(q[static_cast<size_t>((t * 4 + h) * 8 + d)]) *
                                   k[static_cast<size_t>((s * 2 + h / 2) * 8 + d)];
                        sum += dot * v[static_cast<size_t>((s * 2 + h / 2) * 12 + c)];
                    }
                    CHECK(o[static_cast<size_t>((t * 4 + h) * 12 + c)] == Approx(sum).margin(1e-4));
                }
        halation::Batch batch;
        std::vector<int32_t> offsets = {0, 6};
        batch.offsets = Tensor(offsets.data(), {2});
        CHECK(failure_of([&] {
                  plan.run(tensors, batch);
              }).says("offsets: given without cache_offsets; a packed batch of recurrence cached needs both"));
        batch = {};
        batch.cache_offsets = Tensor(offsets.data(), {2});
        CHECK(failure_of([&] { plan.run(tensors, batch); }).says("cache_offsets: given without offsets"));
        // Packed: a sequence with nothing cached, and one with a token too few.
        std::vector<int32_t> queries = {0, 0, 6}, caches = {0, 0, 11};
        batch.offsets = Tensor(queries.data(), {3});
        batch.cache_offsets = Tensor(caches.data(), {3});
        const std::vector<float> alone = o;
        plan.run(tensors, batch);
        CHECK(same_bits(o, alone));
        queries = {0, 3, 6}, caches = {0, 2, 11};
        const Failure short_cache = failure_of([&] { plan.run(tensors, batch); });
        CHECK(short_cache.message.empty() == !causal);
        if (causal) CHECK(short_cache.says("cache_offsets: sequence 0 has 3 queries, but only 2 tokens are cached"));
        caches = {0, 0, 11};
        if (!causal) {
            plan.run(tensors, batch);
            CHECK(std::all_of(o.begin(), o.begin() + 3 * 4 * 12, [](float x) { return x == 0; }));
        }
        batch = {};
        batch.read_slots = Tensor(offsets.data(), {1});
        CHECK(failure_of([&] { plan.run(tensors, batch); }).says("read_slots: given, but recurrence cached has no state"));
        tensors[1].second = Tensor(k.data(), {1, 5, 2, 8});
        tensors[2].second = Tensor(v.data(), {1, 5, 2, 12});
        CHECK((failure_of([&] { plan.run(tensors); }).status == HALATION_OK) == !causal);
        tensors[1].second = Tensor(k.data(), {1, 0, 2, 8});
        tensors[2].second = Tensor(v.data(), {1, 0, 2, 12});
        if (!causal) plan.run(tensors);
    }
}
