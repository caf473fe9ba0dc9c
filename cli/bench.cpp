// halation bench: the time of kernels on random inputs.
#include "commands.h"
#include "options.h"
#include "problem_file.h"

#include "halation.hpp"
#include "halation_kernels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <random>

namespace halation::cli {
namespace {

struct BenchOptions {
    std::vector<std::string> recurrences;
    std::vector<int64_t> tokens = {4096};
    int64_t batch = 1, heads = 16, value_heads = 0, key_dim = 128, value_dim = 128;
    std::string type = "f32";
    int repetitions = 7;
    KernelOptions kernel;
};

bool has_letter(const halation_row &row, char letter) {
    for (int i = 0; i < row.input_count; i++)
        if (std::strchr(row.inputs[i].dims, letter)) return true;
    return false;
}

// Arrays of one problem under their names. Values are such that nothing grows: what they are does not change the time.
class Inputs {
public:
    Inputs(const halation_row &row, const BenchOptions &options, const Problem &problem, int64_t tokens)
        : options_(options), problem_(problem), tokens_(tokens) {
        for (int i = 0; i < row.input_count; i++) {
            const halation_row_tensor &input = row.inputs[i];
            if (input.otherwise == HALATION_DEFAULT_REQUIRED)
                add(input.name, input.dims, input.role == HALATION_ROLE_DATA, input.role == HALATION_ROLE_GATE);
        }
        add("o", row.output_dims, true, false);
        if (row.state_dims) state("initial_state", "final_state", row.state_dims);
        if (row.normalizer_dims) state("initial_normalizer", "final_normalizer", row.normalizer_dims);
    }
    const NamedTensors &tensors() const { return tensors_; }

private:
    const BenchOptions &options_;
    const Problem &problem_;
    int64_t tokens_;
    std::mt19937 random_{1};
    std::vector<std::unique_ptr<char[]>> memory_;
    NamedTensors tensors_;

    std::vector<int64_t> shape(const char *dims) const {
        std::vector<int64_t> result;
        for (const char *letter = dims; *letter; letter++) {
            switch (*letter) {
            case 'B':
            case 'N':
                result.push_back(options_.batch);
                break;
            case 'T':
            case 'S':
                result.push_back(tokens_);
                break;
            case 'H':
                result.push_back(problem_.heads);
                break;
            case 'G':
                result.push_back(problem_.value_heads);
                break;
            case 'K':
                result.push_back(problem_.key_dim);
                break;
            default:
                result.push_back(problem_.value_dim);
            }
        }
        return result;
    }

    void add(const char *name, const char *dims, bool is_data, bool is_gate) {
        const std::vector<int64_t> extents = shape(dims);
        int64_t count = 1;
        for (const int64_t extent : extents) count *= extent;
        const DLDataType type = is_data ? problem_.type : float32;
        const size_t bytes = static_cast<size_t>(count) * type.bits / 8;
        memory_.emplace_back(new char[bytes]());
        if (type.bits == 32) fill(reinterpret_cast<float *>(memory_.back().get()), count, is_gate);
        tensors_.push_back({name, Tensor(memory_.back().get(), type, extents)});
    }
    void fill(float *values, int64_t count, bool is_gate) {
        std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(problem_.key_dim)));
        std::uniform_real_distribution<float> gate(-0.1f, 0);
        for (int64_t i = 0; i < count; i++) values[i] = is_gate ? gate(random_) : normal(random_);
    }
    // In place, as when decoding.
    void state(const char *initial, const char *final, const char *dims) {
        add(initial, dims, false, false);
        tensors_.push_back({final, tensors_.back().second});
    }
};

DLDataType type_named(const std::string &name) {
    return name == "f16" ? float16 : name == "bf16" ? bfloat16 : float32;
}

void time_one(const Context &context, const halation_row &row, const BenchOptions &options, int64_t tokens) {
    const bool headed = has_letter(row, 'H') || has_letter(row, 'G');
    const int64_t heads = headed ? options.heads : 1,
                  value_heads = headed ? (options.value_heads ? options.value_heads : heads) : 1;
    Problem problem(row.name, heads, value_heads, has_letter(row, 'K') ? options.key_dim : 1, options.value_dim);
    problem.form = form_named(options.kernel.form);
    problem.backend = options.kernel.backend.c_str();
    if (!options.kernel.isa.empty()) problem.isa = options.kernel.isa.c_str();
    problem.type = type_named(options.type);
    auto choice = HALATION_INIT(halation_choice);
    if (halation_can_run(context.get(), &problem, &choice) != HALATION_OK) {
        fmt::print("{:<18} {:>7} not run: {}\n", row.name, tokens, choice.reason);
        return;
    }
    Plan plan(context, problem);
    const Inputs inputs(row, options, problem, tokens);
    using Clock = std::chrono::steady_clock;
    const auto once = [&] {
        const auto start = Clock::now();
        plan.run(inputs.tensors());
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    // Short calls are repeated until a measurement takes a millisecond, so that the clock does not matter.
    once();
    const int calls = std::max(1, static_cast<int>(1e-3 / std::max(once(), 1e-7)));
    std::vector<double> times;
    for (int i = 0; i < options.repetitions; i++) {
        double sum = 0;
        for (int call = 0; call < calls; call++) sum += once();
        times.push_back(sum / calls);
    }
    std::sort(times.begin(), times.end());
    const double least = times.front(), median = times[times.size() / 2];
    const double units = static_cast<double>(options.batch * tokens * value_heads);
    const std::string name = tokens == 1 || std::strchr(choice.kernel, '+') == nullptr
                                 ? std::string(choice.kernel).substr(0, std::string(choice.kernel).find('+'))
                                 : std::string(choice.kernel).substr(std::string(choice.kernel).find('+') + 1);
    fmt::print("{:<18} {:>7} {:>11.4f} {:>11.4f} {:>10.1f}  {}\n", row.name, tokens, least * 1e3, median * 1e3,
               median / units * 1e9, name);
    std::fflush(stdout);
}

void bench(const BenchOptions &options) {
    const halation_kernel_table &table = *halation_kernels();
    std::vector<const halation_row *> rows;
    for (const std::string &name : options.recurrences) rows.push_back(&row_named(name));
    if (rows.empty())
        for (int i = 0; i < table.row_count; i++) rows.push_back(&table.rows[i]);
    Context context(options.kernel.threads);
    context.add_kernels(table);
    fmt::print("B {}  H {}  K {}  V {}  {}  threads {}\n", options.batch, options.heads, options.key_dim, options.value_dim,
               options.type, options.kernel.threads ? std::to_string(options.kernel.threads) : "all");
    fmt::print("{:<18} {:>7} {:>11} {:>11} {:>10}  {}\n", "recurrence", "tokens", "least ms", "median ms", "ns/(t h)", "kernel");
    for (const halation_row *row : rows)
        for (const int64_t tokens : options.tokens) time_one(context, *row, options, tokens);
}

}  // namespace

void add_bench(CLI::App &app) {
    auto options = std::make_shared<BenchOptions>();
    CLI::App *command = app.add_subcommand("bench", "time kernels on random inputs");
    command->add_option("RECURRENCE", options->recurrences, "those to time (default: all)")->option_text(" ");
    command->add_option("--tokens", options->tokens, "lengths T of a sequence (default: 4096)")
        ->check(CLI::PositiveNumber)
        ->option_text("T ...");
    command->add_option("--batch", options->batch, "sequences (default: 1)")->check(CLI::PositiveNumber)->option_text("B");
    command->add_option("--heads-count", options->heads, "heads of q and k (default: 16)")
        ->check(CLI::PositiveNumber)
        ->option_text("H");
    command->add_option("--value-heads-count", options->value_heads, "heads of v (default: as many)")
        ->check(CLI::PositiveNumber)
        ->option_text("HV");
    command->add_option("--key-dim", options->key_dim, "key channels; N of ssm (default: 128)")
        ->check(CLI::PositiveNumber)
        ->option_text("K");
    command->add_option("--value-dim", options->value_dim, "value channels; D of ssm and hgrn (default: 128)")
        ->check(CLI::PositiveNumber)
        ->option_text("V");
    command->add_option("--type", options->type, "of q, k, v, o: f32, f16, bf16 (default: f32)")
        ->check(CLI::IsMember({"f32", "f16", "bf16"}).description(""))
        ->option_text("TYPE");
    command->add_option("--repetitions", options->repetitions, "measurements, after a warm-up (default: 7)")
        ->check(CLI::PositiveNumber)
        ->option_text("N");
    add_kernel_options(*command, options->kernel);
    command->footer(
        "A line per recurrence and length: least and median time of a call, and the median per token and value head.\n"
        "Times on a shared machine drift: compare what was measured side by side.\n\n"
        "Examples:\n"
        "  halation bench gated_delta kda gla gated --threads 1\n"
        "  halation bench gated_delta --tokens 1 --threads 1        decode\n"
        "  halation bench ssm --key-dim 16 --value-dim 2048 --threads 1");
    command->callback([options] { bench(*options); });
}

}  // namespace halation::cli
