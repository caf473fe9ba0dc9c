#include "plain_loop.h"

#include <cmath>
#include <cstring>

// Made for several processors, of which the program takes the best that it runs on. The choice is made before main(), and before
// ThreadSanitizer is ready for instrumented code.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define HALATION_CLONES __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define HALATION_CLONES
#endif

namespace bench {
namespace {

// Of one head. Null: it has none. Strides are those of a token.
struct Head {
    const float *q, *k, *v, *g, *beta, *a, *b;
    float *state, *o;
    int64_t tokens, K, V, key_stride, value_stride, gate_stride;
    bool gate_per_channel;
    float scale;
};

HALATION_CLONES void decay(float *__restrict state, float by, int64_t count) {
    for (int64_t i = 0; i < count; i++) state[i] *= by;
}

HALATION_CLONES void add_product(const float *__restrict state, float by, float *__restrict sum, int64_t count) {
    for (int64_t i = 0; i < count; i++) sum[i] += by * state[i];
}

void run(const Head &h) {
    std::vector<float> read(static_cast<size_t>(h.V)), written(static_cast<size_t>(h.V));
    for (int64_t t = 0; t < h.tokens; t++) {
        const float *q = h.q + t * h.key_stride, *k = h.k + t * h.key_stride, *v = h.v + t * h.value_stride;
        const auto product = [&](const float *x) {
            std::memset(read.data(), 0, read.size() * sizeof(float));
            for (int64_t d = 0; d < h.K; d++) add_product(h.state + d * h.V, x[d], read.data(), h.V);
        };
        if (h.a) {
            product(h.a + t * h.key_stride);
            written = read;
        }
        if (h.g) {
            const float *g = h.g + t * h.gate_stride;
            const float one = h.gate_per_channel ? 1 : std::exp(g[0]);
            for (int64_t d = 0; d < h.K; d++) decay(h.state + d * h.V, h.gate_per_channel ? std::exp(g[d]) : one, h.V);
        }
        if (h.beta) {
            product(k);
            const float beta = h.beta[t * (h.value_stride / h.V)];
            for (int64_t i = 0; i < h.V; i++) written[static_cast<size_t>(i)] = beta * (v[i] - read[static_cast<size_t>(i)]);
        }
        for (int64_t d = 0; d < h.K; d++) {
            add_product(h.beta ? written.data() : v, k[d], h.state + d * h.V, h.V);
            if (h.b) add_product(written.data(), h.b[t * h.key_stride + d], h.state + d * h.V, h.V);
        }
        product(q);
        for (int64_t i = 0; i < h.V; i++) h.o[t * h.value_stride + i] = h.scale * read[static_cast<size_t>(i)];
    }
}

}  // namespace

std::function<void()> plain_loop(const halation_row &row, const halation_problem &p, const Sizes &sizes, const Inputs &inputs) {
    const std::string name = row.name;
    const bool known = name == "linear" || name == "gated" || name == "gla" || name == "delta" || name == "gated_delta" ||
                       name == "kda" || name == "rwkv7";
    if (!known || p.type.bits != 32 || p.gate_type.bits != 32 || p.heads != p.value_heads) return nullptr;
    const auto tensor = [&inputs](const char *wanted) -> float * {
        for (const auto &[other, tensor] : inputs.tensors())
            if (other == wanted) return static_cast<float *>(tensor.data());
        return nullptr;
    };
    const float *q = tensor("q"), *k = tensor("k"), *v = tensor("v"), *g = tensor("g"), *beta = tensor("beta"), *a = tensor("a"),
                *b = tensor("b");
    float *state = tensor("final_state"), *o = tensor("o");
    const bool per_channel = name == "gla" || name == "kda" || name == "rwkv7";
    const int64_t B = sizes.batch, T = sizes.tokens, H = p.heads, K = p.key_dim, V = p.value_dim;
    return [=] {
        for (int64_t n = 0; n < B; n++)
            for (int64_t h = 0; h < H; h++) {
                const int64_t token = n * T * H + h, gates = per_channel ? K : 1;
                const auto of = [&](const float *x, int64_t size) { return x ? x + token * size : nullptr; };
                run({of(q, K), of(k, K), of(v, V), of(g, gates), of(beta, 1), of(a, K), of(b, K), state + (n * H + h) * K * V,
                     o + token * V, T, K, V, H * K, H * V, H * gates, per_channel, 1 / std::sqrt(static_cast<float>(K))});
            }
    };
}

}  // namespace bench
