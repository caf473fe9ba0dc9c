// halation run: one file in, one file out.
#include "commands.h"
#include "compute.h"
#include "shapes.h"

#include <fmt/format.h>
#include <memory>

namespace halation::cli {
namespace {

struct RunOptions {
    std::string recurrence, input, output;
    KernelOptions kernel;
};

// With form auto the runtime may pass over the chunkwise form; not when its chunk was asked for.
void check_chunk(const Context &context, const ProblemFile &file, const KernelOptions &options) {
    if (options.chunk == 0) return;
    const Problem problem = problem_of(file, options);
    auto choice = HALATION_INIT(halation_choice);
    check(halation_can_run(context.get(), &problem, &choice));
    if (choice.chunk != options.chunk) throw Error(fmt::format("{}: --chunk {}: {}", file.path, options.chunk, choice.reason));
}

void run(const RunOptions &options) {
    const ProblemFile problem = read_problem(options.input, options.recurrence, options.kernel.heads);
    Results results;
    try {
        Context context(options.kernel.threads);
        context.add_kernels(*halation_kernels());
        check_chunk(context, problem, options.kernel);
        results = compute(context, problem, options.kernel);
    } catch (const halation::Error &error) {
        throw Error(fmt::format("{}: {}", problem.path, error.what()));
    }
    safetensors::File file;
    file.metadata = {{"recurrence", problem.row->name}, {"kernel", results.choice.kernel}};
    file.tensors = std::move(results.tensors);
    safetensors::write(options.output, file);

    std::string written;
    for (const auto &[name, tensor] : file.tensors)
        written += fmt::format("{}{} {} {}", written.empty() ? "" : ", ", name, safetensors::name(tensor.type),
                               shape_text(tensor.shape));
    fmt::print("{}: {}; computed by {}", options.output, written, results.choice.kernel);
    if (*results.choice.reason) fmt::print(" ({})", results.choice.reason);
    fmt::print("\n");
}

}  // namespace

void add_run(CLI::App &app) {
    auto options = std::make_shared<RunOptions>();
    CLI::App *command = app.add_subcommand("run", "compute a recurrence on the tensors of a file");
    command->add_option("RECURRENCE", options->recurrence, "one of those that 'halation list' shows")
        ->required()
        ->option_text(" ");
    command->add_option("IN", options->input, "safetensors file with the inputs")->required()->option_text(" ");
    command->add_option("-o,--output", options->output, "safetensors file to write (required)")->required()->option_text("OUT");
    add_kernel_options(*command, options->kernel);
    command->get_option("--form")->description(command->get_option("--form")->get_description() +
                                               ";\nauto (default): recurrent for a sequence of one token, else chunkwise");
    command->get_option("--isa")->description("instruction set of the kernel (default: the best that this\nmachine has)");
    command->add_option("--chunk", options->kernel.chunk, "tokens in a chunk (default: the schedule's own)")
        ->check(CLI::Range(1, 1 << 20).description(""))
        ->option_text("N");
    command->footer(
        "IN holds the inputs under the names and shapes that 'halation list' shows, in F32, F16 or BF16 (gates in F32 "
        "or the\nsame), and if wanted initial_state (F32) and, for a packed batch, offsets [N+1] (I32 or I64). Its "
        "metadata "
        "may say\nscale, feature_map, heads (grouped, tiled) and causal (true, false).\n"
        "OUT gets o in the type of the inputs, final_state and, where there is a normaliser, final_normalizer in F32. "
        "On "
        "an\nerror nothing is written.\n\n"
        "Examples:\n"
        "  halation run gated_delta prompt.safetensors -o out.safetensors\n"
        "  halation run kda prompt.safetensors -o out.safetensors --form recurrent --threads 1");
    command->callback([options] { run(*options); });
}

}  // namespace halation::cli
