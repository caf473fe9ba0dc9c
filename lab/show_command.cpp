// halation-lab show: what becomes of a kernel: its loops, the lowered statement, its assembly and what bounds that.
#include "candidate.h"
#include "commands.h"
#include "generators/kernel_files.h"
#include "machine_code/loop_table.h"
#include "options.h"
#include "subject.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

namespace halation::lab {
namespace {

struct ShowOptions {
    SubjectOptions subject;
    std::vector<std::string> words;
    std::string folder, analyzer;
};

std::string read(const std::string &path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

void show(const ShowOptions &options) {
    Subject subject = subject_of(options.subject);
    const Choice choice = choice_of(options.words);
    fmt::print("{}\nschedule: {}\n", text_of(subject), text_of(choice));
    subject.schedule = choice.schedule;
    require_parameters(subject, choice.parameters);
    for (const ScheduleParameter &parameter : parameters_of(subject)) {
        const auto changed = choice.parameters.find(parameter.name);
        fmt::print("  {:<22} {:>5}\n", parameter.name, changed == choice.parameters.end() ? parameter.value : changed->second);
    }
    Variant variant = variant_of(subject, choice.parameters);
    fmt::print("\nLoops\n\n{}\n", loop_nest_of(variant));

    const WorkFolder work;
    std::string folder = work.path();
    std::vector<std::string> kinds = {"assembly"};
    if (!options.folder.empty()) {
        folder = options.folder;
        std::error_code error;
        std::filesystem::create_directories(folder, error);
        if (error) throw cli::Error("cannot make the folder " + folder + ": " + error.message());
        kinds = {"assembly", "stmt", "stmt_html", "object"};
        variant.name = subject.recurrence + "_" + subject.form;
    }
    write_kernel(variant, folder, kinds);
    const std::vector<Loop> loops = loops_of(read(folder + "/" + variant.name + ".s"));
    const Analyzer analyzer = find_analyzer(subject.isa, this_host(), options.analyzer);
    fmt::print("{}\n", describe(loops, analyze(loops, analyzer)));
    if (options.folder.empty()) return;
    fmt::print("\nIn {}:\n", folder);
    for (const char *file : {".s", ".stmt", ".stmt.html", ".o"}) fmt::print("  {}{}\n", variant.name, file);
}

}  // namespace

void add_show(CLI::App &app) {
    auto options = std::make_shared<ShowOptions>();
    CLI::App *command = app.add_subcommand("show", "a kernel's loops, and what bounds its machine code");
    add_subject_options(*command, options->subject);
    command->add_option("WORDS", options->words, "the schedule, see below (default: as shipped)")->option_text("...");
    command
        ->add_option("--output", options->folder,
                     "also writes the assembly, the object file and Halide's lowered\nstatement, as text and as a page of HTML, "
                     "into this folder")
        ->option_text("FOLDER");
    command->add_option("--llvm-mca", options->analyzer, "the program (default: llvm-mca, or the newest llvm-mca-NN, in PATH)")
        ->option_text("PROGRAM");
    command->footer(std::string(words_help) + "\nThe loops are Halide's, before it simplifies them. The table is of the machine "
                                              "code: what each loop holds, and what a\n"
                                              "model of a processor (llvm-mca, Debian's package llvm) says that it waits for.\n\n"
                                              "Examples:\n"
                                              "  halation-lab show gated_delta\n"
                                              "  halation-lab show kda chunk=8 --output kda_8");
    command->callback(guarded([options] { show(*options); }));
}

}  // namespace halation::lab
