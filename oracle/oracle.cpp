// Takes a whole batch apart into sequences and heads and gives each to its loop.
#include "oracle.h"
#include "other_loops.h"
#include "tensors.h"

namespace oracle {
namespace {

enum class State { none, matrix, with_normalizer };

template<typename T> struct HeadLoop {
    const char *name;
    void (*run)(Head<T> &);
    std::vector<const char *> inputs;  // besides q, k, v
    State state = State::matrix;
};

template<typename T> const std::vector<HeadLoop<T>> &head_loops() {
    static const std::vector<HeadLoop<T>> all = {
        {"linear", linear<T>, {}},
        {"linear_normalized", linear_normalized<T>, {}, State::with_normalizer},
        {"retention", retention<T>, {"gamma"}},
        {"gated", gated<T>, {"g"}},
        {"gla", gla<T>, {"g"}},
        {"gla_outer", gla_outer<T>, {"g", "gv"}},
        {"rwkv6", rwkv6<T>, {"g", "bonus"}},
        {"delta", delta<T>, {"beta"}},
        {"gated_delta", gated_delta<T>, {"g", "beta"}},
        {"kda", kda<T>, {"g", "beta"}},
        {"rwkv7", rwkv7<T>, {"g", "a", "b"}},
        {"bidirectional", bidirectional<T>, {}, State::none},
    };
    return all;
}

template<typename T> std::vector<T> initial(const Inputs &inputs, const std::string &name, const Shape &shape) {
    const auto found = inputs.tensors.find(name);
    if (found == inputs.tensors.end()) return std::vector<T>(elements(shape), T(0));
    expect_shape(name, found->second.shape, shape);
    return std::vector<T>(found->second.values.begin(), found->second.values.end());
}

template<typename T> Array widened(const Shape &shape, const std::vector<T> &values) {
    return {shape, std::vector<double>(values.begin(), values.end())};
}

double scale_of(const Inputs &inputs, double otherwise) {
    return std::isnan(inputs.scale) ? otherwise : inputs.scale;
}

int64_t key_head(const Inputs &inputs, int64_t h, int64_t H, int64_t HV) {
    return inputs.heads == Heads::grouped ? h / (HV / H) : h % H;
}

// One head's rows of a tensor [B,T,heads(,width)]; with fewer heads than value heads, those of the key head.
template<typename T>
Rows<T> rows(const Inputs &inputs, const Values<T> &values, const std::string &name, const Sequence &sequence, int64_t h,
             int64_t H, int64_t HV) {
    const Shape &shape = inputs.tensors.at(name).shape;
    const int64_t heads = shape[2], width = shape.size() == 4 ? shape[3] : 1;
    const int64_t own = heads == HV ? h : key_head(inputs, h, H, HV);
    return {values[name] + ((sequence.batch * shape[1] + sequence.first) * heads + own) * width, heads * width, width};
}

void check_heads(int64_t H, int64_t HV) {
    if (H < 1 || HV < 1 || HV % H != 0)
        refuse("HV = " + std::to_string(HV) + " value heads are not a multiple of H = " + std::to_string(H));
}

// A gate or beta has H or HV heads and as many values per head as its meaning allows.
void check_gate(const Inputs &inputs, const std::string &name, int64_t B, int64_t T, int64_t H, int64_t HV, int64_t K,
                int64_t V) {
    const bool per_head = name == "g" && (inputs.recurrence == "gated" || inputs.recurrence == "gated_delta");
    const bool beta = name == "beta";
    const auto found = inputs.tensors.find(name);
    const size_t rank = found == inputs.tensors.end() ? 4 : found->second.shape.size();
    const Shape &shape = shape_of(inputs, name, per_head || (beta && rank == 3) ? 3 : 4);
    Shape wanted = {B, T, shape[2] == H ? H : HV};
    if (shape.size() == 4) wanted.push_back(beta || name == "gv" ? V : K);
    expect_shape(name, shape, wanted);
}

template<typename T> Outputs run_heads(const Inputs &inputs, const HeadLoop<T> &loop) {
    const Shape &q = shape_of(inputs, "q", 4), &v = shape_of(inputs, "v", 4);
    const int64_t B = q[0], tokens = q[1], H = q[2], K = q[3], HV = v[2], V = v[3];
    check_heads(H, HV);
    expect_shape("k", shape_of(inputs, "k", 4), {B, tokens, H, K});
    expect_shape("v", v, {B, tokens, HV, V});

    std::vector<T> gamma(HV);
    for (int64_t h = 0; h < HV; h++) gamma[h] = 1 - std::exp2(T(-5 - h));
    for (const std::string name : loop.inputs) {
        if (name == "gamma") {
            if (!given(inputs, name)) continue;
            expect_shape(name, shape_of(inputs, name, 1), {HV});
            const std::vector<double> &values = inputs.tensors.at(name).values;
            gamma.assign(values.begin(), values.end());
        } else if (name == "bonus") {
            const Shape &shape = shape_of(inputs, name, 2);
            expect_shape(name, shape, {shape[0] == H ? H : HV, K});
        } else {
            check_gate(inputs, name, B, tokens, H, HV, K, V);
        }
    }

    const Values<T> values(inputs);
    const std::vector<Sequence> all = sequences(inputs, B, tokens);
    const int64_t N = static_cast<int64_t>(all.size());
    const Shape state_shape = {N, HV, K, V}, normalizer_shape = {N, HV, K};
    const bool stateless = loop.state == State::none;
    std::vector<T> o(B * tokens * HV * V), state, normalizer;
    state = stateless ? std::vector<T>(N * HV * K * V) : initial<T>(inputs, "initial_state", state_shape);
    normalizer = loop.state == State::with_normalizer ? initial<T>(inputs, "initial_normalizer", normalizer_shape)
                                                      : std::vector<T>(N * HV * K);

    for (int64_t n = 0; n < N; n++) {
        for (int64_t h = 0; h < HV; h++) {
            const Sequence &sequence = all[n];
            const auto find = [&](const char *name) { return rows(inputs, values, name, sequence, h, H, HV); };
            Head<T> head;
            head.tokens = sequence.last - sequence.first;
            head.K = K;
            head.V = V;
            head.feature_map = inputs.feature_map;
            if (head.feature_map.empty()) head.feature_map = stateless ? "identity" : "elu+1";
            const bool normalized = loop.state == State::with_normalizer || (stateless && head.feature_map != "identity");
            head.scale = static_cast<T>(scale_of(inputs, normalized ? 1.0 : 1.0 / std::sqrt(double(K))));
            head.q = find("q");
            head.k = find("k");
            head.v = find("v");
            head.gamma = {&gamma[h], 0, 1};
            for (const std::string name : loop.inputs) {
                if (name == "g") head.g = find("g");
                if (name == "gv") head.gv = find("gv");
                if (name == "beta") head.beta = find("beta");
                if (name == "a") head.a = find("a");
                if (name == "b") head.b = find("b");
                if (name == "bonus") {
                    const int64_t own = inputs.tensors.at(name).shape[0] == HV ? h : key_head(inputs, h, H, HV);
                    head.bonus = {values[name] + own * K, 0, K};
                }
            }
            head.state = state.data() + (n * HV + h) * K * V;
            head.normalizer = normalizer.data() + (n * HV + h) * K;
            head.o = o.data() + ((sequence.batch * tokens + sequence.first) * HV + h) * V;
            head.o_stride = HV * V;
            loop.run(head);
        }
    }
    Outputs outputs;
    outputs.o = widened({B, tokens, HV, V}, o);
    if (!stateless) outputs.final_state = widened(state_shape, state);
    if (loop.state == State::with_normalizer) outputs.final_normalizer = widened(normalizer_shape, normalizer);
    return outputs;
}

template<typename T> Outputs run_softmax(const Inputs &inputs) {
    const Shape &q = shape_of(inputs, "q", 4), &k = shape_of(inputs, "k", 4), &v = shape_of(inputs, "v", 4);
    const int64_t B = q[0], tokens = q[1], HV = q[2], K = q[3], cached = k[1], H = k[2], V = v[3];
    check_heads(H, HV);
    expect_shape("k", k, {B, cached, H, K});
    expect_shape("v", v, {B, cached, H, V});
    if (inputs.causal && tokens > cached)
        refuse("q has T = " + std::to_string(tokens) + " tokens where k has only S = " + std::to_string(cached) +
               ": the queries are the last of the cached tokens");
    const std::vector<int64_t> &caches = inputs.cache_offsets.empty() ? inputs.offsets : inputs.cache_offsets;
    if (caches.size() != inputs.offsets.size() || (!caches.empty() && caches.back() != cached))
        refuse("cache_offsets must be as many as offsets and end at S = " + std::to_string(cached));

    const Values<T> values(inputs);
    std::vector<T> o(B * tokens * HV * V);
    const std::vector<Sequence> all = sequences(inputs, B, tokens);
    for (size_t n = 0; n < all.size(); n++) {
        const Sequence &sequence = all[n];
        const int64_t first = caches.empty() ? sequence.batch * cached : caches[n];
        const int64_t seen = caches.empty() ? cached : caches[n + 1] - caches[n];
        if (inputs.causal && sequence.last - sequence.first > seen)
            refuse("sequence " + std::to_string(n) + " has more queries than cached tokens");
        for (int64_t h = 0; h < HV; h++) {
            const int64_t own = key_head(inputs, h, H, HV);
            Head<T> head;
            head.tokens = sequence.last - sequence.first;
            head.K = K;
            head.V = V;
            head.scale = static_cast<T>(scale_of(inputs, 1.0 / std::sqrt(double(K))));
            head.q = {values["q"] + ((sequence.batch * tokens + sequence.first) * HV + h) * K, HV * K, K};
            head.k = {values["k"] + (first * H + own) * K, H * K, K};
            head.v = {values["v"] + (first * H + own) * V, H * V, V};
            head.o = o.data() + ((sequence.batch * tokens + sequence.first) * HV + h) * V;
            head.o_stride = HV * V;
            softmax(head, seen, inputs.causal);
        }
    }
    return {widened({B, tokens, HV, V}, o), {}, {}};
}

template<typename T> Outputs run_hgrn(const Inputs &inputs) {
    const Shape &v = shape_of(inputs, "v", 3);
    const int64_t B = v[0], tokens = v[1], D = v[2];
    expect_shape("g", shape_of(inputs, "g", 3), v);
    const Values<T> values(inputs);
    const std::vector<Sequence> all = sequences(inputs, B, tokens);
    const Shape state_shape = {static_cast<int64_t>(all.size()), D};
    std::vector<T> o(B * tokens * D), state = initial<T>(inputs, "initial_state", state_shape);
    for (size_t n = 0; n < all.size(); n++) {
        const int64_t start = (all[n].batch * tokens + all[n].first) * D;
        Head<T> head;
        head.tokens = all[n].last - all[n].first;
        head.V = D;
        head.scale = static_cast<T>(scale_of(inputs, 1.0));
        head.v = {values["v"] + start, D, D};
        head.g = {values["g"] + start, D, D};
        head.state = state.data() + n * D;
        head.o = o.data() + start;
        head.o_stride = D;
        hgrn(head);
    }
    return {widened(v, o), widened(state_shape, state), {}};
}

template<typename T> Outputs run_ssm(const Inputs &inputs) {
    const Shape &x = shape_of(inputs, "x", 3), &A = shape_of(inputs, "A", 2);
    const int64_t B = x[0], tokens = x[1], D = x[2], N = A[1];
    expect_shape("dt", shape_of(inputs, "dt", 3), x);
    expect_shape("A", A, {D, N});
    expect_shape("B", shape_of(inputs, "B", 3), {B, tokens, N});
    expect_shape("C", shape_of(inputs, "C", 3), {B, tokens, N});
    if (given(inputs, "D")) expect_shape("D", shape_of(inputs, "D", 1), {D});
    if (given(inputs, "z")) expect_shape("z", shape_of(inputs, "z", 3), x);
    const Values<T> values(inputs);
    const std::vector<Sequence> all = sequences(inputs, B, tokens);
    const Shape state_shape = {static_cast<int64_t>(all.size()), N, D};
    std::vector<T> o(B * tokens * D), state = initial<T>(inputs, "initial_state", state_shape);
    for (size_t n = 0; n < all.size(); n++) {
        const int64_t start = all[n].batch * tokens + all[n].first;
        Scan<T> scan;
        scan.tokens = all[n].last - all[n].first;
        scan.N = N;
        scan.D = D;
        scan.scale = static_cast<T>(scale_of(inputs, 1.0));
        scan.x = {values["x"] + start * D, D, D};
        scan.dt = {values["dt"] + start * D, D, D};
        scan.A = {values["A"], 0, D * N};
        scan.B = {values["B"] + start * N, N, N};
        scan.C = {values["C"] + start * N, N, N};
        if (given(inputs, "D")) scan.skip = {values["D"], 0, D};
        if (given(inputs, "z")) scan.z = {values["z"] + start * D, D, D};
        scan.state = state.data() + n * N * D;
        scan.o = o.data() + start * D;
        ssm(scan);
    }
    return {widened(x, o), widened(state_shape, state), {}};
}

template<typename T> Outputs run_in(const Inputs &inputs) {
    for (const HeadLoop<T> &loop : head_loops<T>())
        if (inputs.recurrence == loop.name) return run_heads(inputs, loop);
    if (inputs.recurrence == "softmax") return run_softmax<T>(inputs);
    if (inputs.recurrence == "hgrn") return run_hgrn<T>(inputs);
    if (inputs.recurrence == "ssm") return run_ssm<T>(inputs);
    std::string known;
    for (const std::string &name : names()) known += (known.empty() ? "" : ", ") + name;
    refuse("the oracle has no recurrence '" + inputs.recurrence + "'; it has " + known);
}

}  // namespace

std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto &loop : head_loops<double>()) all.push_back(loop.name);
    for (const char *name : {"softmax", "hgrn", "ssm"}) all.push_back(name);
    return all;
}

Outputs run(const Inputs &inputs) {
    return run_in<double>(inputs);
}

Outputs run_in_float(const Inputs &inputs) {
    return run_in<float>(inputs);
}

}  // namespace oracle
