#include "gpu_table.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

namespace halation::runtime {
namespace {

// Kernels lay heads and sequences along axes of which a grid has no more blocks than this (CUDA).
constexpr int64_t most_blocks = 65535;

// A launch goes through as many tokens of every sequence as the longest has, and keeps memory for them. So a few long sequences
// among many short ones, which would take a multiple of their own, get launches of their own: no sequence is there with others
// this many times as long, if they are long enough to be worth a launch.
constexpr int64_t most_times_longer = 4, worth_a_launch = 64;

// Floats that a launch may keep memory for.
constexpr int64_t most_kept = int64_t(1) << 29;

// What may share a launch. Stages follow one another; in each the kernel for one token comes first.
struct Group {
    int stage;
    bool many;  // tokens: the plan's second kernel, if it is another
    StateIn from, to;
    bool operator<(const Group &other) const {
        return std::tie(stage, many, from, to) < std::tie(other.stage, other.many, other.from, other.to);
    }
};

int64_t cost(const TableEntry &entry) {
    return std::max<int64_t>(entry.tokens, worth_a_launch);
}

// Puts the longest first, unless all are alike enough for one launch.
bool sort_by_length(std::vector<TableEntry> *entries) {
    int64_t longest = 0, all = 0;
    for (const TableEntry &entry : *entries) {
        longest = std::max(longest, cost(entry));
        all += cost(entry);
    }
    if (longest * static_cast<int64_t>(entries->size()) <= most_times_longer * all) return false;
    std::stable_sort(entries->begin(), entries->end(),
                     [](const TableEntry &a, const TableEntry &b) { return a.tokens > b.tokens; });
    return true;
}

int64_t most_tokens_of(const halation_plan &plan, const BoundKernel &kernel) {
    return std::max<int64_t>(most_kept / kept_of_token(plan, *kernel.kernel), 1);
}

// Sequences of up to so many tokens that a launch may have: its o has a row for each, as long as the longest, and all of it must
// be within the 32 bits that kernels count in, however little of it is written.
int64_t most_rows(const halation_plan &plan, const Arguments &arguments, int64_t tokens) {
    const TensorSpec &spec = plan.tensors[plan.output];
    const TensorView &o = arguments.tensors[plan.output];
    int64_t of_row = tokens;
    for (int axis = 0; axis < spec.rank; axis++)
        if (axis != spec.row_axis && axis != spec.token_axis) of_row *= o.extent[axis];
    const bool empty = o.extent[spec.token_axis] == 0;  // then its strides were not looked at
    return INT32_MAX / std::max(of_row, empty ? 1 : std::abs(o.stride[spec.row_axis]));
}

void add_launches(const halation_plan &plan, const Arguments &arguments, const Group &group, std::vector<TableEntry> entries,
                  size_t words_apart, GpuTable *table) {
    const BoundKernel *kernel = group.many ? plan.many : plan.one;
    const int64_t most_sequences = std::max<int64_t>(most_blocks / plan.problem.value_heads, 1);
    const bool sorted = sort_by_length(&entries);
    std::vector<int32_t> &words = table->words;
    for (size_t next = 0; next < entries.size();) {
        words.resize((words.size() + words_apart - 1) / words_apart * words_apart);
        GpuLaunch launch{kernel, group.from, group.to, words.size(), 0, 1, 1};
        const int64_t shortest = sorted ? cost(entries[next]) / most_times_longer : 0;
        for (; next < entries.size(); next++) {
            const TableEntry &entry = entries[next];
            const int32_t tokens = std::max(launch.tokens, entry.tokens);
            const bool full = launch.entries == most_sequences || launch.entries >= most_rows(plan, arguments, tokens) ||
                              (launch.entries + 1) * kept_of_sequence(plan, *kernel->kernel, tokens) > most_kept;
            if (launch.entries > 0 && (full || cost(entry) < shortest)) break;
            const auto *begin = reinterpret_cast<const int32_t *>(&entry);
            words.insert(words.end(), begin, begin + table_words);
            launch.entries++;
            launch.tokens = tokens;
            launch.cached = std::max(launch.cached, entry.cached);
        }
        table->launches.push_back(launch);
    }
}

}  // namespace

int64_t kept_of_token(const halation_plan &plan, const halation_kernel &kernel) {
    const Problem &problem = plan.problem;
    if (!plan.has_cache) {
        const int64_t channels = (problem.key_dim + HALATION_KEPT_CHANNELS - 1) / HALATION_KEPT_CHANNELS * HALATION_KEPT_CHANNELS;
        return problem.value_heads * channels * HALATION_KEPT_VECTORS;
    }
    if (kernel.form != HALATION_FORM_RECURRENT) return 1;
    return problem.value_heads * (problem.value_dim + HALATION_CACHE_CHANNELS - 1) * HALATION_CACHE_FLOATS * HALATION_CACHE_PARTS;
}

int64_t kept_of_sequence(const halation_plan &plan, const halation_kernel &kernel, int64_t tokens) {
    const Problem &problem = plan.problem;
    if (plan.has_cache) return tokens * kept_of_token(plan, kernel);
    const int64_t chunk = std::max(kernel.chunk, 1);
    if (problem.row->state_dims) return std::max<int64_t>((tokens + chunk - 1) / chunk, 1) * chunk * kept_of_token(plan, kernel);
    const auto blocks = [](int64_t n, int64_t of) { return (n + of - 1) / of; };
    const auto channels = [&](int64_t n) { return blocks(n, HALATION_PART_CHANNELS) * HALATION_PART_CHANNELS; };
    const int64_t parts = std::min<int64_t>(blocks(tokens, HALATION_PART_TOKENS), HALATION_PARTS);
    // State and normalizer; of a token the maxima and sums that features of its query and key need, and the denominator.
    const int64_t sums = (parts + 1) * channels(problem.key_dim) * (channels(problem.value_dim) + 1);
    return problem.value_heads * (sums + 5 * channels(tokens));
}

void make_table(const halation_plan &plan, const Arguments &arguments, size_t alignment, GpuTable *table) {
    std::map<Group, std::vector<TableEntry>> groups;
    std::vector<Piece> pieces;
    for (int64_t n = 0; n < arguments.sequences; n++) {
        const bool many = plan.many != plan.one && arguments.sequence(n).length != 1;
        const BoundKernel &kernel = many ? *plan.many : *plan.one;
        pieces.clear();
        add_pieces(plan, kernel, arguments, n, most_tokens_of(plan, kernel), &table->kept_rows, &pieces);
        for (const Piece &piece : pieces) groups[{piece.stage, many, piece.from, piece.to}].push_back(piece.entry);
    }
    for (auto &[group, entries] : groups)
        add_launches(plan, arguments, group, std::move(entries), alignment / sizeof(int32_t), table);
}

}  // namespace halation::runtime
