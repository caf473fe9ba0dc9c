// Packed batches, slots of a state pool, grouped and tiled heads, nothing to do.
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <iterator>
#include <limits>

using namespace kernels;

namespace {

Problem sizes(int64_t B, int64_t T, int64_t H, int64_t HV, int64_t K, int64_t V) {
    Problem problem;
    problem.B = B, problem.T = T, problem.H = H, problem.HV = HV, problem.K = K, problem.V = V;
    return problem;
}

const char *const states[][2] = {{"initial_state", "final_state"}, {"initial_normalizer", "final_normalizer"}};

bool all_bytes(const Tensor &tensor, uint8_t byte) {
    for (uint8_t value : tensor.data)
        if (value != byte) return false;
    return true;
}

}  // namespace

TEST_CASE("packed sequences are as each alone, empty ones hand their state on") {
    for (const std::vector<int64_t> &offsets :
         {std::vector<int64_t>{0, 0, 5, 5, 69, 69}, std::vector<int64_t>{0, 1, 2, 35}, std::vector<int64_t>{0, 64, 68}}) {
        Problem like = sizes(1, offsets.back(), 2, 4, 21, 37);
        like.offsets = offsets;
        each_problem(like, has_state, [&](Problem &problem) {
            const auto wanted = expected(problem);
            each_kernel(problem, [&](const Kernel &kernel) {
                How how;
                how.threads = 2;
                const Results all = run(problem, kernel, how);
                check_close(all, wanted);
                for (int64_t n = 0; n < problem.sequences(); n++) {
                    INFO("sequence " << n);
                    const Problem one = alone(problem, n);
                    const Results results = run(one, kernel);
                    for (const auto &[initial, final] : states) {
                        if (!all.tensors.count(final)) continue;
                        CHECK(same_bits(row_of(all[final], n), results[final]));
                        if (one.T == 0) CHECK(same_bits(results[final], one.inputs.at(initial)));
                    }
                    const Tensor o = cut_tokens(all["o"], problem.offsets[n], problem.offsets[n + 1]);
                    CHECK(same_bits(o, results["o"]));
                }
            });
        });
    }
}

TEST_CASE("empty sequences hand on what is infinite, no number or a zero below 0") {
    const double infinity = std::numeric_limits<double>::infinity();
    Problem like = sizes(1, 9, 1, 2, 21, 37);
    like.offsets = {0, 0, 9, 9};
    each_problem(like, has_state, [&](Problem &problem) {
        edit(problem, "initial_state", [&](const std::vector<int64_t> &index, double value) {
            const double odd[] = {infinity, -infinity, std::nan(""), -0.0};
            return index[0] != 1 && index.back() % 5 < 4 && (index.size() < 3 || index[index.size() - 2] % 7 == 3)
                       ? odd[index.back() % 5]
                       : value;
        });
        each_kernel(problem, [&](const Kernel &kernel) {
            for (const bool snapshots : {false, true}) {
                How how;
                if (snapshots) {
                    how.snapshot_sequences = how.snapshot_slots = {0, 1, 2};
                    how.snapshot_tokens = {0, 3, 0};
                }
                const Results results = run(problem, kernel, how);
                for (const int64_t n : {0, 2})
                    for (const char *state : {"final_state", "snapshot_state"})
                        if (results.tensors.count(state))
                            CHECK(same_bits(row_of(results[state], n), row_of(problem.inputs.at("initial_state"), n)));
            }
        });
    });
}

TEST_CASE("slots of a pool: read and write elsewhere, skip, start anew") {
    each_problem(sizes(4, 9, 2, 4, 21, 37), has_state, [](Problem &problem) {
        const Problem plain = problem;
        // Sequence 0: 5 -> 1, sequence 1: skipped when reading, 2: skipped when writing, 3: from zero -> 4.
        const std::vector<int64_t> read = {5, -1, 2, 0}, write = {1, 3, -1, 4};
        const int64_t slots = 6;
        for (const auto &[initial, final] : states) {
            if (!problem.inputs.count(initial)) continue;
            const Tensor given = plain.inputs.at(initial);
            Tensor &pool = problem.inputs[initial];
            pool.shape[0] = slots;
            pool.data.assign(given.data.size() / 4 * slots, 0xff);  // NaN
            const size_t row = given.data.size() / 4;
            std::copy_n(given.data.begin(), row, pool.data.begin() + 5 * row);
        }
        Problem fresh = alone(plain, 3);
        fresh.initial_state = false;
        for (const auto &[initial, final] : states) fresh.inputs.erase(initial);
        each_kernel(problem, [&](const Kernel &kernel) {
            for (const bool in_place : {false, true}) {
                INFO((in_place ? "in place" : "elsewhere"));
                How how;
                how.read_slots = read;
                how.write_slots = write;
                how.has_initial_state = {1, 1, 1, 0};
                how.slots = slots;
                how.in_place = in_place;
                how.threads = 2;
                const Results results = run(problem, kernel, how);
                const Results first = run(alone(plain, 0), kernel), last = run(fresh, kernel);
                CHECK(same_bits(row_of(results["o"], 0), first["o"]));
                CHECK(same_bits(row_of(results["o"], 3), last["o"]));
                CHECK(all_bytes(row_of(results["o"], 1), 0));
                CHECK(all_bytes(row_of(results["o"], 2), 0));
                for (const auto &[initial, final] : states) {
                    if (!results.tensors.count(final)) continue;
                    INFO(final);
                    CHECK(same_bits(row_of(results[final], 1), first[final]));
                    CHECK(same_bits(row_of(results[final], 4), last[final]));
                    for (const int64_t untouched : {0, 2, 3}) CHECK(all_bytes(row_of(results[final], untouched), 0xff));
                    if (in_place) CHECK(same_bits(row_of(results[final], 5), row_of(problem.inputs.at(initial), 5)));
                }
            }
        });
    });
}

TEST_CASE("snapshots are what is left after those tokens alone, and change nothing else") {
    Problem like = sizes(1, 108, 2, 4, 21, 37);
    like.offsets = {0, 0, 1, 20, 23, 108};
    // Out of order: without tokens, at the first and the last, on whole chunks of any length and between, twice at one token, of
    // a sequence that is skipped, into no slot; the last sequence starts from zero.
    const struct {
        int64_t sequence, token;
        bool taken;
    } asked[] = {{4, 70, true}, {0, 0, true},  {1, 0, true},  {1, 1, true},  {2, 19, true}, {2, 16, true},
                 {2, 16, true}, {2, 5, true},  {2, 6, true},  {3, 2, false}, {4, 0, true},  {4, 3, true},
                 {4, 64, true}, {4, 65, true}, {4, 40, true}, {4, 39, true}, {4, 85, true}, {4, 66, false}};
    each_problem(like, has_state, [&](Problem &problem) {
        if (problem.type != Type::f32) return;  // other types are drawn in calls_fuzz_test.cpp
        const int64_t count = static_cast<int64_t>(std::size(asked)), slots = 10 + count;
        Problem pooled = problem;
        for (const auto &[initial, final] : states) {
            if (!problem.inputs.count(initial)) continue;
            const Tensor &given = problem.inputs.at(initial);
            Tensor &pool = pooled.inputs[initial];
            const auto row = static_cast<int64_t>(given.data.size()) / 5;
            pool.shape[0] = slots;
            pool.data.assign(static_cast<size_t>(row * slots), 0xff);  // NaN
            for (const int64_t n : {0, 1, 2}) std::copy_n(given.data.begin() + n * row, row, pool.data.begin() + (9 - n) * row);
        }
        How how;
        how.read_slots = {9, 8, 7, -1, 5};
        how.has_initial_state = {1, 1, 1, 1, 0};
        how.slots = slots;
        for (int64_t i = 0; i < count; i++) {
            how.snapshot_sequences.push_back(asked[i].sequence);
            how.snapshot_tokens.push_back(asked[i].token);
            how.snapshot_slots.push_back(asked[i].taken || asked[i].sequence == 3 ? 10 + i : -1);
        }
        Problem fresh = alone(problem, 4);
        fresh.initial_state = false;
        for (const auto &[initial, final] : states) fresh.inputs.erase(initial);
        each_kernel(problem, [&](const Kernel &kernel) {
            How plain = how;
            for (auto *vector : {&plain.snapshot_sequences, &plain.snapshot_tokens, &plain.snapshot_slots}) vector->clear();
            plain.final_state = true;
            plain.in_place = plain.nan_workspace = false;
            plain.write_slots = {9, 1, 7, 3, 4};
            const Results without = run(pooled, kernel, plain);
            std::vector<Results> prefixes;
            for (const auto &one : asked)
                prefixes.push_back(run(cut(one.sequence == 4 ? fresh : alone(problem, one.sequence), 0, one.token), kernel));
            // Into a pool of their own, with and without final states, or among these, in place or not.
            for (int way = 0; way < 4; way++) {
                INFO("way " << way);
                how.final_state = way != 1;
                how.one_pool = way > 1;
                how.in_place = way == 3;
                how.nan_workspace = way == 1;
                how.write_slots.clear();
                if (how.final_state) how.write_slots = plain.write_slots;
                const Results results = run(pooled, kernel, how);
                CHECK(same_bits(results["o"], without["o"]));
                for (const auto &[initial, final] : states) {
                    if (!without.tensors.count(final)) continue;
                    const std::string snapshot = how.one_pool ? final : "snapshot" + std::string(final).substr(5);
                    INFO(snapshot);
                    for (int64_t i = 0; i < count; i++) {
                        INFO("sequence " << asked[i].sequence << " after " << asked[i].token << " tokens");
                        const Tensor row = row_of(results[snapshot], 10 + i);
                        if (asked[i].taken)
                            CHECK(same_bits(row, prefixes[static_cast<size_t>(i)][final]));
                        else
                            CHECK(all_bytes(row, 0xff));
                    }
                    for (int64_t slot = 0; how.final_state && slot < 10; slot++) {
                        const bool written = slot == 9 || slot == 1 || slot == 7 || slot == 4;
                        INFO("slot " << slot);
                        CHECK(same_bits(row_of(results[final], slot),
                                        row_of(how.in_place && !written ? pooled.inputs.at(initial) : without[final], slot)));
                    }
                    if (!how.one_pool)
                        for (int64_t slot = 0; slot < 10; slot++) CHECK(all_bytes(row_of(results[snapshot], slot), 0xff));
                }
            }
        });
    });
}

TEST_CASE("states of bfloat16 are read exactly, computed on in float32 and rounded once") {
    each_problem(sizes(2, 43, 2, 4, 21, 37), has_state, [](const Problem &given) {
        if (given.type != Type::f32) return;  // other types are drawn in calls_fuzz_test.cpp
        const auto rounded = [](const Tensor &state) {
            return safetensors::tensor(Type::bf16, state.shape, safetensors::values(state));
        };
        for (const int64_t T : {int64_t(1), given.T}) {
            Problem problem = cut(given, 0, T), stored = problem;
            stored.state_type = Type::bf16;
            Tensor &state = problem.inputs.at("initial_state");
            stored.inputs["initial_state"] = rounded(state);
            state = safetensors::tensor(Type::f32, state.shape, safetensors::values(stored.inputs["initial_state"]));
            std::vector<How> ways(4);
            ways[1].in_place = true;
            for (How *how : {&ways[2], &ways[3]}) {  // on a whole chunk and not
                how->snapshot_sequences = {0, 1};
                how->snapshot_tokens = {(T - 1) / 32 * 32, T - T / 5};
                how->snapshot_slots = {1, 0};
            }
            ways[3].final_state = false;
            ways[3].nan_workspace = true;
            each_kernel(stored, [&](const Kernel &kernel) {
                for (const How &how : ways) {
                    const Results exact = run(problem, kernel, how), results = run(stored, kernel, how);
                    for (const auto &[name, tensor] : results.tensors) {
                        INFO(name << ", way " << &how - ways.data());
                        const bool state = name.find("_state") != std::string::npos;
                        CHECK(same_bits(tensor, state ? rounded(exact[name]) : exact[name]));
                    }
                }
            });
        }
    });
}

TEST_CASE("states of bfloat16 are rounded to the nearest, halves to even, and NaN stays NaN") {
    if (!exists("gated")) return;
    Problem problem = sizes(1, 1, 1, 1, 21, 37);
    problem.recurrence = recurrence("gated");
    problem.state_type = Type::bf16;
    fill(problem);
    const auto constant = [&](const std::string &name, Type type, double value) {
        Tensor &tensor = problem.inputs.at(name);
        tensor = safetensors::tensor(type, tensor.shape, std::vector<double>(safetensors::values(tensor).size(), value));
    };
    constant("k", Type::f32, 1);
    constant("g", Type::f32, 0);
    constant("initial_state", Type::bf16, 1);
    // What is added to 1, and the sum as it is to be stored: 1 + 2^-7 is the next that there is.
    const double unit = 1.0 / 128, bit = 1.0 / (1 << 22), infinity = std::numeric_limits<double>::infinity();
    const double sums[][2] = {{unit / 2, 1},
                              {unit / 2 + bit, 1 + unit},
                              {unit / 2 - bit, 1},
                              {3 * unit / 2, 1 + 2 * unit},
                              {3 * unit / 2 - bit, 1 + unit},
                              {-2 - 3 * unit / 2, -1 - 2 * unit},
                              {3.4e38, infinity},
                              {-infinity, -infinity},
                              {NAN, NAN}};
    std::vector<double> values(37);
    for (size_t v = 0; v < values.size(); v++) values[v] = sums[v % std::size(sums)][0];
    problem.inputs["v"] = safetensors::tensor(Type::f32, problem.inputs.at("v").shape, values);
    each_kernel(problem,
                [&](const Kernel &kernel) {
                    const std::vector<double> stored = safetensors::values(run(problem, kernel)["final_state"]);
                    for (size_t i = 0; i < stored.size(); i++) {
                        const double wanted = sums[i % values.size() % std::size(sums)][1];
                        INFO("value channel " << i % values.size());
                        CHECK((std::isnan(wanted) ? std::isnan(stored[i]) : stored[i] == wanted));
                    }
                },
                {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE});
}

TEST_CASE("a state that is not to be read may hold NaN") {
    each_problem(sizes(2, 6, 1, 2, 21, 37), has_state, [](Problem &problem) {
        Problem none = problem;
        none.initial_state = false;
        for (const auto &[initial, final] : states) {
            none.inputs.erase(initial);
            if (!problem.inputs.count(initial)) continue;
            auto &data = problem.inputs[initial].data;
            std::fill(data.begin(), data.end(), uint8_t(0xff));
        }
        for (const Type type : {Type::f32, Type::bf16}) {
            problem.state_type = none.state_type = type;
            Tensor &state = problem.inputs["initial_state"];
            state = safetensors::tensor(type, state.shape, std::vector<double>(safetensors::values(state).size(), NAN));
            each_kernel(problem, [&](const Kernel &kernel) {
                for (const bool in_place : {false, true}) {
                    How how;
                    how.has_initial_state = {0, 0};
                    how.in_place = in_place;
                    check_same_bits(run(problem, kernel, how), run(none, kernel));
                }
            });
        }
    });
}

TEST_CASE("grouped and tiled heads read the key heads that they say") {
    for (const int64_t H : {2, 1}) {
        each_problem(sizes(2, 10, H, 6, 21, 37), has_state, [&](Problem &problem) {
            for (const auto mapping : {HALATION_HEADS_GROUPED, HALATION_HEADS_TILED}) {
                problem.heads = mapping;
                // The same with a key head of its own for every value head.
                Problem repeated = problem;
                repeated.H = problem.HV;
                const halation_row &row = *problem.recurrence.row;
                for (int i = 0; i < row.input_count; i++) {
                    const std::string dims = row.inputs[i].dims;
                    const size_t axis = dims.find('H');
                    if (axis == std::string::npos) continue;
                    Tensor &to = repeated.inputs.at(row.inputs[i].name);
                    const Tensor &from = problem.inputs.at(row.inputs[i].name);
                    to.shape[axis] = problem.HV;
                    to.data.clear();
                    int64_t inner = safetensors::bytes(from.type), outer = 1;
                    for (size_t a = axis + 1; a < dims.size(); a++) inner *= from.shape[a];
                    for (size_t a = 0; a < axis; a++) outer *= from.shape[a];
                    for (int64_t o = 0; o < outer; o++)
                        for (int64_t h = 0; h < problem.HV; h++) {
                            const int64_t key = mapping == HALATION_HEADS_TILED ? h % H : h / (problem.HV / H);
                            const auto begin = from.data.begin() + (o * H + key) * inner;
                            to.data.insert(to.data.end(), begin, begin + inner);
                        }
                }
                each_kernel(problem, [&](const Kernel &kernel) { check_same_bits(run(problem, kernel), run(repeated, kernel)); });
            }
            if (H == 1 || !has_letter(*problem.recurrence.row, 'H')) return;
            each_kernel(problem, [&](const Kernel &kernel) {
                Problem grouped = problem;
                grouped.heads = HALATION_HEADS_GROUPED;
                CHECK(!same_bits(run(problem, kernel)["o"], run(grouped, kernel)["o"]));
            });
        });
    }
}

TEST_CASE("no tokens, no sequences") {
    each_problem(sizes(2, 0, 2, 4, 21, 37), has_state, [](Problem &problem) {
        each_kernel(problem, [&](const Kernel &kernel) {
            for (const bool in_place : {false, true}) {
                How how;
                how.in_place = in_place;
                const Results results = run(problem, kernel, how);
                for (const auto &[initial, final] : states) {
                    if (results.tensors.count(final)) CHECK(same_bits(results[final], problem.inputs.at(initial)));
                }
            }
        });
    });
    each_problem(sizes(0, 7, 2, 4, 21, 37), has_state,
                 [](Problem &problem) { each_kernel(problem, [&](const Kernel &kernel) { run(problem, kernel); }); });
}

TEST_CASE("garbage in the padding of a batch reaches no token before it, nor another sequence") {
    const std::vector<int64_t> lengths = {20, 7, 13};
    each_problem(sizes(3, 20, 2, 4, 21, 37), has_state, [&](Problem &problem) {
        Problem garbage = problem;
        const halation_row &row = *problem.recurrence.row;
        for (int i = 0; i < row.input_count; i++) {
            if (std::string(row.inputs[i].dims).rfind("BT", 0) != 0) continue;
            edit(garbage, row.inputs[i].name, [&](const std::vector<int64_t> &index, double value) {
                return index[1] < lengths[static_cast<size_t>(index[0])] ? value : std::numeric_limits<double>::quiet_NaN();
            });
        }
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results sound = run(problem, kernel), results = run(garbage, kernel);
            for (int64_t b = 0; b < 3; b++) {
                const auto real = [&](const Results &all) {
                    return cut_tokens(row_of(all["o"], b), 0, lengths[static_cast<size_t>(b)]);
                };
                CHECK(same_bits(real(sound), real(results)));
            }
        });
    });
}
