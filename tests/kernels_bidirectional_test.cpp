// Attention in which every token reads all tokens: sizes around those of tiles and of the parts that tokens are summed in, and
// batches whose sequences differ.
#include "kernel_device.h"
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace kernels;

namespace {

Problem sizes(int64_t B, int64_t T, int64_t K = 21, int64_t V = 37, int64_t H = 2, int64_t HV = 4) {
    Problem problem;
    problem.B = B, problem.T = T, problem.K = K, problem.V = V, problem.H = H, problem.HV = HV;
    return problem;
}

bool sums_all(const halation_row &row) {
    return !row.state_dims && !has_letter(row, 'S');
}

Tensor sequence_of(const Results &results, const Problem &problem, int64_t n) {
    return cut_tokens(results["o"], problem.offsets[static_cast<size_t>(n)], problem.offsets[static_cast<size_t>(n) + 1]);
}

}  // namespace

TEST_CASE("bidirectional: sizes around those of tiles and parts") {
    const struct {
        int64_t B, T, K, V, H, HV;
        bool tiled;
    } rows[] = {
        {2, 1, 1, 1, 1, 1, false},
        {1, 15, 16, 64, 1, 3, false},
        {3, 16, 17, 65, 2, 4, true},
        {1, 17, 63, 1, 2, 6, false},
        {2, 63, 64, 129, 1, 2, true},
        {1, 64, 65, 63, 3, 3, false},
        {1, 65, 130, 31, 1, 1, true},
        {1, 255, 5, 40, 1, 2, false},
        {1, 256, 31, 17, 2, 2, false},
        {2, 257, 128, 128, 1, 1, true},
        {1, 700, 33, 3, 1, 2, false},
        {2, 0, 9, 7, 1, 2, false},
        // More tokens than there may be parts of the shortest length.
        {1, 8193, 18, 16, 1, 1, false},
    };
    for (const auto &row : rows) {
        Problem like = sizes(row.B, row.T, row.K, row.V, row.H, row.HV);
        like.heads = row.tiled ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
        like.seed = static_cast<unsigned>(row.K * 100 + row.V);
        each_problem(like, sums_all, check_all_kernels);
    }
}

TEST_CASE("bidirectional: packed sequences are as each alone") {
    Problem like = sizes(1, 0, 9, 13, 1, 2);
    like.offsets = {0};
    for (const int64_t length : {1, 0, 300, 16, 9000, 5, 0, 70}) like.offsets.push_back(like.offsets.back() + length);
    like.T = like.offsets.back();
    each_problem(like, sums_all, [](const Problem &problem) {
        const auto wanted = expected(problem);
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results all = run(problem, kernel);
            check_close(all, wanted);
            for (int64_t n = 0; n < problem.sequences(); n++) {
                INFO("sequence " << n);
                CHECK(same_bits(sequence_of(all, problem, n), run(alone(problem, n), kernel)["o"]));
            }
        });
    });
}

TEST_CASE("bidirectional: a sequence of NaN, and a value channel, reach no other") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Problem like = sizes(1, 0);
    like.offsets = {0, 20, 21, 21, 310, 390};
    like.T = like.offsets.back();
    each_problem(like, sums_all, [&](const Problem &problem) {
        const Kernel kernel = {HALATION_FORM_PARALLEL, ""};
        const Results sound = run(problem, kernel);
        for (const int64_t spoilt : {0, 1, 3, 4}) {
            const int64_t first = problem.offsets[static_cast<size_t>(spoilt)],
                          last = problem.offsets[static_cast<size_t>(spoilt) + 1];
            Problem nans = problem;
            for (const char *input : {"q", "k", "v"})
                edit(nans, input, [&](const std::vector<int64_t> &index, double value) {
                    return index[1] >= first && index[1] < last ? nan : value;
                });
            const Results results = run(nans, kernel);
            for (int64_t n = 0; n < problem.sequences(); n++) {
                INFO(problem.text() << ", sequences " << spoilt << " and " << n);
                if (n != spoilt) CHECK(same_bits(sequence_of(results, problem, n), sequence_of(sound, problem, n)));
            }
        }
        // Channels beside it are those of the same tile, and there are some beyond the last.
        Problem one_channel = problem;
        edit(one_channel, "v", [&](const std::vector<int64_t> &index, double value) { return index[3] == 36 ? nan : value; });
        const std::vector<double> before = safetensors::values(sound["o"]),
                                  after = safetensors::values(run(one_channel, kernel)["o"]);
        size_t wrong = 0;
        for (size_t i = 0; i < before.size(); i++) wrong += i % 37 == 36 ? !std::isnan(after[i]) : before[i] != after[i];
        INFO(problem.text());
        CHECK(wrong == 0);
    });
}

TEST_CASE("bidirectional: tensors lie any way") {
    each_problem(sizes(2, 18), sums_all, [](const Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) { check_layouts(problem, kernel); });
    });
}

TEST_CASE("bidirectional: more sequences than a launch keeps memory for") {
    each_problem(sizes(33000, 1, 1, 1, 1, 1), sums_all, [](const Problem &problem) {
        if (problem.type != Type::f32 || problem.recurrence.feature_map != problem.recurrence.row->default_feature_map) return;
        check_close(problem, {HALATION_FORM_PARALLEL, ""});
    });
}

TEST_CASE("bidirectional: states of which a sequence has more than kernels can index are refused") {
    if (!on_device()) return;
    const auto check = [](const Problem &made, const std::string &dims, const std::string &advice) {
        each_problem(made, sums_all, [&](const Problem &problem) {
            std::string message;
            try {
                run(problem, {HALATION_FORM_PARALLEL, ""});
            } catch (const halation::Error &error) {
                message = error.what();
            }
            CHECK(message.find("value_heads, key_dim, value_dim: got " + dims + "; of a sequence of 1 tokens") !=
                  std::string::npos);
            CHECK(message.find("share the " + advice + " out over several calls") != std::string::npos);
        });
    };
    check(sizes(1, 1, 8192, 8192, 1, 17), "17, 8192 and 8192", "heads");
    check(sizes(1, 1, 8192, 139264, 1, 1), "1, 8192 and 139264", "value channels");
}
