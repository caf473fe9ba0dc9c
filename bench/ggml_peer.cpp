#include "ggml_peer.h"

#ifdef HALATION_BENCH_GGML

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <cmath>
#include <stdexcept>

namespace bench {
namespace {

// A graph of one operator, with its tensors.
class Graph {
public:
    Graph(const std::string &recurrence, const halation_problem &p, const Sizes &sizes, int threads)
        : backend_(ggml_backend_cpu_init()) {
        ggml_init_params parameters{ggml_tensor_overhead() * 64 + ggml_graph_overhead(), nullptr, true};
        context_ = ggml_init(parameters);
        ggml_backend_cpu_set_n_threads(backend_, threads);
        ggml_tensor *out = operator_of(recurrence, p, sizes);
        graph_ = ggml_new_graph(context_);
        ggml_build_forward_expand(graph_, out);
        buffer_ = ggml_backend_alloc_ctx_tensors(context_, backend_);
        if (!buffer_) throw std::runtime_error("ggml has not enough memory");
        for (const Input &input : inputs_) fill(input);
        if (mask_) fill_mask();
    }
    ~Graph() {
        if (buffer_) ggml_backend_buffer_free(buffer_);
        ggml_free(context_);
        ggml_backend_free(backend_);
    }
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    void run() {
        if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) throw std::runtime_error("ggml failed");
    }

private:
    // With values from low to high; unit: rows of length 1.
    struct Input {
        ggml_tensor *tensor;
        float low, high;
        bool unit;
    };

    ggml_tensor *add(float low, float high, bool unit, int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1) {
        ggml_tensor *tensor = ggml_new_tensor_4d(context_, GGML_TYPE_F32, a, b, c, d);
        inputs_.push_back({tensor, low, high, unit});
        return tensor;
    }
    ggml_tensor *unit(int64_t a, int64_t b, int64_t c, int64_t d = 1) { return add(-1, 1, true, a, b, c, d); }
    ggml_tensor *plain(int64_t a, int64_t b, int64_t c, int64_t d = 1) { return add(-1, 1, false, a, b, c, d); }

    ggml_tensor *operator_of(const std::string &name, const halation_problem &p, const Sizes &s) {
        const int64_t B = s.batch, T = s.tokens, H = p.heads, HV = p.value_heads, K = p.key_dim, V = p.value_dim, n = T * B;
        if (name == "gated_delta" || name == "kda") {
            ggml_tensor *q = unit(K, H, T, B), *k = unit(K, H, T, B), *v = plain(V, HV, T, B);
            ggml_tensor *g = add(-0.1f, 0, false, name == "kda" ? K : 1, HV, T, B), *beta = add(0, 1, false, 1, HV, T, B);
            return ggml_gated_delta_net(context_, q, k, v, g, beta, plain(K, V, HV, B), 1);
        }
        if (name == "gla") {
            ggml_tensor *k = unit(K, H, n), *v = plain(V, H, n), *q = unit(K, H, n), *g = add(0.9f, 1, false, K, H, n);
            return ggml_gated_linear_attn(context_, k, v, q, g, plain(K * V * H, B, 1), 1 / std::sqrt(static_cast<float>(K)));
        }
        if (name == "rwkv6") {
            ggml_tensor *k = unit(K, H, n), *v = plain(V, H, n), *r = unit(K, H, n), *bonus = plain(K, H, 1);
            ggml_tensor *w = add(0.9f, 1, false, K, H, n);
            return ggml_rwkv_wkv6(context_, k, v, r, bonus, w, plain(K * V * H, B, 1));
        }
        if (name == "rwkv7") {
            ggml_tensor *r = unit(K, H, n), *w = add(0.9f, 1, false, K, H, n), *k = unit(K, H, n), *v = plain(V, H, n);
            ggml_tensor *a = unit(K, H, n), *b = add(-0.01f, 0.01f, false, K, H, n);
            return ggml_rwkv_wkv7(context_, r, w, k, v, a, b, plain(K * V * H, B, 1));
        }
        if (name == "softmax") {  // the mask: what of the cache each query sees
            const int64_t cached = s.cached, seen = cached + T;
            mask_ = ggml_new_tensor_4d(context_, GGML_TYPE_F16, seen, T, 1, 1);
            return ggml_flash_attn_ext(context_, plain(K, T, HV, B), plain(K, seen, H, B), plain(V, seen, H, B), mask_,
                                       1 / std::sqrt(static_cast<float>(K)), 0, 0);
        }
        // ssm_scan: a state of N values per channel. dt goes through softplus there.
        const bool mamba_2 = name == "gated";
        const int64_t N = K, heads = mamba_2 ? HV : V, channels = mamba_2 ? V : 1;
        ggml_tensor *state = plain(N, channels, heads, B), *x = plain(channels, heads, T, B),
                    *dt = add(-4, 0.5f, false, heads, T, B);
        ggml_tensor *A = add(-4, -0.5f, false, mamba_2 ? 1 : N, heads), *b = unit(N, 1, T, B), *c = unit(N, 1, T, B);
        ids_ = ggml_new_tensor_1d(context_, GGML_TYPE_I32, B);
        return ggml_ssm_scan(context_, state, x, dt, A, b, c, ids_, 1);
    }

    void fill(const Input &input) {
        std::uniform_real_distribution<float> uniform(input.low, input.high);
        const size_t row = static_cast<size_t>(input.tensor->ne[0]), count = static_cast<size_t>(ggml_nelements(input.tensor));
        std::vector<float> values(count);
        for (float &value : values) value = uniform(random_);
        for (size_t i = 0; input.unit && i < count; i += row) {
            double squares = 0;
            for (size_t j = i; j < i + row; j++) squares += static_cast<double>(values[j]) * values[j];
            for (size_t j = i; j < i + row; j++) values[j] /= static_cast<float>(std::sqrt(squares));
        }
        ggml_backend_tensor_set(input.tensor, values.data(), 0, count * sizeof(float));
        if (!ids_) return;
        std::vector<int32_t> ids(static_cast<size_t>(ids_->ne[0]));
        for (size_t i = 0; i < ids.size(); i++) ids[i] = static_cast<int32_t>(i);
        ggml_backend_tensor_set(ids_, ids.data(), 0, ids.size() * sizeof(int32_t));
    }

    // Query t sees the keys up to its own, which is the last but T - 1 - t.
    void fill_mask() {
        const int64_t seen = mask_->ne[0], tokens = mask_->ne[1];
        std::vector<ggml_fp16_t> values(static_cast<size_t>(seen * tokens), ggml_fp32_to_fp16(0));
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t key = seen - tokens + t + 1; key < seen; key++)
                values[static_cast<size_t>(t * seen + key)] = ggml_fp32_to_fp16(-INFINITY);
        ggml_backend_tensor_set(mask_, values.data(), 0, values.size() * sizeof(ggml_fp16_t));
    }

    ggml_backend_t backend_;
    ggml_context *context_ = nullptr;
    ggml_cgraph *graph_ = nullptr;
    ggml_backend_buffer_t buffer_ = nullptr;
    ggml_tensor *ids_ = nullptr, *mask_ = nullptr;
    std::vector<Input> inputs_;
    std::mt19937 random_{1};
};

}  // namespace

std::function<void()> ggml_call(const halation_row &row, const halation_problem &p, const Sizes &sizes, int threads) {
    const std::string name = row.name;
    const bool square = p.key_dim == p.value_dim,
               ours = name == "gated_delta" || name == "kda" || name == "gla" || name == "rwkv6" || name == "rwkv7";
    const bool scan = name == "gated" || name == "ssm";
    if (name != "softmax" && (p.heads != p.value_heads || !((ours && square) || scan))) return nullptr;
    if (p.type.bits != 32) return nullptr;
    const auto graph = std::make_shared<Graph>(name, p, sizes, threads);
    return [graph] { graph->run(); };
}

std::string ggml_version() {
    return std::string("ggml ") + ggml_commit();
}

}  // namespace bench

#else

namespace bench {

std::function<void()> ggml_call(const halation_row &, const halation_problem &, const Sizes &, int) {
    return nullptr;
}

std::string ggml_version() {
    return "";
}

}  // namespace bench

#endif
