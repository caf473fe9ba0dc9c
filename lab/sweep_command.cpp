// halation-lab sweep: searches for a better schedule.
#include "bench/limits.h"
#include "commands.h"
#include "measure.h"
#include "options.h"
#include "safetensors/output_file.h"
#include "subject.h"
#include "sweep.h"

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>

namespace halation::lab {
namespace {

struct SweepOptions {
    SubjectOptions subject;
    std::vector<std::string> words;
    std::string search = "climb", from, name;
    int candidates = 0, jobs = 0;
    unsigned seed = 1;
    double minutes = 0, seconds_each = 0.5;
};

// "1,2,4" or "1..4"
std::vector<int> values_of(const std::string &word, const std::string &text) {
    std::vector<int> values;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const size_t dots = part.find("..");
        int low = 0, high = 0;
        const bool range = dots != std::string::npos;
        const bool good = CLI::detail::lexical_cast(part.substr(0, dots), low) &&
                          (!range || CLI::detail::lexical_cast(part.substr(dots + 2), high)) && low >= 0 &&
                          (!range || (low <= high && high - low < 10000));
        if (!good) throw cli::Error("'" + word + "': '" + part + "' is neither a whole number nor a range such as 1..8");
        for (int value = low; value <= (range ? high : low); value++) values.push_back(value);
    }
    if (values.empty()) throw cli::Error("'" + word + "': gives no values; NAME=1,2,4 or NAME=1..8 does");
    return values;
}

// Axes as they were given; without any, all parameters that the schedule has, at the values worth trying.
std::vector<Axis> axes_of(Subject &subject, const std::vector<std::string> &words) {
    std::vector<Axis> axes;
    std::vector<std::pair<std::string, std::vector<int>>> given;
    for (const std::string &word : words) {
        const size_t equals = word.find('=');
        if (equals == std::string::npos) {
            if (!subject.schedule.empty()) throw cli::Error("two schedules are named: " + subject.schedule + " and " + word);
            subject.schedule = word;
        } else {
            given.emplace_back(word.substr(0, equals), values_of(word, word.substr(equals + 1)));
        }
    }
    for (const ScheduleParameter &parameter : parameters_of(subject)) {
        Axis axis{parameter.name, {}, parameter.value};
        for (const auto &[name, values] : given)
            if (name == parameter.name) axis.values.insert(axis.values.end(), values.begin(), values.end());
        if (given.empty()) axis.values = parameter.worthwhile;
        if (!axis.values.empty()) axes.push_back(axis);
    }
    for (const auto &[name, values] : given) require_parameter(subject, name, values);
    return axes;
}

bool same_axes(const std::vector<Axis> &a, const std::vector<Axis> &b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
        if (a[i].name != b[i].name || a[i].values != b[i].values) return false;
    return true;
}

// A file that is there already is gone on with, if it is of the same.
void take_up(Sweep &sweep, const std::string &path) {
    std::error_code none;
    if (!std::filesystem::exists(path, none) || std::filesystem::file_size(path, none) == 0) return;
    Sweep before = read_sweep(path);
    const auto other = [&](const std::string &what) {
        return cli::Error(path + " is of another sweep: " + what + "; name another with --name, or remove it");
    };
    if (line_of(before.subject) != line_of(sweep.subject)) throw other(text_of(before.subject));
    if (before.limit.cpu != sweep.limit.cpu) throw other("on " + before.limit.cpu);
    if (!same_axes(before.axes, sweep.axes)) throw other("it has other parameters, or other values of them");
    fmt::print(stderr, "going on with {}, which has {} candidates\n", path, before.results.size());
    sweep = std::move(before);
}

void print_outcome(const Sweep &sweep, const SweepPlan &plan, bool ended) {
    const Result *best = sweep.best();
    fmt::print("{}\n{} candidates{}; {} and {} hold them\n", text_of(sweep.subject), sweep.results.size(),
               ended ? "" : ", and more to try with the same command", plan.results, plan.report);
    if (!best)
        throw cli::Error(sweep.results.empty() ? "stopped before any candidate was timed"
                                               : "no candidate could be timed; the file says why");
    fmt::print("best       {}\n           {:.4f} ms, {:.3f} of the shipped schedule's ({:.3f} to {:.3f}); {}\n",
               text_of(best->parameters), 1e3 * best->seconds, best->ratio, best->ratio_low, best->ratio_high,
               share_text(sweep.limit, best->seconds));
}

void sweep_schedules(const SweepOptions &options) {
    Sweep sweep;
    sweep.subject = subject_of(options.subject);
    sweep.axes = axes_of(sweep.subject, options.words);
    sweep.date = cli::now();
    SweepPlan plan{options.search == "grid"     ? Search::grid
                   : options.search == "random" ? Search::random
                                                : Search::climb,
                   {},
                   options.seed,
                   options.candidates,
                   60 * options.minutes,
                   options.seconds_each,
                   options.jobs,
                   options.name + ".jsonl",
                   options.name + ".html"};
    for (const Axis &axis : sweep.axes) plan.start[axis.name] = axis.shipped;
    const Choice from = choice_of({options.from});
    if (!from.schedule.empty() && from.schedule != sweep.subject.schedule)
        throw cli::Error("--from: names schedule " + from.schedule + "; the sweep's is named among WORDS");
    require_parameters(sweep.subject, from.parameters);
    for (const auto &[name, value] : from.parameters) plan.start[name] = value;
    if (options.search == "random" && plan.most_candidates == 0 && plan.most_seconds == 0) plan.most_candidates = 100;

    for (const std::string &path : {plan.results, plan.report}) safetensors::check_writable(path);
    sweep.limit = limit_of(sweep.subject);
    take_up(sweep, plan.results);
    const bool ended = run_sweep(sweep, plan);
    print_outcome(sweep, plan, ended);
}

}  // namespace

void add_sweep(CLI::App &app) {
    auto options = std::make_shared<SweepOptions>();
    CLI::App *command = app.add_subcommand("sweep", "search for a better schedule");
    add_subject_options(*command, options->subject);
    command
        ->add_option("WORDS", options->words,
                     "NAME=1,2,4 or NAME=1..8: values to try (default: all parameters,\nat the values that 'list' shows); "
                     "and the name of a schedule of\nyour own")
        ->option_text("...");
    cli::add_words(*command, "--search", options->search, {"climb", "grid", "random"},
                   "climb (default): all changes of one\nparameter, from the best of them again, until none is better;\ngrid: "
                   "all combinations; random: 100 of "
                   "them, unless --candidates\nor --minutes says otherwise");
    command
        ->add_option("--from", options->from, "where a climb begins, NAME=VALUE with commas between them\n(default: as shipped)")
        ->option_text("WORDS");
    const auto number = [&](const char *name, auto &value, const char *help, int64_t least, int64_t most) {
        command->add_option(name, value, help)->check(cli::between(least, most))->option_text("N");
    };
    number("--candidates", options->candidates, "at most so many", 1, 1000000);
    command->add_option("--minutes", options->minutes, "start no candidate after that time")
        ->check(cli::from_to(0.01, 1e6))
        ->option_text("M");
    command->add_option("--seconds", options->seconds_each, "of timing for each candidate, roughly (default: 0.5)")
        ->check(cli::from_to(0.01, 3600))
        ->option_text("S");
    number("--jobs", options->jobs, "candidates that are made at once (default: one per processor)", 1, 256);
    number("--seed", options->seed, "of random (default: 1)", 1, 1000000000);
    command->add_option("--name", options->name, "writes NAME.jsonl and NAME.html (default: RECURRENCE_FORM_ISA)")
        ->option_text("NAME");
    command->footer(
        "Each candidate is made and checked against a plain loop, several at once; those that are right are timed, alone, in "
        "turn\n"
        "with the shipped schedule. NAME.jsonl grows by a line for each; the same command goes on with it. Ctrl-C stops after "
        "the\n"
        "candidates under way. NAME.html shows times against parameters, the best with its loop nest, and its distance from the\n"
        "limits of this machine.\n\n"
        "Examples:\n"
        "  halation-lab sweep gated_delta --minutes 15\n"
        "  halation-lab sweep gla --search grid chunk=2,4,8 value_vectors=1..4 segment=64\n"
        "  halation-lab sweep kda --from chunk=16,value_vectors=1,key_unroll=1,segment=32");
    command->callback(guarded([options] {
        if (options->jobs == 0) options->jobs = bench::thread_count(0);
        if (options->name.empty()) {
            const Subject subject = subject_of(options->subject);
            options->name = subject.recurrence + "_" + subject.form + "_" + subject.isa;
        }
        sweep_schedules(*options);
    }));
}

}  // namespace halation::lab
