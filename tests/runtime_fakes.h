// Hand-written kernels with metadata of their own, so that the runtime is tested without generated ones.
//
//   gated       state "NGKV": S = exp(g) S + k v^T, o = scale q^T S; recurrent, chunkwise, value tiles of 4
//   retention   the same with an optional gamma "G"
//   normalized  gated without g, with a normalizer "NGK"
//   plain       no heads: x "BTV", A "VK", state "NKV"; recurrent only; optional skip "V" (0) and gain "V" (1)
//   cached      k and v of S tokens, no state; parallel only; causal or not
#ifndef HALATION_TESTS_RUNTIME_FAKES_H
#define HALATION_TESTS_RUNTIME_FAKES_H

#include "halation.hpp"
#include "halation_kernels.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace fakes {

const halation_kernel_table *table();

// What the kernels were called with since the last reset.
struct Seen {
    std::atomic<int> calls{0}, chunkwise_calls{0}, most_heads{0}, most_values{0}, least_values{1 << 30}, most_tokens{0};
    std::atomic<int> fail_at{-1};  // the call, counted down, that fails with a message
    void reset();
};
extern Seen seen;

// Tensors of one gated call with values that depend on the index alone, and the expected results.
struct Gated {
    int64_t B, T, H, HV, K, V;
    std::vector<float> q, k, v, g, initial, o, final;

    Gated(int64_t B, int64_t T, int64_t H, int64_t HV, int64_t K, int64_t V, unsigned seed = 1);

    halation::NamedTensors tensors(bool with_initial = true, bool with_final = true);
    // The plain loop: sequence `b`, tokens begin..end of it, state in and out [HV, K, V], outputs at those tokens.
    void reference(int64_t b, int64_t begin, int64_t end, std::vector<float> *state, std::vector<float> *out,
                   bool tiled = false) const;
    // Everything: outputs [B, T, HV, V] and final states [B, HV, K, V].
    void reference_all(bool from_initial, std::vector<float> *out, std::vector<float> *states, bool tiled = false) const;
};

// What a call that ought to fail threw; status OK and no message if it did not.
struct Failure {
    halation_status status = HALATION_OK;
    std::string message;
    bool says(const char *words) const { return message.find(words) != std::string::npos; }
};
template<typename Body> Failure failure_of(Body body) {
    try {
        body();
    } catch (const halation::Error &error) {
        return {error.status(), error.what()};
    }
    return {};
}
inline Failure failure_of(halation_status status) {
    if (status == HALATION_OK) return {};
    return {status, halation_last_message()};
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b);
bool close(const std::vector<float> &a, const std::vector<float> &b, float tolerance = 1e-4f);

halation::Problem gated_problem(const Gated &data, halation_form form = HALATION_FORM_AUTO);

// One context for tests that need none of their own, with two threads and the kernels of table().
halation::Context &context();

// Row `index` of states of so many elements each.
std::vector<float> row(const std::vector<float> &states, int64_t index, int64_t elements);

// One call of gated, with a context and a plan of its own, whose tensors a test may change.
struct Call {
    Gated data;
    halation::Context context{1};
    halation::Plan plan;
    halation::NamedTensors tensors;
    halation::Batch batch;

    explicit Call(Gated given = Gated(2, 5, 2, 4, 8, 12), halation_form form = HALATION_FORM_AUTO)
        : data(std::move(given)), plan((context.add_kernels(*table()), context), gated_problem(data, form)),
          tensors(data.tensors()) {}
    halation::Tensor &named(const char *name) {
        for (auto &[known, tensor] : tensors)
            if (known == name) return tensor;
        throw std::runtime_error(name);
    }
    void set(const char *name, halation::Tensor tensor) { named(name) = std::move(tensor); }
    Failure run() {
        return failure_of([&] { plan.run(tensors, batch); });
    }
    bool untouched() const {
        for (const float x : data.o)
            if (!std::isnan(x)) return false;
        for (const float x : data.final)
            if (!std::isnan(x)) return false;
        return true;
    }
};

}  // namespace fakes
#endif
