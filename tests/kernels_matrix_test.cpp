// Every recurrence in every form on every ISA of this machine and in every type, against the plain loop in double, over
// pairs of sizes, heads and states.
#include "kernel_run.h"
#include "pairwise.h"

#include <catch2/catch.hpp>

#include <set>

using namespace kernels;

namespace {

constexpr int64_t channels[] = {1, 3, 37, 48, 60, 100, 128, 192, 256};
constexpr int64_t tokens[] = {0, 1, 2, 15, 63, 64, 65, 300, 1000};
struct HeadsLevel {
    int64_t H, HV;
    halation_head_mapping mapping;
};
constexpr HeadsLevel heads[] = {
    {1, 1, HALATION_HEADS_GROUPED}, {3, 3, HALATION_HEADS_GROUPED}, {2, 6, HALATION_HEADS_GROUPED}, {2, 6, HALATION_HEADS_TILED}};

enum Factor { recurrence_, types_, K_, V_, T_, heads_, gates_, options_ };
// Bits of the last factor's level.
enum Option { no_state = 1, padded = 2, more_tokens_cached = 4, beta_beyond_one = 4, two_threads = 8, per_value = 8 };

// Elements of state that the plain loops update: the suite's time. The largest K, V and one head meet every T.
constexpr int64_t most_work = 70'000'000;
// The parallel form's work grows with the square of the tokens.
constexpr int64_t most_parallel_tokens = 300;

Problem problem_of(const std::vector<int> &row, const std::vector<Recurrence> &recurrences,
                   const std::vector<std::pair<Type, Type>> &types) {
    Problem problem;
    problem.recurrence = recurrences[row[recurrence_]];
    std::tie(problem.type, problem.gate_type) = types[row[types_]];
    problem.K = channels[row[K_]];
    problem.V = channels[row[V_]];
    problem.T = tokens[row[T_]];
    problem.H = heads[row[heads_]].H;
    problem.HV = heads[row[heads_]].HV;
    problem.heads = heads[row[heads_]].mapping;
    problem.gates = all_gates[row[gates_]];
    problem.initial_state = !(row[options_] & no_state);
    problem.before = row[options_] & more_tokens_cached ? 9 : 0;
    problem.largest_beta = row[options_] & beta_beyond_one ? 2 : 1;
    problem.beta_per_value = row[options_] & per_value;
    problem.B = problem.T <= 65 && problem.K * problem.V < 2000 ? 2 : 1;
    problem.seed = 1;
    for (int level : row) problem.seed = problem.seed * 31 + static_cast<unsigned>(level);
    fill(problem);
    return problem;
}

bool affordable(const std::vector<int> &row) {
    const auto least = [&](int factor, const int64_t *values, int64_t otherwise) {
        return row[factor] < 0 ? otherwise : values[row[factor]];
    };
    const int64_t HV = row[heads_] < 0 ? 1 : heads[row[heads_]].HV;
    return least(K_, channels, 1) * least(V_, channels, 1) * least(T_, tokens, 0) * HV <= most_work;
}

}  // namespace

TEST_CASE("pairwise rows meet every pair") {
    const std::vector<int> levels = {5, 3, 4, 2};
    const auto allowed = [](const std::vector<int> &row) { return !(row[0] == 2 && row[2] == 3); };
    const auto rows = pairwise(levels, allowed);
    CHECK(rows.size() < 40);  // of 120
    for (int f = 0; f < 4; f++)
        for (int g = f + 1; g < 4; g++) {
            std::set<std::pair<int, int>> met;
            for (const auto &row : rows) met.insert({row[f], row[g]});
            CHECK(met.size() == static_cast<size_t>(levels[f] * levels[g] - (f == 0 && g == 2)));
        }
}

TEST_CASE("every recurrence, form, ISA and type agrees with the plain loop") {
    const std::vector<Recurrence> recurrences = all_recurrences();
    const std::vector<std::pair<Type, Type>> types = all_types();
    const std::vector<int> levels = {static_cast<int>(recurrences.size()),
                                     static_cast<int>(types.size()),
                                     9,
                                     9,
                                     9,
                                     4,
                                     static_cast<int>(std::size(all_gates)),
                                     16};
    std::set<std::string> ran;  // kernels, by name
    std::vector<std::vector<int>> rows = pairwise(levels, affordable);
    std::set<int> long_parallel;  // recurrences that met more tokens than that in the parallel form
    for (size_t r = 0; r < rows.size(); r += stride_of_sample()) {
        const Problem problem = problem_of(rows[r], recurrences, types);
        std::map<std::string, Expected> wanted;
        std::vector<halation_form> forms = {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE};
        if (problem.T <= most_parallel_tokens || long_parallel.insert(rows[r][recurrence_]).second)
            forms.push_back(HALATION_FORM_PARALLEL);
        How how;
        how.meets = r % 2 ? Meets::end : Meets::start;
        how.padded = rows[r][options_] & padded;
        how.threads = rows[r][options_] & two_threads ? 2 : 1;
        each_kernel(
            problem,
            [&](const Kernel &kernel) {
                if (wanted.empty()) wanted = expected(problem);
                const Results results = run(problem, kernel, how);
                check_close(results, wanted);
                if (problem.T > 1) ran.insert(results.choice.kernel);
            },
            forms);
    }
    if (stride_of_sample() > 1) return;

    // Those that met too few or too many tokens only.
    Problem like;
    like.T = 65, like.H = 2, like.HV = 6, like.K = 37, like.V = 60;
    each_problem(like, any, [&](const Problem &problem) {
        std::map<std::string, Expected> wanted;
        each_kernel(problem, [&](const Kernel &kernel) {
            const halation::Problem asked = problem_for(problem, kernel);
            auto choice = HALATION_INIT(halation_choice);
            if (halation_can_run(context(1).get(), &asked, &choice) != HALATION_OK || ran.count(choice.kernel)) return;
            if (wanted.empty()) wanted = expected(problem);
            const Results results = run(problem, kernel);
            check_close(results, wanted);
            ran.insert(results.choice.kernel);
        });
    });
    const halation_kernel_table &table = *halation_kernels();
    for (int i = 0; i < table.kernel_count; i++) {
        auto asked = halation::Problem(table.kernels[i].recurrence, 1, 1, 1, 1);
        asked.isa = table.kernels[i].isa;
        asked.type = table.kernels[i].type;
        asked.gate_type = table.kernels[i].gate_type;
        asked.form = table.kernels[i].form;
        asked.feature_map = table.kernels[i].feature_map;
        if (halation_can_run(context(1).get(), &asked, nullptr) != HALATION_OK) continue;
        INFO(table.kernels[i].name << " was never run");
        CHECK(ran.count(table.kernels[i].name) == 1);
    }
}
