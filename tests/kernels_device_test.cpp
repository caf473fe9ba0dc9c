// What is asked of kernels on a device besides what is asked of all kernels: sizes around those of blocks, forms by length in one
// launch each, any strides, contexts on threads of their own, and what a device cannot have.
#include "kernel_device.h"
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <limits>
#include <sstream>
#include <thread>

using namespace kernels;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

Problem sizes(int64_t B, int64_t T, int64_t K = 37, int64_t V = 45, int64_t H = 2, int64_t HV = 4) {
    Problem problem;
    problem.B = B, problem.T = T, problem.H = H, problem.HV = HV, problem.K = K, problem.V = V;
    return problem;
}

Problem small(const std::string &name, Problem problem) {
    problem.recurrence = recurrence(name);
    fill(problem);
    return problem;
}

bool has_gate(const halation_row &row) {
    return has_input(row, "g");
}

// Whether a plan can be made: a driver's compiler may find too few registers for what the device had room for otherwise.
bool has_room(const Problem &problem, const Kernel &kernel) {
    const halation::Problem asked = problem_for(problem, kernel);
    halation_plan *plan = nullptr;
    const halation_status status = halation_plan_create(device_context().get(), &asked, &plan);
    halation_plan_destroy(plan);
    if (status == HALATION_OK) return true;
    INFO(problem.text() << ", " << kernel.text() << ": " << halation_last_message());
    CHECK(status == HALATION_UNSUPPORTED);
    return false;
}

// What the program was built with may lack a recurrence.
std::vector<std::string> known(const std::vector<std::string> &names) {
    std::vector<std::string> all;
    for (const std::string &name : names)
        if (exists(name)) all.push_back(name);
    return all;
}

const char *const states[][2] = {{"initial_state", "final_state"}, {"initial_normalizer", "final_normalizer"}};

// A problem's tensors on the device of a context of its own.
struct Call {
    std::map<std::string, std::unique_ptr<Placed>> placed;
    std::map<std::string, DeviceCopy> copies;
    halation::NamedTensors tensors;

    Call(const halation::Context &context, const Problem &problem) {
        const halation_row &row = *problem.recurrence.row;
        for (const auto &[name, tensor] : problem.inputs) add(context, name, tensor.type, tensor.shape, &tensor);
        add(context, "o", problem.type, problem.shape(row.output_dims));
        add(context, "final_state", Type::f32, problem.shape(row.state_dims));
        if (row.normalizer_dims) add(context, "final_normalizer", Type::f32, problem.shape(row.normalizer_dims));
    }
    Tensor o() {
        bool changed = false;
        copies.at("o").fetch(placed.at("o").get(), &changed);
        return placed.at("o")->get();
    }

private:
    void add(const halation::Context &context, const std::string &name, Type type, const std::vector<int64_t> &shape,
             const Tensor *from = nullptr) {
        placed[name] = std::make_unique<Placed>(type, shape, Placing());
        if (from) placed[name]->put(*from);
        copies.try_emplace(name, context, *placed[name]);
        tensors.emplace_back(name, copies.at(name).view());
    }
};

bool is_ssm(const halation_row &row) {
    return std::string(row.name) == "ssm";
}

// Sequence n gives alone, bit for bit, what it gave among all.
void check_alone(const Problem &problem, const Kernel &kernel, const Results &all, int64_t n) {
    const int64_t first = problem.offsets[static_cast<size_t>(n)], last = problem.offsets[static_cast<size_t>(n) + 1];
    INFO(problem.text() << ", " << kernel.text() << ", sequence " << n);
    const Results one = run(alone(problem, n), kernel);
    CHECK(same_bits(cut_tokens(all.tensors.at("o"), first, last), one.tensors.at("o")));
    CHECK(same_bits(row_of(all.tensors.at("final_state"), n), one.tensors.at("final_state")));
}

}  // namespace

TEST_CASE("sizes around those of blocks and chunks") {
    const struct {
        int64_t B, T, K, V, H, HV;
        bool tiled, initial_state, beta_per_value;
        Gates gates;
    } rows[] = {
        {2, 9, 1, 1, 1, 1, false, true, false, Gates::gentle},
        {1, 7, 16, 32, 3, 3, false, false, true, Gates::resets},
        {3, 8, 5, 33, 2, 4, true, true, true, Gates::strong},
        {2, 1, 17, 31, 2, 6, false, true, false, Gates::gentle},
        {1, 100, 32, 64, 1, 3, true, true, true, Gates::resets},
        {2, 0, 21, 65, 2, 2, false, true, false, Gates::gentle},
        {2, 16, 37, 1, 2, 4, true, false, true, Gates::strong},
        {1, 17, 48, 100, 2, 6, false, true, false, Gates::zero},
        {2, 15, 33, 63, 1, 2, false, true, true, Gates::scattered_zeros},
        {2, 33, 5, 33, 2, 4, false, true, false, Gates::gentle},
        {1, 31, 5, 33, 2, 4, true, false, true, Gates::resets},
        {1, 64, 5, 33, 2, 4, false, true, false, Gates::gentle},
    };
    for (const auto &row : rows) {
        Problem like = sizes(row.B, row.T, row.K, row.V, row.H, row.HV);
        like.heads = row.tiled ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
        like.initial_state = row.initial_state;
        like.beta_per_value = row.beta_per_value;
        like.gates = row.gates;
        like.seed = static_cast<unsigned>(row.K * 100 + row.V);
        each_problem(like, has_state, check_all_kernels);
    }
}

TEST_CASE("heads of 64 to 256 key channels") {
    for (const int64_t K : {65, 128, 256}) {
        std::vector<std::string> names = {"gated_delta", "gla", "ssm"};
        if (K == 128) names.emplace_back("linear_normalized");
        for (const std::string &name : known(names)) {
            const Problem problem = small(name, sizes(1, 21, K, 70));
            const auto wanted = expected(problem);
            each_kernel(problem, [&](const Kernel &kernel) {
                if (has_room(problem, kernel)) check_close(run(problem, kernel), wanted);
            });
        }
    }
}

TEST_CASE("gates of -1e4, -inf, 0 and +1 beside each other") {
    each_problem(sizes(1, 43), has_gate, [](Problem &problem) {
        edit_gates(problem, [](int64_t t, int64_t channel, double g) {
            const double strong[] = {-1e4, -infinity, 0, 1};
            return (t + channel) % 5 == 2 ? strong[(t / 5 + channel) % 4] : g;
        });
        check_all_kernels(problem);
    });
}

TEST_CASE("form auto computes each sequence as its length says") {
    Problem like = sizes(1, 29);
    like.offsets = {0, 1, 1, 9, 10, 12, 28, 29, 29};
    each_problem(like, has_state, [](const Problem &problem) {
        const Results all = run(problem, {HALATION_FORM_AUTO, ""});
        check_close(all, expected(problem));
        for (int64_t n = 0; n < problem.sequences(); n++) {
            const int64_t first = problem.offsets[static_cast<size_t>(n)], last = problem.offsets[static_cast<size_t>(n) + 1];
            INFO(problem.text() << ", sequence " << n);
            const Results one =
                run(alone(problem, n), {last - first == 1 ? HALATION_FORM_RECURRENT : HALATION_FORM_CHUNKWISE, ""});
            CHECK(same_bits(cut_tokens(all["o"], first, last), one["o"]));
            for (const auto &[initial, final] : states)
                if (all.tensors.count(final)) CHECK(same_bits(row_of(all[final], n), one[final]));
        }
    });
}

TEST_CASE("a sequence of NaN reaches none of those packed beside it") {
    Problem like = sizes(1, 40);
    like.offsets = {0, 3, 20, 20, 27, 28, 40};
    each_problem(like, has_state, [](const Problem &problem) {
        for (const int64_t spoilt : {0, 1, 3, 4, 5}) {
            const int64_t first = problem.offsets[static_cast<size_t>(spoilt)],
                          last = problem.offsets[static_cast<size_t>(spoilt) + 1];
            const double nan = std::nan("");
            Problem nans = problem;
            for (int i = 0; i < problem.recurrence.row->input_count; i++) {
                const halation_row_tensor &input = problem.recurrence.row->inputs[i];
                if (std::string(input.dims).rfind("BT", 0) != 0) continue;
                edit(nans, input.name, [&](const std::vector<int64_t> &index, double value) {
                    return index[1] >= first && index[1] < last ? nan : value;
                });
            }
            for (const auto &[initial, final] : states)
                if (problem.inputs.count(initial))
                    edit(nans, initial,
                         [&](const std::vector<int64_t> &index, double value) { return index[0] == spoilt ? nan : value; });
            for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
                INFO("sequence " << spoilt << " of " << problem.text() << ", form " << form);
                const Results sound = run(problem, {form, ""}), results = run(nans, {form, ""});
                CHECK(same_bits(cut_tokens(sound["o"], 0, first), cut_tokens(results["o"], 0, first)));
                CHECK(same_bits(cut_tokens(sound["o"], last, problem.T), cut_tokens(results["o"], last, problem.T)));
                for (const auto &[initial, final] : states)
                    for (int64_t n = 0; n < problem.sequences() && sound.tensors.count(final); n++)
                        if (n != spoilt) CHECK(same_bits(row_of(sound[final], n), row_of(results[final], n)));
            }
        }
    });
}

TEST_CASE("tensors lie any way, innermost strides above 1 among them") {
    each_problem(sizes(2, 18), has_state, [](const Problem &problem) {
        check_layouts(problem, {HALATION_FORM_AUTO, ""});
        each_kernel(problem, [&](const Kernel &kernel) { check_layouts(problem, kernel); });
    });
}

TEST_CASE("more sequences and heads than an axis of a grid has blocks") {
    size_t turn = 0;
    for (const std::string &name : known({"gated", "hgrn"}))
        for (const auto &[B, HV] : {std::pair<int64_t, int64_t>{66000, 1}, {33, 2000}}) {
            if (turn++ % stride_of_sample()) continue;
            const Problem problem = small(name, sizes(B, 1, 3, 1, 1, HV));
            const auto wanted = expected(problem);
            const auto check = [&](const Kernel &kernel) { check_close(run(problem, kernel), wanted); };
            each_kernel(problem, check, {HALATION_FORM_CHUNKWISE});  // whose launches are those of all forms
        }
}

TEST_CASE("long sequences among many short ones, which go apart") {
    Problem like = sizes(1, 0, 21, 33, 1, 2);
    like.offsets = {0};
    const auto add = [&](int64_t length) { like.offsets.push_back(like.offsets.back() + length); };
    for (const int64_t length : {5, 1000, 17, 0, 80, 270, 64}) add(length);
    for (int64_t n = 0; n < 50; n++) add(n % 4);
    like.T = like.offsets.back();
    each_problem(like, has_state, [](const Problem &problem) {
        if (problem.type != Type::f32) return;  // which launch a sequence goes into is by lengths
        const auto wanted = expected(problem);
        for (const halation_form form : {HALATION_FORM_AUTO, HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
            const Results all = run(problem, {form, ""});
            check_close(all, wanted);
            for (const int64_t n : {1, 4, 6, 10}) {
                const int64_t first = problem.offsets[static_cast<size_t>(n)], last = problem.offsets[static_cast<size_t>(n) + 1];
                CHECK(same_bits(cut_tokens(all["o"], first, last), run(alone(problem, n), {form, ""})["o"]));
            }
        }
    });
}

TEST_CASE("ssm with N 16, which may have kernels of their own") {
    Problem like = sizes(1, 0, 16, 70, 1, 1);
    like.offsets = {0, 1, 1, 10, 74, 75, 150};
    like.T = like.offsets.back();
    each_problem(like, is_ssm, [](const Problem &problem) {
        const auto wanted = expected(problem);
        each_kernel(problem, [&](const Kernel &kernel) {
            const Results all = run(problem, kernel);
            check_close(all, wanted);
            check_layouts(problem, kernel);
            for (int64_t n = 0; n < problem.sequences(); n++) check_alone(problem, kernel, all, n);
        });
    });
}

TEST_CASE("a device has contexts on several threads, and plans are called from several") {
    const std::vector<std::string> names = known({"gated_delta", "linear_normalized", "rwkv7", "ssm", "hgrn"});
    std::vector<Tensor> alone;
    for (const std::string &name : names) alone.push_back(run(small(name, sizes(2, 50)), {HALATION_FORM_AUTO, ""})["o"]);
    std::atomic<int> wrong{0};
    const auto repeat = [&](const halation::Context &context, halation::Plan &plan, size_t i) {
        const Problem problem = small(names[i], sizes(2, 50));
        for (int round = 0; round < 5; round++) {
            Call call(context, problem);
            plan.run(call.tensors);
            wrong += !same_bits(call.o(), alone[i]);
        }
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < names.size(); i++)
        threads.emplace_back([&, i] {
            halation::Context context(1);
            context.add_kernels(*halation_kernels());
            context.open_device(tested_backend().c_str());
            halation::Plan plan(context, problem_for(small(names[i], sizes(2, 50)), {HALATION_FORM_AUTO, ""}));
            repeat(context, plan, i);
        });
    for (std::thread &thread : threads) thread.join();
    CHECK(wrong == 0);
    if (names.empty()) return;
    halation::Plan plan(device_context(), problem_for(small(names[0], sizes(2, 50)), {HALATION_FORM_AUTO, ""}));
    threads.clear();
    for (int i = 0; i < 2; i++) threads.emplace_back([&] { repeat(device_context(), plan, 0); });
    for (std::thread &thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("more key channels than the device has room for are refused with how many it has") {
    const auto has_keys = [](const halation_row &row) { return has_state(row) && has_letter(row, 'K'); };
    each_problem(sizes(1, 3, 1 << 14, 1, 1, 1), has_keys, [](const Problem &problem) {
        for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE, HALATION_FORM_AUTO}) {
            halation::Problem asked = problem_for(problem, {form, ""});
            auto choice = HALATION_INIT(halation_choice);
            REQUIRE(halation_can_run(device_context().get(), &asked, &choice) == HALATION_UNSUPPORTED);
            const std::string message = halation_last_message(), begin = "key_dim: got 16384; may be 1 to ";
            INFO(message);
            REQUIRE(message.rfind(begin, 0) == 0);
            CHECK(message.rfind(choice.reason, 0) == 0);
            int64_t most = 0;
            std::istringstream(message.substr(begin.size())) >> most;
            asked.key_dim = most;
            CHECK(halation_can_run(device_context().get(), &asked, nullptr) == HALATION_OK);
            asked.key_dim = most + 1;
            halation_plan *plan = nullptr;
            CHECK(halation_plan_create(device_context().get(), &asked, &plan) == HALATION_UNSUPPORTED);
            CHECK(std::string(halation_last_message()).find("may be 1 to " + std::to_string(most)) != std::string::npos);
        }
    });
}

TEST_CASE("as many key channels as the device has room for") {
    for (const std::string &name : known({"gated", "ssm"}))
        for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
            const Kernel kernel = {form, ""};
            int64_t most = 1, above = 1 << 14;
            while (above - most > 1) {
                const int64_t between = (most + above) / 2;
                (has_room(small(name, sizes(1, 1, between, 1, 1, 1)), kernel) ? most : above) = between;
            }
            INFO(most << " key channels");
            const Problem problem = small(name, sizes(1, 11, most, 40, 1, 1));
            check_close(problem, kernel);
        }
}
