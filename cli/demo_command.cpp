// halation demo: every causal recurrence with keys as an associative memory over the bytes of a file.
#include "commands.h"
#include "demo_results.h"
#include "options.h"
#include "safetensors/output_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <thread>

namespace halation::cli {
namespace {

using namespace halation::demo;

constexpr int64_t most_bytes = 1 << 22;  // whose keys and values take 4 GiB

struct DemoOptions {
    std::string file, output = "halation-demo.html";
    int64_t bytes = 65536;
    uint64_t seed = 1;
    int threads = 0;
    std::vector<std::string> recurrences;  // empty: all
};

std::vector<const Memory *> wanted(const std::vector<std::string> &names) {
    std::vector<const Memory *> chosen;
    std::string known;
    for (const Memory &memory : memories()) {
        known += (known.empty() ? "" : ", ") + memory.recurrence;
        if (names.empty() || std::find(names.begin(), names.end(), memory.recurrence) != names.end()) {
            chosen.push_back(&memory);
        }
    }
    for (const std::string &name : names) {
        const auto named = [&](const Memory *memory) { return memory->recurrence == name; };
        if (std::none_of(chosen.begin(), chosen.end(), named)) {
            throw Error(fmt::format("the demonstration has no recurrence '{}'; it has {}", name, known));
        }
    }
    return chosen;
}

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const size_t colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "unnamed processor";
}

Entry run_memory(const Context &context, const Task &task, const Memory &memory, const std::vector<Range> &ranges,
                 Progress &progress) {
    Entry entry;
    entry.memory = &memory;
    if (!find_row(memory.recurrence)) entry.missing = "not in this build";
    for (halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_PARALLEL, HALATION_FORM_CHUNKWISE}) {
        if (!entry.ran()) break;
        if (refusal(context, memory, form).empty()) break;
        if (form == HALATION_FORM_CHUNKWISE) entry.missing = refusal(context, memory, form);
    }
    if (!entry.ran()) return entry;

    progress.step(memory.recurrence + ": reading the text");
    Reading reading = read_text_through(context, task, memory, ranges, progress);
    entry.score = score(task, ranges, std::move(reading.reads));
    entry.state_norm = std::move(reading.state_norm);
    entry.whole_text_difference = reading.recurrent_to_chunkwise;
    entry.kernel = reading.kernel;
    entry.isa = reading.isa;
    entry.agreement = compare_forms(context, task, memory);
    return entry;
}

// All that is timed, one after the other and after everything else, so that a drift of the machine has little time.
void measure_times(const Context &context, const Task &task, Results &results, Progress &progress) {
    for (Entry &entry : results.entries) {
        if (!entry.ran()) continue;
        progress.step(entry.memory->recurrence + ": timing");
        entry.timing = time_at(context, task, *entry.memory, results.timed_context());
    }
}

void measure_cost(const Context &context, const Task &task, Results &results, Progress &progress) {
    const Entry *linear = results.find("linear"), *softmax = results.find("softmax");
    if (!linear || !softmax) return;
    constexpr int64_t longest = 8192;
    for (int64_t length = 4; length <= std::min(longest, task.tokens()); length *= 2) {
        progress.step(fmt::format("linear and softmax at {} tokens", length));
        // What is in the table is in the chart.
        const bool in_table = length == results.timed_context();
        const Timing of_linear = in_table ? linear->timing : time_at(context, task, *linear->memory, length);
        const Timing of_softmax = in_table ? softmax->timing : time_at(context, task, *softmax->memory, length);
        const auto add = [&](Cost &cost, double linear_seconds, double softmax_seconds) {
            if (std::isnan(linear_seconds) || std::isnan(softmax_seconds)) return;
            cost.linear.push_back({static_cast<double>(length), linear_seconds});
            cost.softmax.push_back({static_cast<double>(length), softmax_seconds});
        };
        add(results.prefill, of_linear.prefill, of_softmax.prefill);
        add(results.decode, of_linear.decode, of_softmax.decode);
    }
}

void demo(const DemoOptions &options) {
    const std::vector<const Memory *> chosen = wanted(options.recurrences);
    refuse_same_file(options.file, options.output);
    safetensors::check_writable(options.output);
    const Task task(read_text(options.file, options.bytes), options.seed);
    const std::vector<Range> ranges = scored_ranges(task.tokens());

    Context context(options.threads);
    context.add_kernels(*halation_kernels());

    Results results;
    results.file = task.text().name;
    results.cut = task.text().cut;
    results.tokens = task.tokens();
    results.seed = options.seed;
    results.threads = options.threads ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
    results.processor = processor_name();
    for (const Range &range : ranges) results.scored += range.count;
    if (ranges.size() > 1) results.scored_every = (ranges[1].first - ranges[0].first) / ranges[0].count;
    results.byte_counts = score_byte_counts(task, ranges);
    results.context_counts = score_context_counts(task, ranges);
    {
        Progress progress(2 * static_cast<int>(chosen.size()) + 12);
        for (const Memory *memory : chosen) {
            results.entries.push_back(run_memory(context, task, *memory, ranges, progress));
        }
        measure_times(context, task, results, progress);
        measure_cost(context, task, results, progress);
    }
    if (std::none_of(results.entries.begin(), results.entries.end(), [](const Entry &entry) { return entry.ran(); })) {
        throw Error(fmt::format("nothing to show: {} is {}", results.entries[0].memory->recurrence, results.entries[0].missing));
    }
    const std::string html = report(results);
    safetensors::write_whole(options.output, html);
    fmt::print("{}report: {}\n", summary(results), options.output);
}

}  // namespace

void add_demo(CLI::App &app) {
    auto options = std::make_shared<DemoOptions>();
    CLI::App *command = app.add_subcommand("demo", "every causal recurrence with keys as an associative memory over a text");
    command
        ->add_option(
            "FILE", options->file,
            fmt::format("text, or any other file of at least {} bytes, whose next bytes\nare to be predicted", shortest_text))
        ->required()
        ->option_text(" ");
    command->add_option("-o,--output", options->output, "report to write (default: halation-demo.html)")->option_text("HTML");
    command
        ->add_option("--bytes", options->bytes,
                     fmt::format("read at most the first N bytes, {} to {} (4 MiB;\ndefault: 65536)", shortest_text, most_bytes))
        ->check(between(shortest_text, most_bytes))
        ->option_text("N");
    command->add_option("--seed", options->seed, "of the random embeddings (default: 1)")->option_text("N");
    add_threads_option(*command, options->threads);
    command->add_option("--recurrence", options->recurrences, "only these, with blanks or commas between them")
        ->delimiter(',')
        ->option_text("NAME ...");
    command->footer(
        "The report is one HTML file that needs nothing else. Contexts of one to three bytes and the bytes that follow them are\n"
        "random unit vectors, and the memories, which are not trained, are asked what comes next. The demonstration has\n"
        "every recurrence but ssm and hgrn, which take no keys and queries by head, and bidirectional, which is not causal.\n\n"
        "Examples:\n"
        "  halation demo examples/demo.txt\n"
        "  halation demo book.txt --bytes 200000 --recurrence delta,gated_delta,softmax -o book.html");
    command->callback([options] { demo(*options); });
}

}  // namespace halation::cli
