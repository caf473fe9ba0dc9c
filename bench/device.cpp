// Kernels on a device: decode of a large batch, decode of one sequence, a long prefill, each beside a copy of as many bytes (in
// a graph: of a graph of copies). Every tensor is in device memory before the clock starts; calls are put into the queue one
// after the other and waited for once, so that what is timed is the device, unless the host takes longer to ask.
#include "cuda_driver.h"
#include "work.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>

namespace {

struct Case {
    const char *name;
    halation_form form;
    bench::Sizes sizes;
    bool in_graph = false;  // as servers decode
};

constexpr int calls_of_graph = 20;

class OnDevice {
public:
    OnDevice(const halation::Context &context, const halation::NamedTensors &tensors) {
        // A state that is read and written in place is one memory here, too.
        for (const auto &[name, tensor] : tensors) {
            size_t bytes = tensor.type().bits / 8;
            for (const int64_t extent : tensor.shape()) bytes *= static_cast<size_t>(extent);
            const auto known = std::find(hosts_.begin(), hosts_.end(), tensor.data());
            const size_t at = static_cast<size_t>(known - hosts_.begin());
            if (known == hosts_.end()) {
                hosts_.push_back(tensor.data());
                memory_.emplace_back(context, tensor.data(), bytes);
            }
            tensors_.emplace_back(
                name, halation::Tensor(memory_[at].data(), tensor.type(), tensor.shape()).on(context.device().device));
        }
    }
    const halation::NamedTensors &tensors() const { return tensors_; }

private:
    std::vector<const void *> hosts_;
    std::vector<halation::DeviceMemory> memory_;
    halation::NamedTensors tensors_;
};

// Seconds a call of which a round has some: the least and the median of rounds.
std::pair<double, double> time_calls(const halation::Context &context, const std::function<void()> &round, int calls) {
    const auto rounds = [&](int count) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < count; i++) round();
        context.synchronize();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
    };
    rounds(2);
    const int count = std::max(1, static_cast<int>(0.05 / rounds(1)));
    std::vector<double> seconds;
    for (int i = 0; i < 7; i++) seconds.push_back(rounds(std::min(count, 2000)));
    std::sort(seconds.begin(), seconds.end());
    return {seconds.front() / calls, seconds[seconds.size() / 2] / calls};
}

// One line of the table, which is Markdown: it goes into bench/results as it is. `copy`: seconds in which the device copies what
// the call reads and writes; 0: not known. Speeds are reckoned from the least time.
void print_line(const std::string &name, const std::string &what, std::pair<double, double> seconds, double bytes, double copy,
                double multiply_adds) {
    char of_copy[64];
    std::snprintf(of_copy, sizeof(of_copy), "%9.1f | %5.0f %%", copy * 1e6, 100 * copy / seconds.first);
    std::printf("| %-17s | %-24s | %9.1f | %9.1f | %5.0f | %s | %6.0f |\n", name.c_str(), what.c_str(), seconds.first * 1e6,
                seconds.second * 1e6, bytes / seconds.first / 1e9, copy > 0 ? of_copy : "        - |       -",
                multiply_adds / seconds.first / 1e9);
    std::fflush(stdout);
}

const halation_row *find_row(const std::string &name) {
    const halation_kernel_table &table = *halation_kernels();
    for (int i = 0; i < table.row_count; i++)
        if (name == table.rows[i].name) return &table.rows[i];
    return nullptr;
}

}  // namespace

int main(int argc, char **argv) {
    std::string backend = "cuda", type = "f32", state_type = "f32";
    std::vector<std::string> only;
    std::vector<std::string> recurrences = {"linear", "retention",   "gated", "gla",   "gla_outer",         "rwkv6",
                                            "delta",  "gated_delta", "kda",   "rwkv7", "linear_normalized", "ssm",
                                            "hgrn",   "softmax"};
    bool in_place = false;
    int64_t heads = 32, dim = 128, elements = 16, batch = 128, tokens = 8192;
    CLI::App app("Times kernels on a device");
    app.add_option("--backend", backend, "cuda, opencl or metal")->capture_default_str();
    app.add_option("recurrences", recurrences, "which; default: all with kernels for devices");
    app.add_option("--heads", heads, "H")->capture_default_str();
    app.add_option("--dim", dim, "K and V; where there are no heads, D is H times that")->capture_default_str();
    app.add_option("--elements", elements, "N of ssm")->capture_default_str();
    app.add_option("--batch", batch, "sequences of the large decode")->capture_default_str();
    app.add_option("--tokens", tokens, "of the prefill")->capture_default_str();
    app.add_option("--type", type, "of q, k, v and o; gates are float32")
        ->check(CLI::IsMember({"f32", "f16", "bf16"}))
        ->capture_default_str();
    app.add_option("--state-type", state_type, "what states are stored as")
        ->check(CLI::IsMember({"f32", "bf16"}))
        ->capture_default_str();
    app.add_option("--only", only, "cases whose name has this word, or one of these with commas between")
        ->allow_extra_args(false)
        ->delimiter(',');
    app.add_flag("--in-place", in_place,
                 "also a kernel that does nothing but load and store states [128, 128] of the large decode in place (CUDA)");
    CLI11_PARSE(app, argc, argv);
    try {
        halation::Context context(1);
        context.add_kernels(*halation_kernels());
        const halation_device_info device = context.open_device(backend.c_str());
        std::optional<bench::CudaDriver> cuda;
        if (backend == "cuda") cuda.emplace(context);
        const auto in_graph = [&](const std::function<void()> &call) {
            return time_calls(context, cuda->captured(calls_of_graph, call), calls_of_graph);
        };
        const auto copy_of = [&](double bytes) {
            if (!cuda) return 0.0;
            const size_t half = static_cast<size_t>(bytes / 2);
            const halation::DeviceMemory from(context, half);
            halation::DeviceMemory to(context, half);
            return in_graph(cuda->copy(from, to, half)).first;
        };
        std::printf("%s, H %lld, K = V = %lld, %s, states in %s", device.name, static_cast<long long>(heads),
                    static_cast<long long>(dim), type.c_str(), state_type.c_str());
        constexpr double much = 4e9;
        const double second_a_byte = copy_of(much) / much;
        if (cuda) std::printf("; a copy moves %.0f GB/s, read and written", 1e-9 / second_a_byte);
        std::printf("; B %lld of a batch, T %lld of a prefill\n\n", static_cast<long long>(batch),
                    static_cast<long long>(tokens));
        std::printf("| %-17s | %-24s | %9s | %9s | %5s | %9s | %7s | %6s |\n|---|---|---|---|---|---|---|---|\n", "recurrence",
                    "case", "us least", "us median", "GB/s", "us a copy", "of copy", "GMAC/s");
        if (cuda && in_place) {
            const int64_t count = batch * heads;
            const double bytes = 128.0 * 128 * sizeof(float) * static_cast<double>(count);
            halation::DeviceMemory states(context, static_cast<size_t>(bytes));
            const double copy = copy_of(2 * bytes);
            for (const int row : {32, 64, 128})
                print_line("(in place)", "rows of " + std::to_string(row) + ", graph",
                           in_graph(cuda->in_place(states, count, row)), 2 * bytes, copy, 0);
        }
        for (const std::string &name : recurrences) {
            const halation_row *row = find_row(name);
            if (!row) throw std::runtime_error("no recurrence '" + name + "' here");
            std::vector<Case> cases = {{"decode of a batch", HALATION_FORM_RECURRENT, {batch, 1, 0}},
                                       {"decode of a batch, graph", HALATION_FORM_RECURRENT, {batch, 1, 0}, true},
                                       {"decode of one", HALATION_FORM_RECURRENT, {1, 1, 0}},
                                       {"decode of one, graph", HALATION_FORM_RECURRENT, {1, 1, 0}, true},
                                       {"prefill recurrent", HALATION_FORM_RECURRENT, {1, tokens, 0}},
                                       {"prefill chunkwise", HALATION_FORM_CHUNKWISE, {1, tokens, 0}}};
            if (bench::has_letter(*row, 'S'))
                cases = {{"decode, as many cached", HALATION_FORM_RECURRENT, {1, 1, tokens}},
                         {"prefill parallel", HALATION_FORM_PARALLEL, {1, tokens, 0}}};
            for (const Case &c : cases) {
                const bool wanted = only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string &word) {
                                        return std::string(c.name).find(word) != std::string::npos;
                                    });
                if (!wanted || (c.in_graph && !cuda)) continue;
                halation::Problem problem(name.c_str(), heads, heads, dim, dim);
                if (!bench::has_heads(*row))
                    problem = {name.c_str(), 1, 1, bench::has_letter(*row, 'K') ? elements : 1, heads * dim};
                problem.form = c.form;
                problem.type = bench::type_named(type);
                problem.state_type = bench::type_named(state_type);
                const bench::Inputs inputs(*row, problem, c.sizes);
                const bench::Work work = bench::work_of(*row, problem, c.sizes);
                problem.backend = backend.c_str();
                halation::Plan plan(context, problem);
                const OnDevice there(context, inputs.tensors());
                const std::function<void()> call = [&] { plan.run(there.tensors()); };
                call();
                print_line(name, c.name, c.in_graph ? in_graph(call) : time_calls(context, call, 1), work.bytes,
                           c.in_graph ? copy_of(work.bytes) : work.bytes * second_a_byte, work.multiply_adds);
            }
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "device_bench: %s\n", error.what());
        return 1;
    }
}
