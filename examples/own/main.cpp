// Runs the kernels of both and holds them against plain loops.
#include <halation.hpp>
#include <narrow_kernels.h>
#include <own_kernels.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int64_t T = 90, H = 2, K = 32, V = 48;

struct Data {
    std::vector<float> q = draw(T * H * K, -1, 1), k = draw(T * H * K, -.2f, .2f), v = draw(T * H * V, -1, 1);
    std::vector<float> g = draw(T * H, -.2f, 0), gv = draw(T * H * V, -.2f, 0), beta = draw(T * H, 0, 1),
                       o = std::vector<float>(T * H * V);

    static std::vector<float> draw(int64_t count, float low, float high) {
        static std::mt19937 random(1);
        std::uniform_real_distribution<float> uniform(low, high);
        std::vector<float> values(static_cast<size_t>(count));
        for (float &value : values) value = uniform(random);
        return values;
    }

    // The largest difference from the plain loop, whose decays are gv per channel or g per head.
    double error(bool per_channel) const {
        double worst = 0;
        for (int64_t h = 0; h < H; h++)
            for (int64_t c = 0; c < V; c++) {
                std::vector<double> state(K, 0.);
                for (int64_t t = 0; t < T; t++) {
                    const int64_t token = t * H + h;
                    const double decay = std::exp(static_cast<double>(per_channel ? gv[token * V + c] : g[token]));
                    double read = 0, out = 0;
                    for (int64_t d = 0; d < K; d++) read += (state[d] *= decay) * k[token * K + d];
                    const double u = beta[token] * (v[token * V + c] - read);
                    for (int64_t d = 0; d < K; d++) out += (state[d] += k[token * K + d] * u) * q[token * K + d];
                    worst = std::max(worst, std::abs(out / std::sqrt(double(K)) - o[token * V + c]));
                }
            }
        return worst;
    }
};

double run(Data &data, const char *recurrence, halation_form form, bool per_channel) {
    halation::Context context;
    context.add_kernels(*own_kernels());
    context.add_kernels(*narrow_kernels());
    halation::Problem problem(recurrence, H, H, K, V);
    problem.form = form;
    halation::Plan plan(context, problem);
    halation::NamedTensors tensors = {{"q", {data.q.data(), {1, T, H, K}}},
                                      {"k", {data.k.data(), {1, T, H, K}}},
                                      {"v", {data.v.data(), {1, T, H, V}}},
                                      {"beta", {data.beta.data(), {1, T, H}}},
                                      {"o", {data.o.data(), {1, T, H, V}}}};
    if (per_channel)
        tensors.push_back({"gv", {data.gv.data(), {1, T, H, V}}});
    else
        tensors.push_back({"g", {data.g.data(), {1, T, H}}});
    plan.run(tensors);
    const double error = data.error(per_channel);
    std::printf("%s: error %.1e\n", plan.describe().kernel, error);
    return error;
}

}  // namespace

int main() {
    Data data;
    double worst = 0;
    for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE})
        worst = std::max(worst, run(data, "value_gated_delta", form, true));
    worst = std::max(worst, run(data, "gated_delta", HALATION_FORM_CHUNKWISE, false));
    return worst < 1e-5 ? 0 : 1;
}
