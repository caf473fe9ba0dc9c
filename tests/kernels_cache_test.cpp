// softmax attention with a cache: sizes around those of blocks of queries and keys, batches whose caches differ, and what a query
// does not see.
#include "kernel_device.h"
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace kernels;

namespace {

const double nan = std::numeric_limits<double>::quiet_NaN();

Problem sizes(int64_t B, int64_t T, int64_t before, int64_t K = 21, int64_t V = 37, int64_t H = 2, int64_t HV = 4) {
    Problem problem;
    problem.B = B, problem.T = T, problem.before = before, problem.K = K, problem.V = V, problem.H = H, problem.HV = HV;
    return problem;
}

bool has_cache(const halation_row &row) {
    return has_letter(row, 'S');
}

bool all_zero(const Tensor &tensor) {
    const std::vector<double> values = safetensors::values(tensor);
    return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

// Puts NaN at the cached tokens that `which` takes.
void spoil(Problem &problem, const std::function<bool(int64_t cached)> &which) {
    for (const char *input : {"k", "v"})
        edit(problem, input, [&](const std::vector<int64_t> &index, double value) { return which(index[1]) ? nan : value; });
}

}  // namespace

TEST_CASE("cache: sizes around those of blocks of queries, keys and channels") {
    const struct {
        int64_t B, T, before, K, V, H, HV;
        bool tiled, causal;
    } rows[] = {
        {1, 1, 0, 1, 1, 1, 1, false, true},        {2, 1, 126, 16, 128, 1, 3, false, true},
        {1, 1, 127, 17, 129, 2, 4, true, true},    {1, 1, 128, 33, 16, 2, 2, false, false},
        {2, 2, 62, 31, 15, 1, 2, false, true},     {1, 63, 0, 15, 17, 2, 4, true, true},
        {1, 64, 64, 32, 127, 1, 1, false, true},   {2, 65, 63, 48, 5, 2, 6, false, true},
        {1, 130, 1, 7, 257, 1, 2, false, false},   {1, 100, 700, 64, 64, 1, 1, false, true},
        {1, 33, 300, 128, 128, 2, 8, false, true}, {1, 31, 4, 300, 3, 1, 1, false, true},
    };
    for (const auto &row : rows) {
        Problem like = sizes(row.B, row.T, row.before, row.K, row.V, row.H, row.HV);
        like.heads = row.tiled ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
        like.causal = row.causal;
        like.seed = static_cast<unsigned>(row.K * 100 + row.V);
        each_problem(like, has_cache, check_all_kernels);
    }
}

TEST_CASE("cache: packed sequences are as each alone") {
    for (const bool causal : {true, false}) {
        Problem like = sizes(1, 0, 0);
        like.causal = causal;
        like.offsets = {0, 1, 1, 71, 74, 75, 75, 80};
        like.cache_offsets = {0, 1, 40, 110, 700, 2000, 2000, 2300};
        like.T = like.offsets.back();
        each_problem(like, has_cache, [](const Problem &problem) {
            const auto wanted = expected(problem);
            std::vector<Kernel> kernels = {{HALATION_FORM_AUTO, ""}};
            each_kernel(problem, [&](const Kernel &kernel) { kernels.push_back(kernel); });
            for (const Kernel &kernel : kernels) {
                const Results all = run(problem, kernel);
                check_close(all, wanted);
                for (int64_t n = 0; n < problem.sequences(); n++) {
                    INFO(problem.text() << ", " << kernel.text() << ", sequence " << n);
                    const Tensor o = cut_tokens(all["o"], problem.offsets[n], problem.offsets[n + 1]);
                    CHECK(same_bits(o, run(alone(problem, n), kernel)["o"]));
                }
            }
        });
    }
}

TEST_CASE("cache: what a query does not see changes nothing") {
    each_problem(sizes(1, 140, 70), has_cache, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results sound = run(problem, kernel);
            for (const int64_t from : {70, 71, 127, 128, 133, 134, 192, 209}) {
                INFO("NaN from cached token " << from);
                Problem spoilt = problem;
                spoil(spoilt, [&](int64_t cached) { return cached >= from; });
                const Tensor o = run(spoilt, kernel)["o"];
                CHECK(same_bits(cut_tokens(o, 0, from - 70), cut_tokens(sound["o"], 0, from - 70)));
                const std::vector<double> seen = safetensors::values(cut_tokens(o, from - 70, problem.T));
                CHECK(std::all_of(seen.begin(), seen.end(), [](double value) { return std::isnan(value); }));
            }
        });
    });
    Problem like = sizes(1, 9, 0);
    like.causal = false;
    like.offsets = {0, 3, 4, 9};
    like.cache_offsets = {0, 100, 333, 400};
    each_problem(like, has_cache, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results sound = run(problem, kernel);
            for (size_t n = 0; n < 3; n++) {
                Problem spoilt = problem;
                spoil(spoilt, [&](int64_t at) { return at >= problem.cache_offsets[n] && at < problem.cache_offsets[n + 1]; });
                const Tensor o = run(spoilt, kernel)["o"];
                const int64_t first = problem.offsets[n], last = problem.offsets[n + 1];
                CHECK(same_bits(cut_tokens(o, 0, first), cut_tokens(sound["o"], 0, first)));
                CHECK(same_bits(cut_tokens(o, last, problem.T), cut_tokens(sound["o"], last, problem.T)));
            }
        });
    });
}

TEST_CASE("cache: a query that sees nothing, or nothing but minus infinity, gives 0") {
    Problem like = sizes(1, 70, 0);
    like.causal = false;
    like.offsets = {0, 1, 2, 70};
    like.cache_offsets = {0, 0, 9, 9};
    each_problem(like, has_cache, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results results = run(problem, kernel);
            check_close(results, expected(problem));
            CHECK(all_zero(cut_tokens(results["o"], 0, 1)));
            CHECK(all_zero(cut_tokens(results["o"], 2, 70)));
        });
    });
    each_problem(sizes(1, 90, 130), has_cache, [](Problem &problem) {
        if (problem.type != Type::f32) return;
        // Query 20 has scores of minus infinity alone, but for one where it is 40.
        edit(problem, "k", [](const auto &index, double) { return index[1] == 140 ? 0 : -1e30; });
        edit(problem, "q", [](const auto &index, double) { return index[1] == 5 || index[1] == 40 ? 1e30 : 1e-30; });
        const auto values = safetensors::values(problem.inputs.at("v"));
        each_kernel(problem, [&](const Kernel &kernel) {
            const Tensor o = run(problem, kernel)["o"];
            CHECK(all_zero(cut_tokens(o, 5, 6)));
            const std::vector<double> one = safetensors::values(cut_tokens(o, 40, 41));
            for (int64_t g = 0; g < problem.HV; g++)
                for (int64_t v = 0; v < problem.V; v++)
                    CHECK(one[g * problem.V + v] == values[(140 * problem.H + g / 2) * problem.V + v]);
        });
    });
}

TEST_CASE("cache: tensors lie any way") {
    each_problem(sizes(2, 18, 50), has_cache, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) { check_layouts(problem, kernel); });
    });
}

TEST_CASE("cache: a query is the same whatever others it comes with") {
    if (!on_device()) return;  // a CPU's sums go through a cache as long as that of the last query of a call
    each_problem(sizes(2, 3, 4998), has_cache, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results all = run(problem, kernel);
            check_close(all, expected(problem));
            for (int64_t t = 0; t < problem.T; t++) {
                Problem one = problem;
                one.T = 1;
                one.before = problem.before + t;
                one.inputs["q"] = cut_tokens(problem.inputs.at("q"), t, t + 1);
                for (const char *name : {"k", "v"})
                    one.inputs[name] = cut_tokens(problem.inputs.at(name), 0, problem.before + t + 1);
                CHECK(same_bits(run(one, kernel)["o"], cut_tokens(all["o"], t, t + 1)));
            }
        });
    });
}

TEST_CASE("cache: more queries than a launch keeps memory for") {
    each_problem(sizes(1, 400, 3, 1, 1, 64, 64), has_cache, [](const Problem &problem) {
        if (problem.type != Type::f32) return;
        check_all_kernels(problem);
    });
}

TEST_CASE("cache: value channels of which a token keeps more than kernels can index are refused in form recurrent") {
    if (!on_device()) return;
    each_problem(sizes(1, 1, 0, 1, 350000, 1, 64), has_cache, [](const Problem &problem) {
        for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_AUTO}) {
            std::string message;
            try {
                run(problem, {form, ""});
            } catch (const halation::Error &error) {
                message = error.what();
            }
            CHECK(message.find("value_heads, value_dim: got 64 and 350000; backend " + tested_backend()) != std::string::npos);
            CHECK(message.find(form == HALATION_FORM_AUTO
                                   ? "in form recurrent, which form auto takes for one token: use form parallel"
                                   : "in form recurrent: use form parallel") != std::string::npos);
        }
    });
}
