// halation-lab keep: the winner of a sweep, as data that the next build uses.
#include "commands.h"
#include "generators/recurrence.h"
#include "options.h"
#include "safetensors/output_file.h"
#include "subject.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>

namespace halation::lab {
namespace {

struct KeepOptions {
    std::string sweep, file = "tuned.txt";
};

// The words that say which kernels a line is for: all of these must be a variant's for it to apply.
std::string kernels_of(const Subject &s) {
    std::string words =
        fmt::format("recurrence={} form={} backend={} isa={} type={}", s.recurrence, s.form, s.backend, s.isa, s.type);
    // A sweep measures one map, if it is not said the recurrence's own.
    std::string map = s.feature_map;
    for (const Recurrence &recurrence : recurrences())
        if (map.empty() && recurrence.name == s.recurrence) map = recurrence.default_feature_map;
    if (!map.empty()) words += " feature_map=" + map;
    if (s.known_key_dim) words += fmt::format(" key_dim={}", s.key_dim);
    if (s.known_value_dim) words += fmt::format(" value_dim={}", s.value_dim);
    return words;
}

// Those words of a line.
std::set<std::string> kernels_in(const std::string &line) {
    std::istringstream in(line.substr(0, line.find('#')));
    std::set<std::string> words;
    for (std::string word; in >> word;)
        if (word.rfind("parameters=", 0) != 0 && word.rfind("schedule=", 0) != 0) words.insert(word);
    return words;
}

// The file's lines, without one for these kernels.
std::string other_lines(const std::string &path, const std::string &kernels) {
    if (!std::filesystem::exists(path))
        return "# Schedules found by halation-lab keep. A kernel takes the line of which it has all words, and which has most of "
               "them.\n";
    std::ifstream in(path);
    if (!in) throw cli::Error("cannot read " + path + ": " + std::strerror(errno));
    std::string kept;
    for (std::string line; std::getline(in, line);)
        if (kernels_in(line) != kernels_in(kernels)) kept += line + "\n";
    return kept;
}

void keep(const KeepOptions &options) {
    const Sweep sweep = read_sweep(options.sweep);
    const Result *best = sweep.best();
    if (!best) throw cli::Error(options.sweep + ": no candidate of this sweep was timed");
    const Subject &subject = sweep.subject;
    const std::string kernels = kernels_of(subject);
    std::string line = kernels + " parameters=" + text_of(best->parameters);
    if (!subject.schedule.empty()) line += " schedule=" + subject.schedule;
    line += fmt::format("  # {:.3f} of the shipped time; K {} V {} T {}, {}, {}", best->ratio, subject.key_dim, subject.value_dim,
                        subject.tokens, sweep.limit.cpu, sweep.date);
    safetensors::write_whole(options.file, other_lines(options.file, kernels) + line + "\n");
    fmt::print("{}: {}\n", options.file, line);
    if (best->ratio >= 1)
        fmt::print("(it is no faster than the shipped schedule, {:.3f} of its time)\n", best->ratio);
    else if (best->ratio_high >= 1)
        fmt::print("(a quarter of the pairs or more saw the shipped schedule as fast: it gains little, if anything)\n");
}

}  // namespace

void add_keep(CLI::App &app) {
    auto options = std::make_shared<KeepOptions>();
    CLI::App *command = app.add_subcommand("keep", "write a sweep's best schedule down for the next build");
    command->add_option("SWEEP", options->sweep, "the file of a sweep, NAME.jsonl")->required()->option_text("");
    command
        ->add_option("--to", options->file,
                     "the file that builds read (default: tuned.txt); a line for the\nsame kernels is replaced")
        ->option_text("FILE");
    command->footer("A build takes it with halation_add_kernels(... TUNED tuned.txt); that of Halation itself takes a tuned.txt "
                    "in its top folder,\n"
                    "or -DHALATION_TUNED=FILE. A line is for one recurrence, form, ISA and type, with any gates.");
    command->callback(guarded([options] { keep(*options); }));
}

}  // namespace halation::lab
