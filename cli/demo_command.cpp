// halation demo: every causal recurrence as an associative memory over the bytes of a file.
#include "commands.h"
#include "demo_results.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <thread>
#include <unistd.h>

namespace halation::cli {
namespace {

using namespace halation::demo;

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

// Said before the work, not after it.
void require_writable(const std::filesystem::path &output) {
    std::error_code error;
    const auto status = std::filesystem::status(output, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
        throw Error(fmt::format("cannot write '{}': it is not a regular file", output.string()));
    }
    const auto parent = output.parent_path();
    if (access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0) {
        throw Error(fmt::format("cannot write '{}': {}", output.string(), std::strerror(errno)));
    }
}

// Whole or not at all: written beside its place, then renamed.
void write_whole(const std::string &output, const std::string &contents) {
    const std::string beside = fmt::format("{}.{}.part", output, getpid());
    errno = 0;
    std::ofstream file(beside, std::ios::binary);
    file << contents;
    file.close();
    if (!file || std::rename(beside.c_str(), output.c_str()) != 0) {
        const std::string reason = errno ? std::strerror(errno) : "write error";
        std::remove(beside.c_str());
        throw Error(fmt::format("cannot write '{}': {}", output, reason));
    }
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
    progress.step(memory.recurrence + ": comparing forms and timing");
    entry.agreement = compare_forms(context, task, memory);
    entry.timing = time_at(context, task, memory, std::min(timed_tokens, task.tokens()));
    return entry;
}

void measure_cost(const Context &context, const Task &task, Results &results, Progress &progress) {
    const Entry *linear = results.find("linear"), *softmax = results.find("softmax");
    if (!linear || !softmax) return;
    constexpr int64_t longest = 8192;
    for (int64_t length = 4; length <= std::min(longest, task.tokens()); length *= 2) {
        progress.step(fmt::format("linear and softmax at {} tokens", length));
        const Timing of_linear = time_at(context, task, *linear->memory, length);
        const Timing of_softmax = time_at(context, task, *softmax->memory, length);
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
    require_writable(options.output);
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
        measure_cost(context, task, results, progress);
    }
    if (std::none_of(results.entries.begin(), results.entries.end(), [](const Entry &entry) { return entry.ran(); })) {
        throw Error(fmt::format("nothing to show: {} is {}", results.entries[0].memory->recurrence, results.entries[0].missing));
    }
    write_whole(options.output, report(results));
    fmt::print("{}\nreport: {}\n", summary(results), options.output);
}

}  // namespace

void add_demo(CLI::App &app) {
    auto options = std::make_shared<DemoOptions>();
    CLI::App *command = app.add_subcommand("demo", "every causal recurrence as an associative memory over a text");
    command->add_option("FILE", options->file, "text, or any other file, whose next bytes are to be predicted")
        ->required()
        ->option_text(" ");
    command->add_option("-o,--output", options->output, "report to write (default: halation-demo.html)")->option_text("HTML");
    command->add_option("--bytes", options->bytes, "read at most the first N bytes (default: 65536)")
        ->check(CLI::Range(shortest_text, int64_t(1) << 22).description(""))
        ->option_text("N");
    command->add_option("--seed", options->seed, "of the random embeddings (default: 1)")->option_text("N");
    command->add_option("--threads", options->threads, "at most N threads (default: one per processor)")
        ->check(CLI::Range(0, 1024).description(""))
        ->option_text("N");
    command->add_option("--recurrence", options->recurrences, "only these, with commas between them")
        ->delimiter(',')
        ->option_text("NAME,...");
    command->footer("The report is one HTML file that needs nothing else. Nothing is trained: contexts of one to three bytes "
                    "and the\nbytes that follow them are random unit vectors, and the memories are asked what comes "
                    "next.\n\nExamples:\n  halation demo examples/demo.txt\n"
                    "  halation demo book.txt --bytes 200000 --recurrence delta,gated_delta,softmax -o book.html");
    command->callback([options] { demo(*options); });
}

}  // namespace halation::cli
