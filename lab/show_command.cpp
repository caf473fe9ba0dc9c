// halation-lab show: what becomes of a kernel: its loops, the lowered statement, its assembly and what bounds that.
#include "candidate.h"
#include "commands.h"
#include "machine_code/loop_table.h"
#include "options.h"
#include "safetensors/output_file.h"
#include "subject.h"
#include "work_folder.h"

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
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void show(const ShowOptions &options) {
    const Subject shipped = subject_of(options.subject);
    Subject subject = shipped;
    const Choice choice = choice_of(options.words);
    subject.schedule = choice.schedule;
    require_parameters(subject, choice.parameters);
    const bool keep = !options.folder.empty();
    if (keep) {
        std::error_code error;
        std::filesystem::create_directories(options.folder, error);
        if (error) throw cli::Error("cannot make the folder " + options.folder + ": " + error.message());
    }
    const WorkFolder work;
    const std::vector<std::string> all = {"assembly", "stmt", "stmt_html", "object"}, assembly = {"assembly"};
    const std::string loops = write_and_show({subject, choice.parameters, work.path()}, keep ? all : assembly);

    fmt::print("{}\nschedule: {}\n", text_of(shipped), text_of(choice));
    for (const ScheduleParameter &parameter : parameters_of(subject)) {
        const auto changed = choice.parameters.find(parameter.name);
        fmt::print("  {:<22} {:>5}\n", parameter.name, changed == choice.parameters.end() ? parameter.value : changed->second);
    }
    fmt::print("\nLoops\n\n{}\n", loops);
    const std::vector<Loop> machine_loops = loops_of(read(work.path() + "/candidate.s"));
    fmt::print("{}\n",
               describe(machine_loops, analyze(machine_loops, find_analyzer(subject.isa, this_host(), options.analyzer))));
    if (!keep) return;
    fmt::print("\nIn {}:\n", options.folder);
    for (const char *suffix : {".s", ".stmt", ".stmt.html", ".o"}) {
        const std::string name = subject.recurrence + "_" + subject.form + suffix;
        safetensors::write_whole(options.folder + "/" + name, read(work.path() + "/candidate" + suffix));
        fmt::print("  {}\n", name);
    }
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
