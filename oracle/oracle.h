// The oracle: every recurrence of Halation as plain loops over tokens, in double. It shares nothing with the chunk
// algorithm of the generators, so that one can be held against the other.
//
// Names and shapes are those of the command line's files (K key channels, V value channels, H heads of q and k,
// HV = n H heads of v and of the state):
//
//     q, k [B,T,H,K]   v [B,T,HV,V]   gates and beta [B,T,HV(,K or V)]   a, b [B,T,H,K]   bonus [H,K]   gamma [HV]
//     o [B,T,HV,V]     initial_state, final_state [N,HV,K,V]     initial_normalizer, final_normalizer [N,HV,K]
//     hgrn     v, g, o [B,T,D], state [N,D]
//     ssm      x, dt, z, o [B,T,D], A [D,N], B, C [B,T,N], D [D], state [B,N,D]
//     softmax  q, o [B,T,HV,.], k, v [B,S,H,.]: the queries are the last T of the S cached tokens,
//              or, not causal, any
//
// g, gv, a, b, bonus and beta may each have H or HV heads; with H heads, value head h reads the head that it reads
// of k. N is B, or the number of sequences when `offsets` packs them.
#ifndef HALATION_ORACLE_H
#define HALATION_ORACLE_H

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace oracle {

// A compact row-major tensor. An empty shape means "not there" in Outputs.
struct Array {
    std::vector<int64_t> shape;
    std::vector<double> values;
};

enum class Heads {
    grouped,  // value head h reads key head h / (HV / H)
    tiled,    // value head h reads key head h % H
};

struct Inputs {
    std::string recurrence;  // "gated_delta", ...: see names()
    std::map<std::string, Array> tensors;
    double scale = std::nan("");  // NaN: 1 for hgrn, ssm and whatever has a normaliser, else K^-0.5
    std::string feature_map;      // "elu+1", "relu", "softmax", "identity"; empty: elu+1 for linear_normalized,
                                  // identity for bidirectional
    Heads heads = Heads::grouped;
    bool causal = true;                  // softmax only
    std::vector<int64_t> offsets;        // packed batch: sequence n is tokens offsets[n] .. offsets[n + 1] of B = 1
    std::vector<int64_t> cache_offsets;  // softmax: the same of the cached tokens; empty: offsets
};

struct Outputs {
    Array o;
    Array final_state;       // empty for bidirectional and softmax
    Array final_normalizer;  // linear_normalized only
};

// The recurrences known here.
std::vector<std::string> names();

// Runs the plain loop in double. Throws std::invalid_argument, with one line that names the tensor, when an input
// is missing or its shape does not fit.
Outputs run(const Inputs &inputs);

// The same loop in float, inputs and state included: what its error allows, a float32 kernel may also take.
Outputs run_in_float(const Inputs &inputs);

// ||x - reference|| / ||reference|| over the whole tensor, in double. Elements that are the same infinity, or NaN in
// both, count as equal; a NaN or an infinity in one alone gives infinity, and so does a wrong shape. 0 if all of
// both is zero.
double error(const Array &x, const Array &reference);

// The largest error allowed for float32, per output: max(1e-5, 4 times the error of the loop in float). Infinite
// where the loop in float leaves the range of float though the one in double does not.
struct Bounds {
    double o, final_state, final_normalizer;
};
Bounds bound(const Inputs &inputs);
Bounds bound(const Inputs &inputs, const Outputs &reference);  // with run(inputs) at hand

}  // namespace oracle
#endif
