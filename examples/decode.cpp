// A prompt, then token after token, the state in place in its slot of a pool.
#include <halation.hpp>

#include <cstdio>
#include <vector>

int main() {
    const int64_t prompt = 50, generated = 20, H = 4, D = 64, slots = 8;
    const int32_t slot = 5;
    std::vector<float> q(prompt * H * D, 0.1f), v(q.size(), 1.0f), g(prompt * H, -0.01f), beta(g.size(), 0.5f), o(q.size());
    std::vector<float> pool(slots * H * D * D);  // of whatever was there before

    halation::Context context;
    context.add_kernels(*halation_kernels());
    halation::Plan plan(context, halation::Problem("gated_delta", H, H, D, D));  // auto: chunkwise, recurrent for one token

    const auto step = [&](int64_t tokens, uint8_t continues) {
        halation::Batch batch;
        batch.read_slots = batch.write_slots = {&slot, {1}};
        batch.has_initial_state = {&continues, {1}};
        plan.run({{"q", {q.data(), {1, tokens, H, D}}},
                  {"k", {q.data(), {1, tokens, H, D}}},
                  {"v", {v.data(), {1, tokens, H, D}}},
                  {"g", {g.data(), {1, tokens, H}}},
                  {"beta", {beta.data(), {1, tokens, H}}},
                  {"o", {o.data(), {1, tokens, H, D}}},
                  {"initial_state", {pool.data(), {slots, H, D, D}}},
                  {"final_state", {pool.data(), {slots, H, D, D}}}},
                 batch);
        return o[static_cast<size_t>((tokens - 1) * H * D)];
    };
    std::printf("after the prompt: %g\n", step(prompt, 0));
    for (int64_t t = 0; t < generated; t++) {
        const float last = step(1, 1);
        if (t % 5 == 4) std::printf("after %lld tokens: %g\n", static_cast<long long>(t + 1), last);
    }
}
