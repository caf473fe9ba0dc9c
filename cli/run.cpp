// halation run: one file in, one file out.
#include "commands.h"
#include "compute.h"
#include "shapes.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

namespace halation::cli {
namespace {

struct RunOptions {
    std::string recurrence, input, output;
    KernelOptions kernel;
};

// "1 (ssm, hgrn), 4": what kernels of this build were compiled for.
std::string chunks_text() {
    const halation_kernel_table &table = *halation_kernels();
    std::map<int, std::vector<std::string>> by_chunk;
    for (int i = 0; i < table.kernel_count; i++) {
        if (table.kernels[i].form != HALATION_FORM_CHUNKWISE) continue;
        std::vector<std::string> &names = by_chunk[table.kernels[i].chunk];
        const std::string name = table.kernels[i].recurrence;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    std::string text;
    for (const auto &[chunk, names] : by_chunk) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", chunk);
        if (names.size() <= 3) text += fmt::format(" ({})", fmt::join(names, ", "));
    }
    return text;
}

void run(const RunOptions &options) {
    refuse_same_file(options.input, options.output);
    const ProblemFile problem = read_problem(options.input, options.recurrence, options.kernel.heads);
    Results results;
    try {
        Context context(options.kernel.threads);
        context.add_kernels(*halation_kernels());
        open_device(context, options.kernel);
        const Refusal refused = refusal(context, problem_of(problem, options.kernel));
        if (refused.status != HALATION_OK) throw Error(fmt::format("{}: {}", problem.path, refused.reason));
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
    // Into a pipe went tensors, which words must not follow.
    std::FILE *out = std::filesystem::is_regular_file(options.output) ? stdout : stderr;
    fmt::print(out, "{}: {}; computed by {}", options.output, written, results.choice.kernel);
    if (*results.choice.reason) fmt::print(out, " ({})", results.choice.reason);
    fmt::print(out, "\n");
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
    add_kernel_options(*command, options->kernel,
                       {"auto (default): recurrent for a sequence of one token, else chunkwise\n"
                        "or, where there is no such form (softmax, bidirectional), parallel",
                        "the best that\nthis machine has", "the file's metadata,\nelse grouped"});
    add_backend_options(*command, options->kernel);
    add_threads_option(*command, options->kernel.threads);
    command
        ->add_option("--chunk", options->kernel.chunk,
                     fmt::format("tokens in a chunk; kernels exist for {}\n(default: the schedule's own)", chunks_text()))
        ->check(between(1, 1 << 20))
        ->option_text("N");
    command->footer(
        "IN holds the inputs under the names and shapes that 'halation list' shows, in F32, F16 or BF16 (gates in F32 or the\n"
        "same), and if wanted initial_state (F32 or BF16), initial_normalizer (F32) and, for a packed batch, offsets [N+1]\n"
        "(I32 or I64); softmax then has cache_offsets [N+1] for k and v, unless S = T. Its metadata may say scale,\n"
        "feature_map, heads (grouped, tiled) and, for softmax, causal (true, false).\n"
        "OUT gets o in the type of the inputs, final_state in that of initial_state (else F32) and, where there is a\n"
        "normaliser, final_normalizer in F32. On an error nothing is written.\n\n"
        "Examples:\n"
        "  halation run gated_delta prompt.safetensors -o out.safetensors\n"
        "  halation run kda prompt.safetensors -o out.safetensors --form recurrent --threads 1\n"
        "  halation run gla prompt.safetensors -o out.safetensors --backend cuda");
    command->callback([options] {
        refuse_misfits(options->kernel);
        run(*options);
    });
}

}  // namespace halation::cli
