// What it is worth that the compiler knows K: gated_delta, K = V = 128, kernels made for that K beside those for any.
#include "paired.h"

#include <halation.hpp>
#include <key_dims_kernels.h>

#include <cstdio>
#include <vector>

int main() {
    const int64_t T = 4096, H = 16, D = 128;
    std::vector<float> q(T * H * D, 0.05f), v(q), g(T * H, -0.05f), beta(g.size(), 0.5f), o(q.size());
    try {
        halation::Context any(1), known(1);
        any.add_kernels(*halation_kernels());
        known.add_kernels(*key_dims_kernels());
        const auto run = [&](halation::Plan &plan, int64_t tokens) {
            plan.run({{"q", {q.data(), {1, tokens, H, D}}},
                      {"k", {q.data(), {1, tokens, H, D}}},
                      {"v", {v.data(), {1, tokens, H, D}}},
                      {"g", {g.data(), {1, tokens, H}}},
                      {"beta", {beta.data(), {1, tokens, H}}},
                      {"o", {o.data(), {1, tokens, H, D}}}});
        };
        const halation::Problem problem("gated_delta", H, H, D, D);
        halation::Plan first(any, problem), second(known, problem);
        std::printf("%s\n%s\none thread, medians of 31 in turn\n%6s %14s %14s %8s\n", first.describe().kernel,
                    second.describe().kernel, "T", "any K, us", "K = 128, us", "ratio");
        for (const int64_t tokens : {int64_t(1), T}) {
            const bench::Paired times = bench::time_in_turn(
                31, [&] { run(first, tokens); }, [&] { run(second, tokens); });
            std::printf("%6lld %14.1f %14.1f %8.3f\n", static_cast<long long>(tokens), 1e6 * times.first, 1e6 * times.second,
                        times.ratio);
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "key_dims: %s\n", error.what());
        return 1;
    }
}
