// The rows of the table that are not a K x V state per head, read token by token: softmax and bidirectional have no
// state, hgrn and ssm have no heads.
#ifndef HALATION_ORACLE_OTHER_LOOPS_H
#define HALATION_ORACLE_OTHER_LOOPS_H

#include "state_loops.h"

namespace oracle {

// O = phi(Q) (phi(K)^T V), every token reading all tokens; divided by phi(Q) (phi(K)^T 1) unless the feature map is
// the identity, whose sums may vanish or change sign. `head.state` and `head.normalizer` are scratch, zero before.
template<typename T> void bidirectional(Head<T> &head) {
    const bool normalized = head.feature_map != "identity";
    for (int64_t t = 0; t < head.tokens; t++) {
        const std::vector<T> k = features(head.feature_map, head.k(t), head.K);
        write(head, k.data(), head.v(t));
        for (int64_t i = 0; i < head.K; i++) head.normalizer[i] += k[i];
    }
    for (int64_t t = 0; t < head.tokens; t++) {
        const std::vector<T> q = features(head.feature_map, head.q(t), head.K);
        T denominator = 0;
        for (int64_t i = 0; i < head.K; i++) denominator += q[i] * head.normalizer[i];
        const std::vector<T> y = product(head, q.data());
        for (int64_t v = 0; v < head.V; v++)
            head.o[t * head.o_stride + v] = head.scale * (normalized ? quotient(y[v], denominator) : y[v]);
    }
}

// softmax(scale q K^T) V. Query t is cached token cached - tokens + t; causal: it sees that one and those before.
template<typename T> void softmax(Head<T> &head, int64_t cached, bool causal) {
    for (int64_t t = 0; t < head.tokens; t++) {
        const int64_t seen = causal ? cached - head.tokens + t + 1 : cached;
        std::vector<T> weight(seen, T(0)), y(head.V, T(0));
        for (int64_t s = 0; s < seen; s++) {
            for (int64_t k = 0; k < head.K; k++) weight[s] += head.q(t)[k] * head.k(s)[k];
            weight[s] *= head.scale;
        }
        if (seen > 0) weight = features<T>("softmax", weight.data(), seen);
        for (int64_t s = 0; s < seen; s++)
            for (int64_t v = 0; v < head.V; v++) y[v] += weight[s] * head.v(s)[v];
        std::copy(y.begin(), y.end(), head.o + t * head.o_stride);
    }
}

// One channel after the other: S_t = exp(g_t) S_{t-1} + v_t, o_t = scale S_t. The "head" has K = 1, V = D.
template<typename T> void hgrn(Head<T> &head) {
    for (int64_t t = 0; t < head.tokens; t++)
        for (int64_t d = 0; d < head.V; d++) {
            head.state[d] = decay(head.g(t)[d]) * head.state[d] + head.v(t)[d];
            head.o[t * head.o_stride + d] = head.scale * head.state[d];
        }
}

// Mamba-1's selective scan. A [D,N] and skip [D] hold for all tokens; skip and z may be absent.
//     S_t[n,d] = exp(dt_t[d] A[d,n]) S_{t-1}[n,d] + B_t[n] dt_t[d] x_t[d]
//     o_t[d]   = (scale sum_n C_t[n] S_t[n,d] + skip[d] x_t[d]) silu(z_t[d])
template<typename T> struct Scan {
    int64_t tokens = 0, N = 0, D = 0;
    T scale = 1;
    Rows<T> x, dt, A, B, C, skip, z;
    T *state = nullptr;  // [N,D], in place
    T *o = nullptr;
};

template<typename T> void ssm(Scan<T> &scan) {
    for (int64_t t = 0; t < scan.tokens; t++)
        for (int64_t d = 0; d < scan.D; d++) {
            const T x = scan.x(t)[d], dt = scan.dt(t)[d];
            T y = 0;
            for (int64_t n = 0; n < scan.N; n++) {
                T &state = scan.state[n * scan.D + d];
                state = decay(dt * scan.A(0)[d * scan.N + n]) * state + scan.B(t)[n] * (dt * x);
                y += scan.C(t)[n] * state;
            }
            y *= scan.scale;
            if (scan.skip.first) y += scan.skip(0)[d] * x;
            if (scan.z.first) {
                const T z = scan.z(t)[d];
                y *= z / (1 + std::exp(-z));
            }
            scan.o[t * scan.D + d] = y;
        }
}

}  // namespace oracle
#endif
