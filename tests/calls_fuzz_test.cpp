// Whole calls drawn at random: recurrence, form, ISA, types, shapes, gates, layouts, packed batches, slots of a pool,
// snapshots. Each is held against the plain loop, and one of its sequences against itself alone, bit for bit.
// HALATION_TEST_SEED=N draws others, HALATION_TEST_COUNT=N that many; a failure names its call's own seed, with which it is
// drawn again as the first: HALATION_TEST_SEED=that HALATION_TEST_COUNT=1.
#include "draw.h"
#include "kernel_device.h"
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <numeric>

using namespace kernels;

namespace {

unsigned from_environment(const char *name, unsigned otherwise) {
    const char *text = std::getenv(name);
    return text && *text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

constexpr int64_t most_work = 400'000;  // elements of state updated by the plain loops

std::vector<int64_t> draw_offsets(Draw &draw, int64_t sequences, int64_t end) {
    std::vector<int64_t> offsets = {0, end};
    while (static_cast<int64_t>(offsets.size()) <= sequences) offsets.push_back(draw.number(0, end));
    std::sort(offsets.begin(), offsets.end());
    return offsets;
}

void draw_batch(Draw &draw, Problem *problem) {
    const bool cached = has_letter(*problem->recurrence.row, 'S');
    if (!problem->recurrence.row->state_dims && !cached) return;
    const int64_t sequences = draw.size(12);
    problem->B = 1;
    problem->offsets = draw_offsets(draw, sequences, problem->T);
    if (!cached) return;
    problem->cache_offsets = {0};
    for (int64_t n = 0; n < sequences; n++) {
        const int64_t queries = problem->offsets[n + 1] - problem->offsets[n];
        problem->cache_offsets.push_back(problem->cache_offsets.back() + queries + (draw.chance(50) ? draw.size(40) : 0));
    }
}

Problem draw_problem(Draw &draw, unsigned seed) {
    Problem problem;
    problem.seed = seed;
    problem.recurrence = draw.one_of(all_recurrences());
    std::tie(problem.type, problem.gate_type) = draw.one_of(all_types());
    // A few are long. Those have states of at least 16 numbers: the error of a single one, which may happen to be near zero
    // after thousands of tokens, says nothing.
    const bool is_long = draw.chance(4) && problem.recurrence.row->state_dims;
    problem.K = draw.size(is_long ? 3 : 200);
    // Some devices compile anew, for seconds, for every 16 key channels more.
    if (on_device() && !std::getenv("HALATION_TEST_COUNT")) problem.K = 17 + problem.K % 32;
    problem.V = is_long ? draw.number(16, 20) : draw.size(200);
    problem.H = draw.size(is_long ? 1 : 4);
    problem.HV = problem.H * draw.size(is_long ? 1 : 5);
    problem.B = is_long ? 1 : draw.size(4);
    const int64_t longest = most_work / (problem.B * problem.HV * problem.K * problem.V);
    problem.T = is_long ? draw.number(1, 65537) : std::min(draw.size(400), longest + 1);
    if (draw.chance(3)) problem.T = 0;
    problem.heads = draw.chance(50) ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
    problem.causal = draw.chance(80);
    problem.before = draw.chance(50) ? draw.size(70) : 0;
    problem.initial_state = draw.chance(70);
    problem.state_type = draw.chance(20) ? Type::bf16 : Type::f32;
    problem.gates = all_gates[draw.number(0, std::size(all_gates) - 1)];
    problem.largest_beta = draw.chance(30) ? 2 : 1;
    problem.beta_per_value = draw.chance(50);
    if (draw.chance(30)) problem.scale = static_cast<float>(draw.number(1, 300)) / 100;
    if (draw.chance(40)) draw_batch(draw, &problem);
    fill(problem);
    return problem;
}

// A form and ISA that can run it; false if none was found.
bool draw_kernel(Draw &draw, const Problem &problem, Kernel *kernel) {
    std::vector<halation_form> forms = {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE};
    if (problem.T <= 600) forms.push_back(HALATION_FORM_PARALLEL);
    std::vector<std::string> isas = {"x86_64", "avx2", "avx512", "neon"};
    if (on_device()) isas = {"gpu"};
    draw.shuffle(forms);
    draw.shuffle(isas);
    for (const halation_form form : forms)
        for (const std::string &isa : isas) {
            *kernel = {form, isa};
            const halation::Problem asked = problem_for(problem, *kernel);
            if (halation_can_run(context(1).get(), &asked, nullptr) == HALATION_OK) return true;
        }
    return false;
}

void draw_layout(Draw &draw, Problem *problem, How *how) {
    how->threads = static_cast<int>(draw.number(1, 3));
    how->meets = draw.chance(70) ? Meets::end : Meets::start;
    how->padded = draw.chance(30);
    if (draw.chance(60)) how->layout_seed = static_cast<unsigned>(draw.number(1, 1 << 30));
    how->final_state = draw.chance(80);
    how->in_place = how->final_state && problem->initial_state && draw.chance(40);
    how->nan_workspace = draw.chance(30);
    if (!draw.chance(20)) return;
    const halation_row &row = *problem->recurrence.row;
    const std::string name = row.inputs[draw.number(0, row.input_count - 1)].name;
    const auto axis = static_cast<size_t>(draw.number(0, static_cast<int64_t>(problem->inputs.at(name).shape.size()) - 1));
    const Tensor before = problem->inputs.at(name);
    if (before.data.empty()) return;
    int64_t inner = 1;
    for (size_t a = axis + 1; a < before.shape.size(); a++) inner *= before.shape[a];
    const std::vector<double> values = safetensors::values(before);
    std::vector<double> constant(values.size());
    for (size_t i = 0; i < values.size(); i++) {
        const int64_t at = static_cast<int64_t>(i), index = at / inner % before.shape[axis];
        constant[i] = values[static_cast<size_t>(at - index * inner)];
    }
    // Keys that were unit vectors stay as short: longer ones let the state of a delta rule grow, which its parallel form cannot
    // take.
    if ((name == "k" || name == "a") && axis + 1 == before.shape.size())
        for (double &x : constant) x /= std::sqrt(static_cast<double>(before.shape[axis]));
    problem->inputs[name] = safetensors::tensor(before.type, before.shape, constant);
    how->broadcast[name] = axis;
}

// ---- states

const char *const kinds[] = {"state", "normalizer"};

size_t row_bytes(const Tensor &rows) {
    return rows.shape[0] ? rows.data.size() / static_cast<size_t>(rows.shape[0]) : 0;
}

void copy_row(const Tensor &from, int64_t row, Tensor *to, int64_t to_row) {
    const size_t bytes = row_bytes(from);
    std::copy_n(from.data.begin() + static_cast<std::ptrdiff_t>(bytes) * row, bytes,
                to->data.begin() + static_cast<std::ptrdiff_t>(bytes) * to_row);
}

// As many rows as asked, all NaN.
Tensor pool_like(const Tensor &rows, int64_t count) {
    Tensor pool = rows;
    pool.data.assign(row_bytes(rows) * static_cast<size_t>(count), 0xff);
    pool.shape[0] = count;
    return pool;
}

// One call: what is computed, how it is handed over, and what is known of its sequences.
struct Call {
    Problem problem;  // rows of states as sequences, those that start from zero zeroed
    Problem given;    // as handed over: rows of states in the slots of a pool
    Kernel kernel;
    How how;
    bool pooled = false;

    bool skipped(int64_t n) const { return pooled && (how.read_slots[n] < 0 || how.write_slots[n] < 0); }
    int64_t final_row(int64_t n) const { return pooled ? how.write_slots[n] : n; }
};

void draw_pool(Draw &draw, Call *call) {
    Problem &problem = call->problem;
    const int64_t sequences = problem.sequences();
    if (!problem.initial_state || sequences == 0 || !draw.chance(50)) return;
    How &how = call->how;
    how.final_state = true;
    call->pooled = true;
    how.slots = 2 * sequences + draw.size(5) + 3;  // the last three are for snapshots
    std::vector<int64_t> slots(static_cast<size_t>(how.slots - 3));
    std::iota(slots.begin(), slots.end(), 0);
    draw.shuffle(slots);
    for (int64_t n = 0; n < sequences; n++) {
        const bool same = draw.chance(50);
        how.read_slots.push_back(draw.chance(10) ? -1 : slots[2 * n]);
        how.write_slots.push_back(draw.chance(10) ? -1 : slots[2 * n + (same ? 0 : 1)]);
    }
    const bool flags = draw.chance(50);
    for (int64_t n = 0; flags && n < sequences; n++) how.has_initial_state.push_back(draw.chance(60));
    for (const char *kind : kinds) {
        const std::string name = std::string("initial_") + kind;
        if (!problem.inputs.count(name)) continue;
        Tensor &rows = problem.inputs.at(name);
        Tensor pool = pool_like(rows, how.slots);
        for (int64_t n = 0; n < sequences; n++) {
            const bool from_zero = flags && !how.has_initial_state[n];
            if (from_zero)
                std::fill_n(rows.data.begin() + static_cast<std::ptrdiff_t>(row_bytes(rows)) * n, row_bytes(rows), uint8_t(0));
            else if (how.read_slots[n] >= 0)
                copy_row(rows, n, &pool, how.read_slots[n]);
        }
        call->given.inputs[name] = std::move(pool);
    }
}

void draw_snapshots(Draw &draw, Call *call) {
    const Problem &problem = call->problem;
    if (!problem.recurrence.row->state_dims || problem.sequences() == 0 || !draw.chance(30)) return;
    How &how = call->how;
    how.one_pool = call->pooled && draw.chance(50);
    const int64_t count = std::min<int64_t>(draw.number(1, 3), call->pooled ? 3 : problem.sequences());
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = draw.number(0, problem.sequences() - 1);
        const int64_t length = problem.offsets.empty() ? problem.T : problem.offsets[n + 1] - problem.offsets[n];
        how.snapshot_sequences.push_back(n);
        how.snapshot_tokens.push_back(draw.number(0, length));
        how.snapshot_slots.push_back(draw.chance(10) ? -1 : call->pooled ? how.slots - 3 + i : i);
    }
}

// ---- checks

// What of a tensor of states a snapshot is in.
std::string snapshot_tensor(const Call &call, const char *kind) {
    return (call.how.one_pool ? "final_" : "snapshot_") + std::string(kind);
}

void check_row_is_untouched(const Tensor &rows, int64_t row) {
    const auto begin = rows.data.begin() + static_cast<std::ptrdiff_t>(row_bytes(rows)) * row;
    CHECK(std::all_of(begin, begin + static_cast<std::ptrdiff_t>(row_bytes(rows)),
                      [](uint8_t byte) { return byte == untouched_byte; }));
}

// Rows of skipped sequences are put in from what is expected, so that the whole can be compared.
void check_final_states(const Call &call, const Results &results, const std::map<std::string, Expected> &wanted) {
    for (const char *kind : kinds) {
        const auto found = results.tensors.find(std::string("final_") + kind);
        if (found == results.tensors.end()) continue;
        const Tensor &final = found->second;
        const Expected &expected = wanted.at(found->first);
        Tensor rows = safetensors::tensor(final.type, expected.value.shape, expected.value.values);
        std::vector<bool> written(static_cast<size_t>(final.shape[0]), false);
        for (int64_t n = 0; n < call.problem.sequences(); n++) {
            if (call.skipped(n)) continue;
            copy_row(final, call.final_row(n), &rows, n);
            written[static_cast<size_t>(call.final_row(n))] = true;
        }
        for (size_t i = 0; call.how.one_pool && i < call.how.snapshot_slots.size(); i++)
            if (!call.skipped(call.how.snapshot_sequences[i]) && call.how.snapshot_slots[i] >= 0)
                written[static_cast<size_t>(call.how.snapshot_slots[i])] = true;
        INFO(found->first);
        CHECK(error(rows, expected.value) <= expected.bound);
        const Tensor *pool = call.how.in_place ? &call.given.inputs.at(std::string("initial_") + kind) : nullptr;
        for (int64_t row = 0; call.pooled && row < final.shape[0]; row++) {
            if (written[static_cast<size_t>(row)]) continue;
            INFO("row " << row << " belongs to no sequence");
            if (pool)
                CHECK(same_bits(row_of(final, row), row_of(*pool, row)));
            else
                check_row_is_untouched(final, row);
        }
    }
}

void check_outputs(const Call &call, const Results &results, const Expected &expected) {
    Tensor o = results["o"];
    const Problem &problem = call.problem;
    const int64_t tokens = problem.B * problem.T;
    const size_t bytes = tokens ? o.data.size() / static_cast<size_t>(tokens) : 0;
    const Tensor rounded = safetensors::tensor(o.type, expected.value.shape, expected.value.values);
    for (int64_t n = 0; n < problem.sequences(); n++) {
        if (!call.skipped(n)) continue;
        const int64_t first = problem.offsets.empty() ? n * problem.T : problem.offsets[n];
        const int64_t last = problem.offsets.empty() ? first + problem.T : problem.offsets[n + 1];
        for (size_t i = static_cast<size_t>(first) * bytes; i < static_cast<size_t>(last) * bytes; i++) {
            if (o.data[i]) FAIL_CHECK("output of skipped sequence " << n << " is not zero");
            o.data[i] = rounded.data[i];
        }
    }
    INFO("o");
    CHECK(error(o, expected.value) <= expected.bound);
}

void check_snapshots(const Call &call, const Results &results) {
    const How &how = call.how;
    for (size_t i = 0; i < how.snapshot_slots.size(); i++) {
        const int64_t n = how.snapshot_sequences[i], token = how.snapshot_tokens[i], slot = how.snapshot_slots[i];
        if (slot < 0) continue;
        INFO("snapshot of sequence " << n << " after " << token << " tokens");
        if (call.skipped(n)) {
            if (!how.one_pool) check_row_is_untouched(results["snapshot_state"], slot);
            continue;
        }
        const Problem sequence = alone(call.problem, n), prefix = cut(sequence, 0, token);
        const auto wanted = expected(prefix);
        for (const char *kind : kinds) {
            const auto found = results.tensors.find(snapshot_tensor(call, kind));
            if (found == results.tensors.end()) continue;
            const Expected &expected = wanted.at(std::string("final_") + kind);
            CHECK(error(row_of(found->second, slot), expected.value) <= expected.bound);
            // Form auto has another kernel for one token.
            if (call.kernel.form == HALATION_FORM_AUTO && (token == 1) != (sequence.T == 1)) continue;
            CHECK(same_bits(row_of(found->second, slot), run(prefix, call.kernel)[std::string("final_") + kind]));
        }
    }
}

// Bit for bit the same alone, compact, on one thread.
void check_alone(Draw &draw, const Call &call, const Results &results) {
    const Problem &problem = call.problem;
    if (problem.sequences() == 0) return;
    const int64_t n = draw.number(0, problem.sequences() - 1);
    if (call.skipped(n)) return;
    INFO("sequence " << n << " alone");
    const Results one = run(alone(problem, n), call.kernel);
    const Tensor &o = results["o"];
    if (problem.offsets.empty())
        CHECK(same_bits(row_of(o, n), one["o"]));
    else
        CHECK(same_bits(cut_tokens(o, problem.offsets[n], problem.offsets[n + 1]), one["o"]));
    for (const char *kind : kinds) {
        const auto found = results.tensors.find(std::string("final_") + kind);
        if (found != results.tensors.end()) CHECK(same_bits(row_of(found->second, call.final_row(n)), one[found->first]));
    }
}

void check_call(unsigned seed) {
    Draw draw(seed);
    Call call;
    call.problem = draw_problem(draw, seed);
    if (!draw_kernel(draw, call.problem, &call.kernel)) return;
    draw_layout(draw, &call.problem, &call.how);
    call.given = call.problem;
    draw_pool(draw, &call);
    draw_snapshots(draw, &call);
    INFO("HALATION_TEST_SEED=" << seed << " HALATION_TEST_COUNT=1: " << call.problem.text() << ", " << call.kernel.text());
    const auto wanted = expected(call.problem);
    const Results results = run(call.given, call.kernel, call.how);
    check_outputs(call, results, wanted.at("o"));
    check_final_states(call, results, wanted);
    check_snapshots(call, results);
    check_alone(draw, call, results);
}

}  // namespace

TEST_CASE("random calls") {
    const unsigned first = from_environment("HALATION_TEST_SEED", 20250101);
    const unsigned count = from_environment("HALATION_TEST_COUNT", on_device() ? 100 : 5000);
    std::cout << count << " random calls from seed " << first << std::endl;
    for (unsigned seed = first; seed - first < count; seed++) {
        if (seed != first && (seed - first) % 10000 == 0) std::cout << seed - first << " calls" << std::endl;
        check_call(seed);
    }
}
