// Generated kernels from many threads, and without memory.
#include "kernel_run.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <thread>

using namespace kernels;

namespace {

Problem small(const std::string &name) {
    Problem problem;
    problem.recurrence = recurrence(name);
    problem.B = 2, problem.T = 70, problem.H = 2, problem.HV = 4, problem.K = 33, problem.V = 29, problem.before = 3;
    fill(problem);
    return problem;
}

// The problem's tensors as one call takes them.
struct Call {
    std::map<std::string, std::unique_ptr<Placed>> placed;
    halation::NamedTensors tensors;

    explicit Call(const Problem &problem) {
        for (const auto &[name, tensor] : problem.inputs) add(name, tensor.type, tensor.shape)->put(tensor);
        add("o", problem.type, problem.shape(problem.recurrence.row->output_dims));
        if (problem.recurrence.row->state_dims) add("final_state", Type::f32, problem.shape(problem.recurrence.row->state_dims));
    }
    Placed *add(const std::string &name, Type type, const std::vector<int64_t> &shape) {
        placed[name] = std::make_unique<Placed>(type, shape, Placing());
        tensors.emplace_back(name, placed[name]->view());
        return placed[name].get();
    }
    Tensor o() const { return placed.at("o")->get(); }
};

const char *const names[] = {"gated_delta", "linear_normalized", "rwkv7", "ssm", "hgrn", "bidirectional", "softmax"};

// Allocations of one context, of which one may fail.
struct Counted {
    std::atomic<int> made{0}, live{0};
    int fails_at = -1;

    static void *allocate(void *user, size_t bytes, size_t alignment) {
        Counted &self = *static_cast<Counted *>(user);
        const int number = self.made++;
        // Twice: scratch memory that is refused is asked for again once other sizes are given back.
        if (self.fails_at >= 0 && (number == self.fails_at || number == self.fails_at + 1)) return nullptr;
        self.live++;
        return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    }
    static void release(void *user, void *memory, size_t) {
        static_cast<Counted *>(user)->live--;
        std::free(memory);
    }
    std::unique_ptr<halation::Context> context() {
        auto options = HALATION_INIT(halation_context_options);
        options.threads = 2;
        options.allocate = allocate;
        options.release = release;
        options.allocator_user = this;
        auto made_context = std::make_unique<halation::Context>(options);
        made_context->add_kernels(*halation_kernels());
        return made_context;
    }
};

}  // namespace

TEST_CASE("contexts on threads of their own, with different recurrences, give what each gives alone") {
    std::vector<Tensor> alone;
    for (const char *name : names) alone.push_back(run(small(name), {HALATION_FORM_AUTO, ""})["o"]);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < std::size(names); i++)
        threads.emplace_back([&, i] {
            halation::Context context(2);
            context.add_kernels(*halation_kernels());
            const Problem problem = small(names[i]);
            for (int round = 0; round < 5; round++) {
                Call call(problem);
                halation::Plan(context, problem_for(problem, {HALATION_FORM_AUTO, ""})).run(call.tensors);
                wrong += !same_bits(call.o(), alone[i]);
            }
        });
    for (std::thread &thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("one context and one plan, called from two threads, serve them in turn") {
    const Problem problem = small("kda");
    const Tensor alone = run(problem, {HALATION_FORM_AUTO, ""})["o"];
    halation::Context context(2);
    context.add_kernels(*halation_kernels());
    halation::Plan plan(context, problem_for(problem, {HALATION_FORM_AUTO, ""}));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            for (int round = 0; round < 20; round++) {
                Call call(problem);
                plan.run(call.tensors);
                wrong += !same_bits(call.o(), alone);
            }
        });
    for (std::thread &thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("each allocation of a call may fail: a status, nothing leaked, and the next call is right") {
    int failed = 0;
    for (const char *name : names) {
        const Problem problem = small(name);
        each_kernel(problem, [&](const Kernel &kernel) {
            const Tensor sound = run(problem, kernel)["o"];
            for (int at = 0;; at++) {
                Counted counted;
                auto context = counted.context();
                {
                    Call call(problem);
                    counted.fails_at = counted.made + at;
                    halation_status status = HALATION_OK;
                    try {
                        halation::Plan(*context, problem_for(problem, kernel)).run(call.tensors);
                    } catch (const halation::Error &error) {
                        status = error.status();
                        CHECK(status == HALATION_OUT_OF_MEMORY);
                    }
                    const bool reached = counted.made > counted.fails_at;
                    failed += status != HALATION_OK;
                    counted.fails_at = -1;
                    halation::Plan(*context, problem_for(problem, kernel)).run(call.tensors);
                    CHECK(same_bits(call.o(), sound));
                    if (!reached) break;
                }
                context.reset();
                CHECK(counted.live == 0);
            }
        });
    }
    CHECK(failed > 0);
}
