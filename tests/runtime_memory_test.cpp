// Memory: the caller's allocator and workspace, failures at every allocation, failures inside kernels.
#include "runtime_fakes.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <mutex>
#include <new>

using namespace fakes;
using halation::Tensor;

namespace {

// Counts what is out, fills memory with NaN, and fails the n-th request on demand.
struct Counting {
    std::mutex mutex;
    std::vector<std::pair<void *, size_t>> out;
    int requests = 0, fail_at = -1;
    bool mismatched = false;

    static void *allocate(void *user, size_t bytes, size_t alignment) {
        Counting &self = *static_cast<Counting *>(user);
        std::lock_guard<std::mutex> lock(self.mutex);
        if (self.requests++ >= self.fail_at && self.fail_at >= 0) return nullptr;
        void *memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
        memset(memory, 0xFF, bytes);
        self.out.push_back({memory, bytes});
        return memory;
    }
    static void release(void *user, void *memory, size_t bytes) {
        Counting &self = *static_cast<Counting *>(user);
        std::lock_guard<std::mutex> lock(self.mutex);
        for (size_t i = 0; i < self.out.size(); i++)
            if (self.out[i] == std::pair<void *, size_t>{memory, bytes}) {
                self.out.erase(self.out.begin() + static_cast<std::ptrdiff_t>(i));
                std::free(memory);
                return;
            }
        self.mismatched = true;
    }
    halation_context_options options(int threads) {
        auto made = HALATION_INIT(halation_context_options);
        made.threads = threads;
        made.allocate = allocate;
        made.release = release;
        made.allocator_user = this;
        return made;
    }
};

// The heap of C++, failing on demand on this thread only.
thread_local int heap_fails_at = -1, heap_requests = 0;

bool heap_fails() {
    return heap_fails_at >= 0 && heap_requests++ >= heap_fails_at;
}

}  // namespace

__attribute__((noinline)) void *operator new(size_t bytes) {
    void *memory = heap_fails() ? nullptr : std::malloc(bytes ? bytes : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}
__attribute__((noinline)) void *operator new(size_t bytes, std::align_val_t alignment) {
    const size_t a = static_cast<size_t>(alignment);
    void *memory = heap_fails() ? nullptr : std::aligned_alloc(a, (bytes + a - 1) / a * a);
    if (!memory) throw std::bad_alloc();
    return memory;
}
__attribute__((noinline)) void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
    return heap_fails() ? nullptr : std::malloc(bytes ? bytes : 1);
}
__attribute__((noinline)) void operator delete(void *memory) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete(void *memory, size_t) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete(void *memory, std::align_val_t) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete(void *memory, size_t, std::align_val_t) noexcept {
    std::free(memory);
}

TEST_CASE("the caller's allocator serves everything, and gets everything back") {
    Counting counting;
    Gated data(2, 20, 2, 4, 8, 12);
    int after_first = 0;
    {
        halation::Context context(counting.options(2));
        context.add_kernels(*table());
        halation::Plan plan(context, gated_problem(data));
        plan.run(data.tensors(true, false));
        after_first = counting.requests;
        CHECK(after_first > 0);
        for (int i = 0; i < 10; i++) plan.run(data.tensors(true, false));
    }
    CHECK(counting.requests == after_first);  // kept from call to call
    CHECK(counting.out.empty());
    CHECK(!counting.mismatched);
}

TEST_CASE("a failure at any allocation is a status, without a leak, and the next call works") {
    for (const int threads : {1, 3})
        for (const bool with_final : {true, false})
            for (int fail_at = 0;; fail_at++) {
                Counting counting;
                bool done = false;
                {
                    Gated data(1, 2000, 2, 4, 8, 12);
                    halation::Context context(counting.options(threads));
                    context.add_kernels(*table());
                    halation_plan *plan = nullptr;
                    halation::Problem problem = gated_problem(data);
                    counting.fail_at = fail_at;
                    Failure failure = failure_of(halation_plan_create(context.get(), &problem, &plan));
                    if (failure.status == HALATION_OK) {
                        halation_plan_destroy(plan);
                        halation::Plan used(context, problem);
                        failure = failure_of([&] { used.run(data.tensors(true, with_final)); });
                        const int wanted = counting.requests;
                        counting.fail_at = -1;
                        used.run(data.tensors(true, with_final));
                        std::vector<float> expected, states;
                        data.reference_all(true, &expected, &states);
                        CHECK(close(data.o, expected, 1e-3f));
                        done = wanted <= fail_at;
                    }
                    CHECK((failure.status == HALATION_OK) == done);
                    if (!done) {
                        CHECK(failure.status == HALATION_OUT_OF_MEMORY);
                        CHECK(failure.says("memory"));
                    }
                }
                CHECK(counting.out.empty());
                CHECK(!counting.mismatched);
                if (done) break;
                REQUIRE(fail_at < 100);
            }
}

TEST_CASE("defaults that find no memory fail the plan") {
    Counting counting;
    halation::Context context(counting.options(1));
    context.add_kernels(*table());
    halation::Problem problem("plain", 1, 1, 4, 4);
    for (int fail_at = 0; fail_at < 2; fail_at++) {
        halation_plan *plan = nullptr;
        counting.requests = 0;
        counting.fail_at = fail_at;
        const Failure failure = failure_of(halation_plan_create(context.get(), &problem, &plan));
        CHECK(failure.status == HALATION_OUT_OF_MEMORY);
        CHECK(failure.says(fail_at ? "default of gain" : "default of skip"));
        CHECK(counting.out.empty());
    }
}

TEST_CASE("a failure of the C++ heap anywhere is a status") {
    Gated data(1, 3, 2, 4, 8, 12);
    const halation::Problem problem = gated_problem(data);
    const halation_kernel_table *kernels = table();
    std::vector<int32_t> slots = {2};
    std::vector<float> pool(3 * 4 * 8 * 12, 1.f);
    int succeeded_at = -1;
    for (int fail_at = 0; fail_at < 200 && succeeded_at < 0; fail_at++) {
        DLTensor views[8];
        Tensor kept[8];
        halation_named_tensor named[8];
        auto tensors = data.tensors(false, false);
        tensors.push_back({"initial_state", Tensor(pool.data(), {3, 4, 8, 12})});
        tensors.push_back({"final_state", Tensor(pool.data(), {3, 4, 8, 12})});
        for (size_t i = 0; i < tensors.size(); i++) {
            kept[i] = tensors[i].second;
            views[i] = kept[i].view();
            named[i] = {tensors[i].first.c_str(), &views[i]};
        }
        Tensor slot_tensor(slots.data(), {1});
        DLTensor slot_view = slot_tensor.view();
        auto arguments = HALATION_INIT(halation_arguments);
        arguments.tensors = named;
        arguments.tensor_count = static_cast<int32_t>(tensors.size());
        arguments.read_slots = arguments.write_slots = &slot_view;

        halation_context *context = nullptr;
        halation_plan *plan = nullptr;
        heap_requests = 0;
        heap_fails_at = fail_at;
        halation_status status = halation_context_create(nullptr, &context);
        if (status == HALATION_OK) status = halation_context_add_kernels(context, kernels);
        if (status == HALATION_OK) status = halation_can_run(context, &problem, nullptr);
        if (status == HALATION_OK) status = halation_plan_create(context, &problem, &plan);
        if (status == HALATION_OK) status = halation_run(plan, &arguments);
        heap_fails_at = -1;
        halation_plan_destroy(plan);
        halation_context_destroy(context);
        if (status == HALATION_OK)
            succeeded_at = fail_at;
        else
            REQUIRE(status == HALATION_OUT_OF_MEMORY);
    }
    CHECK(succeeded_at > 3);
}

TEST_CASE("after the first call of its kind, a call takes nothing from the heap") {
    Gated data(1, 1, 2, 4, 8, 12);
    halation::Context context(1);
    context.add_kernels(*table());
    halation::Plan plan(context, gated_problem(data));
    auto tensors = data.tensors();
    DLTensor views[7];
    halation_named_tensor named[7];
    for (size_t i = 0; i < 7; i++) {
        views[i] = tensors[i].second.view();
        named[i] = {tensors[i].first.c_str(), &views[i]};
    }
    auto arguments = HALATION_INIT(halation_arguments);
    arguments.tensors = named;
    arguments.tensor_count = 7;
    REQUIRE(halation_run(plan.get(), &arguments) == HALATION_OK);
    heap_requests = 0;
    heap_fails_at = 0;
    const halation_status status = halation_run(plan.get(), &arguments);
    heap_fails_at = -1;
    CHECK(status == HALATION_OK);
    CHECK(heap_requests == 0);
}

TEST_CASE("a caller's workspace is enough, is checked, and its contents do not matter") {
    for (const int64_t T : {1, 30}) {
        Gated data(3, T, 2, 4, 8, 12);
        std::vector<float> expected, states;
        data.reference_all(true, &expected, &states);
        Counting counting;
        halation::Context context(counting.options(3));
        context.add_kernels(*table());
        halation::Plan plan(context, gated_problem(data));
        CHECK(plan.workspace(data.tensors(true, true)) == 0);
        const auto tensors = data.tensors(true, false);
        const size_t bytes = plan.workspace(tensors);
        REQUIRE(bytes > 0);
        std::vector<float> memory(bytes / 4 + 64, std::nanf(""));
        char *aligned = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
        memset(aligned + bytes, 0x5A, 64);
        halation::Batch batch;
        batch.workspace = aligned;
        batch.workspace_bytes = bytes;
        plan.run(tensors, batch);
        CHECK(close(data.o, expected));
        plan.run(data.tensors(false, false), batch);
        data.reference_all(false, &expected, &states);
        CHECK(close(data.o, expected));
        for (size_t i = 0; i < 64; i++) CHECK(aligned[bytes + i] == 0x5A);

        batch.workspace_bytes = bytes - 1;
        CHECK(failure_of([&] { plan.run(tensors, batch); }).says("workspace_bytes: got "));
        batch = {};
        batch.workspace = aligned + 4;
        batch.workspace_bytes = bytes;
        CHECK(failure_of([&] { plan.run(tensors, batch); }).says("must be aligned to 64 bytes"));
    }
}

TEST_CASE("asking for the workspace looks at shapes only") {
    Gated data(1, 9, 2, 4, 8, 12);
    halation::Context context(2);
    context.add_kernels(*table());
    halation::Plan plan(context, gated_problem(data));
    float *nothing = nullptr;
    halation::NamedTensors tensors = {{"q", Tensor(nothing, {1, 9, 2, 8})},
                                      {"k", Tensor(nothing, {1, 9, 2, 8})},
                                      {"v", Tensor(nothing, {1, 9, 4, 12})},
                                      {"g", Tensor(nothing, {1, 9, 4})},
                                      {"o", Tensor(nothing, {1, 9, 4, 12})}};
    CHECK(plan.workspace(tensors) == plan.workspace(data.tensors(true, false)));
    tensors[2].second = Tensor(nothing, {1, 9, 4, 11});
    CHECK(failure_of([&] { plan.workspace(tensors); }).says("v: shape is"));
}

TEST_CASE("a kernel that fails is named with its own first message") {
    for (const int threads : {1, 3}) {
        Gated data(2, 1000, 2, 4, 8, 12);
        halation::Context context(threads);
        context.add_kernels(*table());
        halation::Plan plan(context, gated_problem(data));
        seen.reset();
        seen.fail_at = 5;
        const Failure failure = failure_of([&] { plan.run(data.tensors()); });
        CHECK(failure.status == HALATION_INTERNAL_ERROR);
        CHECK(failure.message == "kernel gated_chunkwise: told to fail (code -1)");
        seen.reset();
        plan.run(data.tensors());
        std::vector<float> expected, states;
        data.reference_all(true, &expected, &states);
        CHECK(close(data.o, expected, 1e-3f));
    }
}

TEST_CASE("however many threads there are, a call stays within its workspace") {
    halation::Context context(16);
    context.add_kernels(*table());
    // Wakes all threads, which then compete for the tasks of the small call.
    Gated large(32, 64, 8, 8, 64, 64), small(1, 512, 1, 1, 64, 12), heads(1, 1, 16, 16, 128, 128);
    halation::Plan all(context, gated_problem(large, HALATION_FORM_RECURRENT));
    const auto everything = large.tensors(true, true);
    for (Gated *data : {&small, &heads}) {
        halation::Plan plan(context, gated_problem(*data, HALATION_FORM_RECURRENT));
        const auto tensors = data->tensors(true, false);  // the state lives in the workspace
        halation::Batch batch;
        batch.workspace_bytes = plan.workspace(tensors, batch);
        REQUIRE(batch.workspace_bytes > 0);
        const size_t behind = size_t(1) << 20;
        std::vector<char> memory(batch.workspace_bytes + behind + 64, 0x11);
        char *aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
        batch.workspace = aligned;
        bool within = true;
        for (int round = 0; round < 60; round++) {
            if (round % 20 == 0) all.run(everything);
            plan.run(tensors, batch);
            for (size_t i = batch.workspace_bytes; i < batch.workspace_bytes + behind; i++) within = within && aligned[i] == 0x11;
        }
        CHECK(within);
    }
}
