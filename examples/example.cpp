#include <halation.hpp>

#include <cstdio>
#include <vector>

int main() {
    const int64_t B = 1, T = 100, H = 4, K = 64, V = 64;
    std::vector<float> q(B * T * H * K, 0.1f), k(q), v(B * T * H * V, 1.0f), g(B * T * H, -0.01f), beta(B * T * H, 0.5f);
    std::vector<float> o(v.size()), state(B * H * K * V);

    halation::Context context;                 // one thread per processor
    context.add_kernels(*halation_kernels());  // kernels are registered, never found by magic
    halation::Problem problem("gated_delta", H, H, K, V);
    halation::Plan plan(context, problem);  // throws halation::Error saying why if it cannot be run
    plan.run({{"q", {q.data(), {B, T, H, K}}},
              {"k", {k.data(), {B, T, H, K}}},
              {"v", {v.data(), {B, T, H, V}}},
              {"g", {g.data(), {B, T, H}}},
              {"beta", {beta.data(), {B, T, H}}},
              {"o", {o.data(), {B, T, H, V}}},
              {"final_state", {state.data(), {B, H, K, V}}}});
    std::printf("%s: o[0] = %g\n", plan.describe().kernel, o[0]);
}
