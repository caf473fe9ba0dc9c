// halation-lab try: one schedule, made, checked and timed beside the one that Halation ships.
#include "candidate.h"
#include "commands.h"
#include "measure.h"
#include "options.h"
#include "subject.h"
#include "work_folder.h"

#include <cstdio>
#include <fmt/format.h>

namespace halation::lab {
namespace {

struct TryOptions {
    SubjectOptions subject;
    std::vector<std::string> words;
    double seconds = 2;
};

// How far a time is from the limits.
void print_limit(const Limit &limit, double seconds) {
    fmt::print("limit      {:.4f} ms for {:.3g} multiply-adds at {:.4g} G/s, {:.4f} ms for {:.4g} MB at {:.4g} GB/s\n",
               1e3 * limit.multiply_adds / limit.multiply_adds_per_second, limit.multiply_adds,
               limit.multiply_adds_per_second / 1e9, 1e3 * limit.bytes / limit.bytes_per_second, limit.bytes / 1e6,
               limit.bytes_per_second / 1e9);
    fmt::print("           {}\n", share_text(limit, seconds));
}

void try_schedule(const TryOptions &options) {
    Subject subject = subject_of(options.subject);
    const Subject shipped = subject;
    const Choice choice = choice_of(options.words);
    subject.schedule = choice.schedule;
    require_parameters(subject, choice.parameters);
    fmt::print("{}\nschedule   {}\n", text_of(shipped), text_of(choice));
    std::fflush(stdout);

    const WorkFolder folder;
    const Candidate candidate{subject, choice.parameters, folder.sub("candidate")}, reference{shipped, {}, folder.sub("shipped")};
    Result result = make_and_check(candidate, 600);
    if (result.status == Status::refused || result.status == Status::failed)
        throw cli::Error(std::string(name_of(result.status)) + ": " + result.reason);
    fmt::print("made in    {:.1f} s\n", result.compile_seconds);
    if (result.status == Status::wrong) {
        fmt::print("WRONG      {}\n", result.reason);
        throw cli::Failed();
    }
    fmt::print("right      error {:.1e} of {:.1e} that are allowed\n", result.error, result.allowed);
    std::fflush(stdout);

    const Result of_reference = make_and_check(reference, 600);
    if (of_reference.status != Status::timed) throw cli::Error("the shipped schedule: " + of_reference.reason);
    time_candidate(candidate, reference, options.seconds, result);
    if (result.status != Status::timed) throw cli::Error(result.reason);
    fmt::print("time       {:.4f} ms (least {:.4f}), {:.1f} ns a token and head\n", 1e3 * result.seconds, 1e3 * result.least,
               1e9 * result.seconds / static_cast<double>(subject.batch * subject.tokens * subject.value_heads));
    fmt::print("           {:.3f} of the shipped schedule's ({:.3f} to {:.3f})\n", result.ratio, result.ratio_low,
               result.ratio_high);
    print_limit(limit_of(shipped), result.seconds);
}

}  // namespace

void add_try(CLI::App &app) {
    auto options = std::make_shared<TryOptions>();
    CLI::App *command = app.add_subcommand("try", "make, check and time one schedule");
    add_subject_options(*command, options->subject);
    command->add_option("WORDS", options->words, "the schedule, see below (default: as shipped)")->option_text("...");
    command->add_option("--seconds", options->seconds, "how long to time, roughly (default: 2)")
        ->check(cli::from_to(0.01, 3600))
        ->option_text("S");
    command->footer(std::string(words_help) + "\nThe kernel is held against a plain loop in double at several shapes, then timed "
                                              "in turn with the shipped schedule: the\n"
                                              "ratio is the median of pairs, with quartiles. The limit is what this machine was "
                                              "measured to do just now. Exit code 1 if\n"
                                              "it is wrong, or cannot be made.\n\n"
                                              "Examples:\n"
                                              "  halation-lab try gated_delta chunk=8\n"
                                              "  halation-lab try kda --key-dim 64 --value-dim 64 value_vectors=3 key_unroll=8\n"
                                              "  halation-lab try gated_delta @best.jsonl");
    command->callback(guarded([options] { try_schedule(*options); }));
}

}  // namespace halation::lab
