// A user's own recurrence, in a generated library of its own next to Halation's.
#include <catch2/catch.hpp>

#include "halation.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "comba_kernels.h"

namespace {

struct Problem {
    int64_t B = 2, T = 75, H = 2, HV = 4, K = 37, V = 41;
    std::vector<float> q, k, v, g, beta, feedback, d, initial;
    std::vector<double> o, final_state;  // of the plain loop

    Problem() {
        std::mt19937 random(11);
        std::normal_distribution<float> normal;
        std::uniform_real_distribution<float> uniform;
        const auto fill = [&](std::vector<float> &x, int64_t count, auto &&draw) {
            x.resize(static_cast<size_t>(count));
            for (float &element : x) element = draw();
        };
        fill(q, B * T * H * K, [&] { return normal(random); });
        fill(k, B * T * H * K, [&] { return normal(random); });
        fill(v, B * T * HV * V, [&] { return normal(random); });
        fill(g, B * T * HV, [&] { return -0.2f * uniform(random); });
        fill(beta, B * T * HV, [&] { return uniform(random); });
        fill(feedback, B * T * HV, [&] { return uniform(random); });
        fill(d, HV, [&] { return uniform(random); });
        fill(initial, B * HV * K * V, [&] { return normal(random); });
        for (int64_t row = 0; row < B * T * H; row++) {
            float norm = 0;
            for (int64_t c = 0; c < K; c++) norm += k[row * K + c] * k[row * K + c];
            for (int64_t c = 0; c < K; c++) k[row * K + c] /= std::sqrt(norm);
        }
        plain_loop();
    }

    void plain_loop() {
        o.assign(static_cast<size_t>(B * T * HV * V), 0);
        final_state.assign(initial.begin(), initial.end());
        const double scale = 1 / std::sqrt(static_cast<double>(K));
        for (int64_t b = 0; b < B; b++)
            for (int64_t h = 0; h < HV; h++)
                for (int64_t t = 0; t < T; t++) {
                    const int64_t head = (b * T + t) * HV + h, key = ((b * T + t) * H + h / (HV / H)) * K;
                    double *S = &final_state[(b * HV + h) * K * V];
                    for (int64_t x = 0; x < V; x++) {
                        double read = 0, out = 0;
                        for (int64_t c = 0; c < K; c++) read += double(k[key + c]) * S[c * V + x];
                        for (int64_t c = 0; c < K; c++) {
                            double &state = S[c * V + x];
                            state = std::exp(double(g[head])) * state - double(feedback[head]) * k[key + c] * read +
                                    double(beta[head]) * k[key + c] * v[head * V + x];
                            out += (double(q[key + c]) - double(d[h]) * k[key + c]) * state;
                        }
                        o[head * V + x] = scale * out;
                    }
                }
    }
};

double error(const std::vector<float> &x, const std::vector<double> &reference) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < x.size(); i++) {
        difference += (x[i] - reference[i]) * (x[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("a recurrence that is not in the table is generated and right in every form") {
    Problem p;
    halation::Context context(2);
    context.add_kernels(*halation_kernels());
    context.add_kernels(*comba_kernels());
    for (const auto form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE, HALATION_FORM_PARALLEL}) {
        CAPTURE(form);
        halation::Problem problem("comba", p.H, p.HV, p.K, p.V);
        problem.form = form;
        halation::Plan plan(context, problem);
        std::vector<float> o(p.o.size()), final_state(p.final_state.size());
        plan.run({{"q", {p.q.data(), {p.B, p.T, p.H, p.K}}},
                  {"k", {p.k.data(), {p.B, p.T, p.H, p.K}}},
                  {"v", {p.v.data(), {p.B, p.T, p.HV, p.V}}},
                  {"g", {p.g.data(), {p.B, p.T, p.HV}}},
                  {"beta", {p.beta.data(), {p.B, p.T, p.HV}}},
                  {"beta_feedback", {p.feedback.data(), {p.B, p.T, p.HV}}},
                  {"d", {p.d.data(), {p.HV}}},
                  {"initial_state", {p.initial.data(), {p.B, p.HV, p.K, p.V}}},
                  {"o", {o.data(), {p.B, p.T, p.HV, p.V}}},
                  {"final_state", {final_state.data(), {p.B, p.HV, p.K, p.V}}}});
        CHECK(error(o, p.o) < 1e-5);
        CHECK(error(final_state, p.final_state) < 1e-5);
    }
}
