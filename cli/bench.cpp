// halation bench: the time of kernels on random inputs.
#include "bench/inputs.h"
#include "commands.h"
#include "compute.h"
#include "options.h"
#include "shapes.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <memory>

namespace halation::cli {
namespace {

struct BenchOptions {
    std::vector<std::string> recurrences;
    std::vector<int64_t> tokens = {4096};
    int64_t batch = 1, heads = 16, value_heads = 0, key_dim = 128, value_dim = 128;
    int64_t cached = -1;  // not given
    std::string type = "f32";
    int repetitions = 7;
    KernelOptions kernel;
};

constexpr int64_t default_cached = 4096;  // where softmax decodes: a cache of the token alone would time nothing

DLDataType type_named(const std::string &name) {
    return name == "f16" ? float16 : name == "bf16" ? bfloat16 : float32;
}

bool has_heads(const halation_row &row) {
    return bench::has_letter(row, 'H') || bench::has_letter(row, 'G');
}

Problem problem_of(const halation_row &row, const BenchOptions &options) {
    const int64_t heads = has_heads(row) ? options.heads : 1;
    const int64_t value_heads = has_heads(row) && options.value_heads ? options.value_heads : heads;
    Problem problem(row.name, heads, value_heads, bench::has_letter(row, 'K') ? options.key_dim : 1, options.value_dim);
    problem.form = form_named(options.kernel.form);
    problem.backend = options.kernel.backend.c_str();
    if (!options.kernel.isa.empty()) problem.isa = options.kernel.isa.c_str();
    if (options.kernel.heads == "tiled") problem.head_mapping = HALATION_HEADS_TILED;
    problem.type = type_named(options.type);
    return problem;
}

// "H 16  K 128  V 128": the sizes that rows with heads have, or those without.
std::string sizes_text(const std::vector<const halation_row *> &rows, const BenchOptions &options, bool heads) {
    std::string text;
    const auto add = [&](char letter, int64_t extent) {
        for (const halation_row *row : rows) {
            if (has_heads(*row) != heads || !bench::has_letter(*row, letter)) continue;
            text += fmt::format("{}{} {}", text.empty() ? "" : "  ", letter_text(*row, letter), extent);
            return;
        }
    };
    add('H', options.heads);
    if (options.value_heads) add('G', options.value_heads);
    add('K', options.key_dim);
    add('V', options.value_dim);
    return text;
}

// Returns why nothing was timed, or nothing.
std::string time_one(const Context &context, const halation_row &row, const BenchOptions &options, int64_t tokens) {
    const Problem problem = problem_of(row, options);
    const Refusal refused = refusal(context, problem);
    if (refused.status != HALATION_OK) {
        fmt::print("{:<18} {:>7} not run: {}\n", row.name, tokens, refused.reason);
        return refused.reason;
    }
    bench::Sizes sizes{options.batch, tokens, 0};
    if (bench::has_letter(row, 'S')) sizes.cached = options.cached >= 0 ? options.cached : tokens == 1 ? default_cached : 0;
    Plan plan(context, problem);
    const halation_choice choice = plan.describe();
    const bench::Inputs inputs(row, problem, sizes);
    using Clock = std::chrono::steady_clock;
    const auto once = [&] {
        const auto start = Clock::now();
        plan.run(inputs.tensors());
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    // Short calls are repeated until a measurement takes a millisecond, so that the clock does not matter.
    once();
    const int calls = std::max(1, static_cast<int>(1e-3 / std::max(once(), 1e-7)));
    std::vector<double> times;
    for (int i = 0; i < options.repetitions; i++) {
        double sum = 0;
        for (int call = 0; call < calls; call++) sum += once();
        times.push_back(sum / calls);
    }
    std::sort(times.begin(), times.end());
    const double least = times.front(), median = times[times.size() / 2];
    const double units = static_cast<double>(options.batch * tokens * problem.value_heads);
    std::string kernel = choice.kernel;  // with form auto, that for one token + that for more
    const size_t plus = kernel.find('+');
    if (plus != std::string::npos) kernel = tokens == 1 ? kernel.substr(0, plus) : kernel.substr(plus + 1);
    if (sizes.cached) kernel += fmt::format(", after {} cached tokens", sizes.cached);
    fmt::print("{:<18} {:>7} {:>11.4f} {:>11.4f} {:>10.1f}  {}\n", row.name, tokens, least * 1e3, median * 1e3,
               median / units * 1e9, kernel);
    std::fflush(stdout);
    return "";
}

void bench(const BenchOptions &options) {
    const halation_kernel_table &table = *halation_kernels();
    std::vector<const halation_row *> rows;
    for (const std::string &name : options.recurrences) rows.push_back(&row_named(name));
    if (rows.empty())
        for (int i = 0; i < table.row_count; i++) rows.push_back(&table.rows[i]);
    if (options.cached >= 0 && std::none_of(rows.begin(), rows.end(), [](auto *row) { return bench::has_letter(*row, 'S'); }))
        throw Error("--cached: none of the recurrences to time has a cache; softmax has");
    Context context(options.kernel.threads);
    context.add_kernels(table);

    const std::string with = sizes_text(rows, options, true), without = sizes_text(rows, options, false);
    fmt::print("B {}  {}", options.batch, with.empty() ? without : with);
    if (!with.empty() && !without.empty()) fmt::print("  (without heads: {})", without);
    fmt::print("  {}  threads {}\n", options.type, options.kernel.threads ? std::to_string(options.kernel.threads) : "all");
    fmt::print("{:<18} {:>7} {:>11} {:>11} {:>10}  {}\n", "recurrence", "tokens", "least ms", "median ms", "ns/(t h)", "kernel");
    std::string reason;
    bool timed = false;
    for (const halation_row *row : rows)
        for (const int64_t tokens : options.tokens) {
            const std::string refused = time_one(context, *row, options, tokens);
            timed = timed || refused.empty();
            if (!refused.empty()) reason = refused;
        }
    if (!timed) throw Error("nothing was timed: " + reason);
}

}  // namespace

void add_bench(CLI::App &app) {
    auto options = std::make_shared<BenchOptions>();
    CLI::App *command = app.add_subcommand("bench", "time kernels on random inputs");
    const auto number = [&](const char *name, auto &value, const char *help, const char *text, int64_t least, int64_t most) {
        return command->add_option(name, value, help)->check(between(least, most))->option_text(text);
    };
    constexpr int64_t most_tokens = 1 << 24, most_extent = 1 << 20;
    command->add_option("RECURRENCE", options->recurrences, "those to time, with blanks or commas between them\n(default: all)")
        ->delimiter(',')
        ->option_text("...");
    number("--tokens", options->tokens, "lengths T of a sequence (default: 4096)", "T ...", 1, most_tokens)->delimiter(',');
    number("--cached", options->cached, "softmax: tokens in the cache before those (default: 4096 with\n--tokens 1, else none)",
           "N", 0, most_tokens);
    number("--batch", options->batch, "sequences (default: 1)", "B", 1, most_extent);
    number("--heads-count", options->heads, "heads of q and k (default: 16)", "H", 1, most_extent);
    number("--value-heads-count", options->value_heads, "heads of v, for softmax of q (default: as many)", "HV", 1, most_extent);
    number("--key-dim", options->key_dim, "key channels; N of ssm (default: 128)", "K", 1, most_extent);
    number("--value-dim", options->value_dim, "value channels; D of ssm and hgrn (default: 128)", "V", 1, most_extent);
    add_words(*command, "--type", options->type, {"f32", "f16", "bf16"}, "of q, k, v, o (default: f32)");
    number("--repetitions", options->repetitions, "measurements, after a warm-up (default: 7)", "N", 1, 1000000);
    add_kernel_options(*command, options->kernel,
                       {"auto (default): recurrent for one token, else chunkwise or, where\nthere is no such form, parallel",
                        "the best that\nthis machine has", "grouped"});
    command->footer(
        "A line per recurrence and length: least and median time of a call, and the median per token and head of v. Gates are\n"
        "float32, optional inputs are left out, the state is in place. Exit code 1 if nothing could be timed.\n"
        "Times on a shared machine drift: compare what was measured side by side.\n\n"
        "Examples:\n"
        "  halation bench gated_delta kda gla gated --threads 1\n"
        "  halation bench gated_delta,softmax --tokens 1 --threads 1    decode\n"
        "  halation bench ssm --key-dim 16 --value-dim 2048 --threads 1");
    command->callback([options] { bench(*options); });
}

}  // namespace halation::cli
