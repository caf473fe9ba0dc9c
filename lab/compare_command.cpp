// halation-lab compare: two schedules in turn.
#include "candidate.h"
#include "commands.h"
#include "options.h"
#include "subject.h"
#include "work_folder.h"

#include <cstdio>
#include <fmt/format.h>

namespace halation::lab {
namespace {

struct CompareOptions {
    SubjectOptions subject;
    std::string first, second;
    double seconds = 5;
};

void compare(const CompareOptions &options) {
    const Subject subject = subject_of(options.subject);
    Choice choices[2];
    Candidate candidates[2];
    for (int i = 0; i < 2; i++) {
        choices[i] = choice_of({i == 0 ? options.first : options.second});
        candidates[i] = {subject, choices[i].parameters, ""};
        candidates[i].subject.schedule = choices[i].schedule;
        require_parameters(candidates[i].subject, choices[i].parameters);
    }
    const WorkFolder folder;
    fmt::print("{}\n", text_of(subject));
    Result results[2];
    bool right = true;
    for (int i = 0; i < 2; i++) {
        fmt::print("{}          {}: ", i == 0 ? 'A' : 'B', text_of(choices[i]));
        std::fflush(stdout);
        candidates[i].directory = folder.sub(std::to_string(i));
        results[i] = make_and_check(candidates[i], 600);
        if (results[i].status == Status::timed)
            fmt::print("made in {:.1f} s; right, error {:.1e} of {:.1e}\n", results[i].compile_seconds, results[i].error,
                       results[i].allowed);
        else
            fmt::print("{}: {}\n", name_of(results[i].status), results[i].reason);
        right = right && results[i].status == Status::timed;
    }
    if (!right) throw cli::Failed();
    time_candidate(candidates[1], candidates[0], options.seconds, results[1]);
    if (results[1].status != Status::timed) throw cli::Error(results[1].reason);
    const double ratio = results[1].ratio;
    fmt::print("B / A      {:.3f} ({:.3f} to {:.3f}); A {:.4f} ms, B {:.4f} ms\n", ratio, results[1].ratio_low,
               results[1].ratio_high, 1e3 * results[1].shipped_seconds, 1e3 * results[1].seconds);
    // Quartiles that both lie on one side: at least three quarters of the pairs agree.
    fmt::print("           {}\n", results[1].ratio_high < 1  ? "B is faster"
                                  : results[1].ratio_low > 1 ? "A is faster"
                                                             : "no difference that these pairs show");
}

}  // namespace

void add_compare(CLI::App &app) {
    auto options = std::make_shared<CompareOptions>();
    CLI::App *command = app.add_subcommand("compare", "two schedules, checked and timed in turn");
    add_subject_options(*command, options->subject);
    command->add_option("A", options->first, "a schedule: WORDS with commas between them, see below")
        ->required()
        ->option_text("");
    command->add_option("B", options->second, "another")->required()->option_text("");
    command->add_option("--seconds", options->seconds, "how long to time, roughly (default: 5)")
        ->check(cli::from_to(0.01, 3600))
        ->option_text("S");
    command->footer(std::string(words_help) + "'shipped' is Halation's own.\n\n"
                                              "Examples:\n"
                                              "  halation-lab compare gated_delta chunk=4 chunk=8,segment=128\n"
                                              "  halation-lab compare gla shipped @best.jsonl --tokens 1024");
    command->callback(guarded([options] { compare(*options); }));
}

}  // namespace halation::lab
