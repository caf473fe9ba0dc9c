// The recurrences whose state is a K x V matrix per head, one function each, one token after the other: decay,
// write, read.
#ifndef HALATION_ORACLE_STATE_LOOPS_H
#define HALATION_ORACLE_STATE_LOOPS_H

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace oracle {

// An input as one value head of one sequence sees it: a row per token. Inputs without tokens have stride 0.
template<typename T> struct Rows {
    const T *first = nullptr;
    int64_t stride = 0;
    int64_t width = 0;  // values in a row
    const T *operator()(int64_t token) const { return first + token * stride; }
};

// One value head of one sequence.
template<typename T> struct Head {
    int64_t tokens = 0, K = 0, V = 0;
    T scale = 1;
    Rows<T> q, k, v, g, gv, beta, a, b, bonus, gamma;
    std::string feature_map;
    T *state = nullptr;       // [K,V], in place
    T *normalizer = nullptr;  // [K], in place
    T *o = nullptr;           // row of token 0
    int64_t o_stride = 0;
};

// The decay of a log gate. It saturates at the largest float, in double too: an empty state then stays zero under a
// gate far above 0 instead of becoming 0 * inf. A log gate of -inf is a decay of 0.
template<typename T> T decay(T log_gate) {
    return std::min(std::exp(log_gate), static_cast<T>(FLT_MAX));
}

// 0 / 0 = 0 for normalisers: no token has been seen yet.
template<typename T> T quotient(T numerator, T denominator) {
    return numerator == 0 && denominator == 0 ? T(0) : numerator / denominator;
}

template<typename T> std::vector<T> features(const std::string &map, const T *x, int64_t n) {
    std::vector<T> y(x, x + n);
    if (n == 0) return y;
    if (map == "elu+1") {
        for (T &value : y) value = value > 0 ? value + 1 : std::exp(value);
    } else if (map == "relu") {
        for (T &value : y) value = std::max(value, T(0));
    } else if (map == "softmax") {  // over the key channels of one token
        const T largest = *std::max_element(y.begin(), y.end());
        T sum = 0;
        for (T &value : y) sum += value = std::exp(value - largest);
        for (T &value : y) value /= sum;
    } else if (map != "identity") {
        throw std::invalid_argument("feature map '" + map + "' is not known: elu+1, relu, softmax or identity");
    }
    return y;
}

// S *= d
template<typename T> void decay_state(Head<T> &head, T d) {
    for (int64_t i = 0; i < head.K * head.V; i++) head.state[i] *= d;
}

// S = diag(exp g) S
template<typename T> void decay_keys(Head<T> &head, const T *g) {
    for (int64_t k = 0; k < head.K; k++) {
        const T d = decay(g[k]);
        for (int64_t v = 0; v < head.V; v++) head.state[k * head.V + v] *= d;
    }
}

// S += k u^T
template<typename T> void write(Head<T> &head, const T *key, const T *u) {
    for (int64_t k = 0; k < head.K; k++)
        for (int64_t v = 0; v < head.V; v++) head.state[k * head.V + v] += key[k] * u[v];
}

// S^T x
template<typename T> std::vector<T> product(const Head<T> &head, const T *x) {
    std::vector<T> y(head.V, T(0));
    for (int64_t k = 0; k < head.K; k++)
        for (int64_t v = 0; v < head.V; v++) y[v] += x[k] * head.state[k * head.V + v];
    return y;
}

// o_t = scale * S^T q
template<typename T> void read(Head<T> &head, int64_t t) {
    const std::vector<T> y = product(head, head.q(t));
    for (int64_t v = 0; v < head.V; v++) head.o[t * head.o_stride + v] = head.scale * y[v];
}

// S += k u^T with u = beta (v - S^T k); beta per head or per value channel
template<typename T> void delta_write(Head<T> &head, int64_t t) {
    std::vector<T> u = product(head, head.k(t));
    const T *beta = head.beta(t);
    for (int64_t v = 0; v < head.V; v++) u[v] = beta[head.beta.width == 1 ? 0 : v] * (head.v(t)[v] - u[v]);
    write(head, head.k(t), u.data());
}

template<typename T> void linear(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        write(head, head.k(t), head.v(t));
        read(head, t);
    }
}

template<typename T> void linear_normalized(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        const std::vector<T> q = features(head.feature_map, head.q(t), head.K);
        const std::vector<T> k = features(head.feature_map, head.k(t), head.K);
        write(head, k.data(), head.v(t));
        for (int64_t i = 0; i < head.K; i++) head.normalizer[i] += k[i];
        T denominator = 0;
        for (int64_t i = 0; i < head.K; i++) denominator += q[i] * head.normalizer[i];
        const std::vector<T> y = product(head, q.data());
        for (int64_t v = 0; v < head.V; v++) head.o[t * head.o_stride + v] = head.scale * quotient(y[v], denominator);
    }
}

template<typename T> void retention(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        decay_state(head, *head.gamma(t));
        write(head, head.k(t), head.v(t));
        read(head, t);
    }
}

template<typename T> void gated(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        decay_state(head, decay(*head.g(t)));
        write(head, head.k(t), head.v(t));
        read(head, t);
    }
}

template<typename T> void gla(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        decay_keys(head, head.g(t));
        write(head, head.k(t), head.v(t));
        read(head, t);
    }
}

template<typename T> void gla_outer(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        decay_keys(head, head.g(t));
        for (int64_t v = 0; v < head.V; v++) {
            const T d = decay(head.gv(t)[v]);
            for (int64_t k = 0; k < head.K; k++) head.state[k * head.V + v] *= d;
        }
        write(head, head.k(t), head.v(t));
        read(head, t);
    }
}

// The token's own write is read with the bonus, the tokens before it through the state that has not yet decayed.
template<typename T> void rwkv6(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        const std::vector<T> before = product(head, head.q(t));
        T own = 0;
        for (int64_t k = 0; k < head.K; k++) own += head.q(t)[k] * head.bonus(t)[k] * head.k(t)[k];
        for (int64_t v = 0; v < head.V; v++) head.o[t * head.o_stride + v] = head.scale * (before[v] + own * head.v(t)[v]);
        decay_keys(head, head.g(t));
        write(head, head.k(t), head.v(t));
    }
}

template<typename T> void delta(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        delta_write(head, t);
        read(head, t);
    }
}

template<typename T> void gated_delta(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        decay_state(head, decay(*head.g(t)));
        delta_write(head, t);
        read(head, t);
    }
}

template<typename T> void kda(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        decay_keys(head, head.g(t));
        delta_write(head, t);
        read(head, t);
    }
}

// S_t = D_t S_{t-1} + k v^T + b (a^T S_{t-1}): the low-rank write reads the state that has not decayed.
template<typename T> void rwkv7(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++) {
        const std::vector<T> w = product(head, head.a(t));
        decay_keys(head, head.g(t));
        write(head, head.k(t), head.v(t));
        write(head, head.b(t), w.data());
        read(head, t);
    }
}

}  // namespace oracle
#endif
