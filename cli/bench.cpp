// halation bench: the time of kernels on random inputs, beside what the machine could do and what others do.
#include "bench/ggml_peer.h"
#include "bench/memory.h"
#include "bench/paired.h"
#include "bench/plain_loop.h"
#include "bench/work.h"
#include "bench_results.h"
#include "commands.h"
#include "compute.h"
#include "options.h"
#include "safetensors/output_file.h"
#include "shapes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <sstream>

namespace halation::cli {
namespace {

struct BenchOptions {
    std::vector<std::string> recurrences, types = {"f32"};
    std::vector<int64_t> tokens = {4096};
    std::vector<int> threads = {0};
    int64_t batch = 1, heads = 16, value_heads = 0, key_dim = 128, value_dim = 128;
    int64_t cached = -1;  // not given
    int repetitions = 7;
    bool peers = false;
    std::string shapes, json, compare;
    KernelOptions kernel;
};

constexpr int64_t default_cached = 4096;  // where softmax decodes: a cache of the token alone would time nothing

// One thing to time, but for the lengths, types and threads.
struct Shape {
    std::string name;
    const halation_row *row;
    int64_t heads, value_heads, key_dim, value_dim;
};

Shape shape_of(const halation_row &row, const BenchOptions &options) {
    const int64_t heads = bench::has_heads(row) ? options.heads : 1;
    return {"",
            &row,
            heads,
            bench::has_heads(row) && options.value_heads ? options.value_heads : heads,
            bench::has_letter(row, 'K') ? options.key_dim : 1,
            options.value_dim};
}

Shape shape_of(const std::vector<std::string> &fields) {
    Shape shape{fields.at(0), &row_named(fields.at(1)), 0, 0, 0, 0};
    int64_t *const numbers[] = {&shape.heads, &shape.value_heads, &shape.key_dim, &shape.value_dim};
    for (size_t i = 0; i < 4; i++)
        if (!CLI::detail::lexical_cast(fields.at(i + 2), *numbers[i]) || *numbers[i] < 1)
            throw Error(safetensors::in_quotes(fields[i + 2]) + " is no whole number above 0");
    return shape;
}

// Lines of: name recurrence H HV K V.
std::vector<Shape> read_shapes(const std::string &path) {
    std::ifstream in(path);
    if (!in || std::filesystem::is_directory(path))
        throw Error("cannot read " + path + ": " + (in ? "it is a folder" : std::strerror(errno)));
    std::vector<Shape> shapes;
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        if (number++ == 0 && line.rfind("\xef\xbb\xbf", 0) == 0) line.erase(0, 3);
        std::istringstream words(line.substr(0, line.find('#')));
        const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
        if (fields.empty()) continue;
        try {
            const bool plain = std::all_of(fields[0].begin(), fields[0].end(), [](char c) { return c > ' ' && c < 127; });
            if (fields.size() != 6 || !plain) throw Error("expected a name in ASCII, a recurrence, and the numbers H HV K V");
            shapes.push_back(shape_of(fields));
        } catch (const std::exception &error) {
            throw Error(fmt::format("{}, line {}: {}", path, number, error.what()));
        }
    }
    if (shapes.empty()) throw Error(path + " has no shapes");
    return shapes;
}

class Bench {
public:
    Bench(const BenchOptions &options, int threads)
        : options_(options), threads_(bench::thread_count(threads)), context_(threads) {
        context_.add_kernels(*halation_kernels());
    }

    // Why nothing was timed; empty: it was.
    std::string time_or_refuse(const Shape &shape, int64_t tokens, const std::string &type) {
        std::string reason;
        try {
            reason = time(shape, tokens, type);
        } catch (const std::bad_alloc &) {  // the others may be smaller
            reason = "not enough memory";
        }
        if (!reason.empty())
            fmt::print("{:<18} {:>7} {:>4} not run: {}{}\n", shape.row->name, tokens, type,
                       shape.name.empty() ? "" : shape.name + ": ", reason);
        return reason;
    }

    const std::vector<BenchResult> &results() const { return results_; }

    static void print_head(bool peers) {
        fmt::print("{:<18} {:>7} {:>4} {:>10} {:>10} {:>9} {:>8} {:>6} {:>5} {:<13}{} {}\n", "recurrence", "tokens", "type",
                   "least ms", "median ms", "ns/(t h)", "tokens/s", "GF/s", "of", "limit", peers ? "  x plain  x ggml" : "",
                   "kernel");
    }

private:
    std::string time(const Shape &shape, int64_t tokens, const std::string &type) {
        const halation_row &row = *shape.row;
        Problem problem(row.name, shape.heads, shape.value_heads, shape.key_dim, shape.value_dim);
        problem.form = form_named(options_.kernel.form);
        if (!options_.kernel.isa.empty()) problem.isa = options_.kernel.isa.c_str();
        if (options_.kernel.heads == "tiled") problem.head_mapping = HALATION_HEADS_TILED;
        problem.type = bench::type_named(type);
        const Refusal refused = refusal(context_, problem);
        if (refused.status != HALATION_OK) return refused.reason;
        bench::Sizes sizes{options_.batch, tokens, 0};
        if (bench::has_letter(row, 'S')) sizes.cached = options_.cached >= 0 ? options_.cached : tokens == 1 ? default_cached : 0;
        Plan plan(context_, problem);
        const halation_choice choice = plan.describe();
        const bench::Inputs inputs(row, problem, sizes);

        BenchResult result;
        result.shape = shape.name, result.recurrence = row.name, result.type = type, result.threads = threads_;
        result.kernel = choice.kernel;  // with form auto, that for one token + that for more
        const size_t plus = result.kernel.find('+');
        if (plus != std::string::npos)
            result.kernel = tokens == 1 ? result.kernel.substr(0, plus) : result.kernel.substr(plus + 1);
        result.batch = options_.batch, result.tokens = tokens, result.cached = sizes.cached;
        result.heads = shape.heads, result.value_heads = shape.value_heads;
        result.key_dim = shape.key_dim, result.value_dim = shape.value_dim;

        const auto run = [&] { plan.run(inputs.tensors()); };
        measure(run, result);
        const bench::Work work = bench::work_of(row, problem, sizes);
        const bench::Floor floor = bench::floor_of(work, limits(choice.isa));
        result.multiply_adds = work.multiply_adds, result.limit = floor.seconds(), result.binding = floor.binding();
        if (options_.peers) {
            // The plain loop is one of one thread.
            if (threads_ == 1) against("plain", bench::plain_loop(row, problem, sizes, inputs), run, result);
            against("ggml", bench::ggml_call(row, problem, sizes, threads_), run, result);
        }
        print(result);
        results_.push_back(result);
        return "";
    }

    void measure(const std::function<void()> &run, BenchResult &result) const {
        // Short calls are repeated until a measurement takes a millisecond, so that the clock does not matter.
        result.memory = bench::memory_taken(run);
        const int calls = std::max(1, static_cast<int>(1e-3 / std::max(bench::seconds_of(run), 1e-7)));
        std::vector<double> times;
        for (int i = 0; i < options_.repetitions; i++) {
            double sum = 0;
            for (int call = 0; call < calls; call++) sum += bench::seconds_of(run);
            times.push_back(sum / calls);
        }
        result.least = *std::min_element(times.begin(), times.end());
        result.median = bench::quantile(times, 0.5);
    }

    void against(const char *name, const std::function<void()> &peer, const std::function<void()> &run,
                 BenchResult &result) const {
        if (peer) result.peers[name] = bench::time_in_turn(options_.repetitions, run, peer).ratio;
    }

    const bench::Limits &limits(const std::string &isa) {
        if (!limits_.count(isa)) limits_[isa] = bench::measure_limits(isa, threads_);
        return limits_[isa];
    }

    void print(const BenchResult &r) const {
        const double calls = static_cast<double>(r.batch * r.tokens);
        std::string peers;
        for (const char *name : {"plain", "ggml"}) {
            if (!options_.peers) break;
            const auto found = r.peers.find(name);
            peers += found == r.peers.end() ? fmt::format("{:>8} ", "-") : fmt::format("{:>8.2f} ", found->second);
        }
        std::string what = r.kernel;
        if (r.cached) what += fmt::format(", after {} cached tokens", r.cached);
        if (!r.shape.empty()) what = fmt::format("{}: {}", r.shape, what);
        fmt::print("{:<18} {:>7} {:>4} {:>10.4f} {:>10.4f} {:>9.1f} {:>8.3g} {:>6.1f} {:>3.0f} % {:<13}{} {}\n", r.recurrence,
                   r.tokens, r.type, r.least * 1e3, r.median * 1e3, r.median / calls / static_cast<double>(r.value_heads) * 1e9,
                   calls / r.median, 2 * r.multiply_adds / r.median / 1e9, 100 * r.limit / r.median, r.binding, peers, what);
        std::fflush(stdout);
    }

    const BenchOptions &options_;
    int threads_;
    Context context_;
    std::map<std::string, bench::Limits> limits_;
    std::vector<BenchResult> results_;
};

// "H 16  K 128  V 128": the sizes that rows with heads have, or those without.
std::string sizes_text(const std::vector<Shape> &shapes, const BenchOptions &options, bool heads) {
    std::string text;
    const auto add = [&](char letter, int64_t extent) {
        for (const Shape &shape : shapes) {
            if (bench::has_heads(*shape.row) != heads || !bench::has_letter(*shape.row, letter)) continue;
            text += fmt::format("{}{} {}", text.empty() ? "" : "  ", letter_text(*shape.row, letter), extent);
            return;
        }
    };
    add('H', options.heads);
    if (options.value_heads) add('G', options.value_heads);
    add('K', options.key_dim);
    add('V', options.value_dim);
    return text;
}

std::vector<Shape> shapes_of(const BenchOptions &options) {
    if (!options.shapes.empty()) {
        if (!options.recurrences.empty())
            throw Error("--shapes: its file names the recurrences; leave out " + options.recurrences.front());
        return read_shapes(options.shapes);
    }
    std::vector<Shape> shapes;
    const halation_kernel_table &table = *halation_kernels();
    for (const std::string &name : options.recurrences) shapes.push_back(shape_of(row_named(name), options));
    if (shapes.empty())
        for (int i = 0; i < table.row_count; i++) shapes.push_back(shape_of(table.rows[i], options));
    return shapes;
}

void print_sizes(const std::vector<Shape> &shapes, const BenchOptions &options, int threads) {
    const std::string with = sizes_text(shapes, options, true), without = sizes_text(shapes, options, false);
    fmt::print("B {}", options.batch);
    if (options.shapes.empty()) fmt::print("  {}", with.empty() ? without : with);
    if (options.shapes.empty() && !with.empty() && !without.empty()) fmt::print("  (without heads: {})", without);
    fmt::print("  threads {}\n", threads ? std::to_string(threads) : "all");
}

void run_bench(const BenchOptions &options) {
    const std::vector<Shape> shapes = shapes_of(options);
    if (options.cached >= 0 && std::none_of(shapes.begin(), shapes.end(), [](auto &s) { return bench::has_letter(*s.row, 'S'); }))
        throw Error("--cached: none of the recurrences to time has a cache; softmax has");
    BenchFile before, file{bench::processor_name(), now(), HALATION_PROJECT_VERSION, {}};
    if (!options.compare.empty()) before = read_bench(options.compare);
    if (!options.json.empty()) safetensors::check_writable(options.json);

    std::string reason;
    for (const int threads : options.threads) {
        print_sizes(shapes, options, threads);
        Bench::print_head(options.peers);
        Bench bench(options, threads);
        for (const Shape &shape : shapes)
            for (const std::string &type : options.types)
                for (const int64_t tokens : options.tokens) {
                    const std::string refused = bench.time_or_refuse(shape, tokens, type);
                    if (!refused.empty()) reason = refused;
                }
        file.results.insert(file.results.end(), bench.results().begin(), bench.results().end());
    }
    if (file.results.empty()) throw Error("nothing was timed: " + reason);
    if (options.peers)
        fmt::print("x: times as fast, in turn. plain: a loop in C++, bench/plain_loop.cpp. {}\n",
                   bench::ggml_version().empty() ? "This build has no ggml (-DHALATION_BENCH_GGML=<prefix>)"
                                                 : bench::ggml_version());
    if (!options.compare.empty())
        fmt::print("\nagainst {} ({})\n{}", options.compare, safetensors::in_quotes(before.date), comparison(file, before));
    if (!options.json.empty()) write_bench(options.json, file);
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
    number("--value-heads-count", options->value_heads, "heads of v; of softmax, of q (default: as many)", "HV", 1, most_extent);
    number("--key-dim", options->key_dim, "key channels; N of ssm (default: 128)", "K", 1, most_extent);
    number("--value-dim", options->value_dim, "value channels; D of ssm and hgrn (default: 128)", "V", 1, most_extent);
    CLI::Option *shapes = command->add_option(
        "--shapes", options->shapes, "sizes of models instead: lines of name, recurrence, H, HV, K, V\n(bench/shapes.txt)");
    shapes->check(a_path())->option_text("FILE");
    for (const char *size : {"--heads-count", "--value-heads-count", "--key-dim", "--value-dim"}) shapes->excludes(size);
    command->add_option("--type", options->types, "of q, k, v, o: f32, f16, bf16, one or more (default: f32)")
        ->delimiter(',')
        ->check(words({"f32", "f16", "bf16"}))
        ->option_text("TYPE ...");
    number("--repetitions", options->repetitions, "measurements, after a warm-up (default: 7)", "N", 1, 1000000);
    number("--threads", options->threads,
           "at most so many threads, one or more numbers (default: 0, which\nis one per processor)", "N ...", 0, 1024)
        ->delimiter(',');
    command->add_flag("--peers", options->peers, "also time a plain loop (with one thread), and ggml where the\nbuild has it");
    command->add_option("--json", options->json, "also write the results to this file")->check(a_path())->option_text("FILE");
    command->add_option("--compare", options->compare, "print the times over those of such a file")
        ->check(a_path())
        ->option_text("FILE");
    add_kernel_options(*command, options->kernel,
                       {"auto (default): recurrent for one token, else chunkwise or, where\nthere is no such form, parallel",
                        "the best that\nthis machine has", "grouped"});
    command->add_option("--backend", options->kernel.backend, "cpu alone; bench/device_bench of a build times devices")
        ->check(CLI::Validator(
            [](std::string &given) {
                return given == "cpu" ? std::string() : "got '" + given + "'; bench times the CPU, device_bench times devices";
            },
            ""))
        ->option_text("cpu");
    command->footer(
        "A line per recurrence, type and length: least and median time of a call; of the median, ns per token and head of v,\n"
        "tokens and floating-point operations a second (two a multiply-add), and the share of the limit: how fast the call's\n"
        "multiply-adds, exps or memory traffic could be at best on this machine, whichever is slowest, as measured just now;\n"
        "more than 100 % of memory came from a cache. Multiply-adds are those of the recurrence token by token, whatever the "
        "form.\n"
        "Gates are float32, optional inputs are left out, the state is in place. Exit code 1 if nothing could be timed.\n"
        "Times on a shared machine drift: compare what was measured side by side.\n\n"
        "Examples:\n"
        "  halation bench gated_delta kda gla gated --threads 1\n"
        "  halation bench gated_delta,softmax --tokens 1 --threads 1    decode\n"
        "  halation bench ssm --key-dim 16 --value-dim 2048 --threads 1\n"
        "  halation bench --shapes bench/shapes.txt --tokens 1,4096 --threads 1,2 --json today.json");
    command->callback([options] { run_bench(*options); });
}

}  // namespace halation::cli
