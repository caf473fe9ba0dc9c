// Devices by themselves: which there are, memory on them, contexts and queues of the caller's own, code.
#include "device.h"
#include "device_fakes.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>

using namespace device_fakes;
using fakes::failure_of;
using halation::runtime::Device;

namespace {

const char scale_code[] = "__kernel void scale(__global float *x, float by, __local int *shared) { x[get_global_id(0)] *= by; }";

std::unique_ptr<Device> open(void *context = nullptr, void *queue = nullptr) {
    auto options = HALATION_INIT(halation_device_options);
    options.backend = "opencl";
    options.native_context = context;
    options.native_queue = queue;
    std::unique_ptr<Device> device;
    halation::check(halation::runtime::opencl_backend.open(options, &device));
    return device;
}

// A launch of scale over `count` elements.
halation_status scale(Device &device, const char *code, const char *entry, uint64_t handle, float by, int count) {
    const size_t sizes[] = {8, 4};
    void *const values[] = {&handle, &by};
    const int8_t buffers[] = {1, 0};
    const halation_launch launch = {code, entry, {count, 1, 1}, {1, 1, 1}, 0, 2, sizes, values, buffers};
    return device.launch(launch);
}

}  // namespace

TEST_CASE("a backend that is not there says why", "[device]") {
    int32_t count = 7;
    CHECK(failure_of(halation_backend_devices("tpu", &count)).says("backend: got 'tpu'; may be cuda, opencl or metal"));
#ifndef __APPLE__
    CHECK(failure_of(halation_backend_devices("metal", &count))
              .says("metal is not there: /System/Library/Frameworks/Metal.framework"));
#endif
    CHECK(count == 0);
    if (halation_backend_devices("cuda", &count) == HALATION_OK) return;
    const std::string reason = halation_last_message();
    CHECK(reason.find("cuda is not there: ") == 0);
    halation::Context context(1);
    context.add_kernels(*fakes::table());
    const fakes::Failure opened = failure_of([&] { context.open_device("cuda"); });
    CHECK(opened.status == HALATION_UNSUPPORTED);
    CHECK(opened.message == reason);
    halation::Problem problem("gated", 1, 1, 4, 4);
    problem.backend = "cuda";
    auto choice = HALATION_INIT(halation_choice);
    CHECK(halation_can_run(context.get(), &problem, &choice) == HALATION_UNSUPPORTED);
    CHECK(std::string(choice.reason) == "backend: got 'cuda': " + reason);
}

TEST_CASE("a context has the device that was opened, and at most one", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    const halation_device_info info = context->device();
    CHECK(std::string(info.backend) == "opencl");
    CHECK(info.device.device_type == kDLOpenCL);
    CHECK(std::string(info.name) != "");
    CHECK(info.memory_bytes > 0);
    CHECK(info.native_context);
    CHECK(info.native_queue);
    auto asked = HALATION_INIT(halation_device_info);
    REQUIRE(halation_backend_device("opencl", 0, &asked) == HALATION_OK);
    CHECK(std::string(asked.name) == info.name);
    CHECK(failure_of(halation_backend_device("opencl", 99, &asked)).says("ordinal: got 99; may be 0 to "));
    CHECK(failure_of([&] { context->open_device("opencl"); }).says("has a device already, opencl:0"));
    halation::Context none(1);
    none.add_kernels(*fakes::table());
    CHECK(failure_of([&] { none.device(); }).says("has no device; open one with halation_context_open_device"));
    CHECK(failure_of([&] { none.open_device("opencl", -1); }).says("ordinal: got -1"));
    halation::Problem problem("gated", 1, 1, 4, 4);
    problem.backend = "opencl";
    CHECK(failure_of(halation_can_run(none.get(), &problem, nullptr)).says("but the context has no device"));
}

TEST_CASE("memory on a device is written and read at any offset", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    std::vector<float> values = {1, 2, 3, 4, 5}, found(5);
    halation::DeviceMemory memory(*context, values.data(), 20);
    const float changed = 9;
    memory.copy_from(&changed, 4, 8);
    memory.copy_to(found.data(), 20);
    CHECK(found == std::vector<float>{1, 2, 9, 4, 5});
    memory.copy_to(found.data(), 8, 12);
    CHECK(found[1] == 5);
    context->synchronize();
    void *data = &data;
    CHECK(failure_of(halation_device_allocate(context->get(), 0, &data)).says("bytes: got 0"));
    CHECK(!data);
    CHECK(failure_of(halation_device_allocate(context->get(), size_t(1) << 60, &data)).status == HALATION_OUT_OF_MEMORY);
    CHECK(failure_of(halation_device_copy_to(context->get(), nullptr, 0, &changed, 4)).says("data: is NULL"));
    // Outside of it, near and so far that the sum is small again.
    for (const size_t offset : {size_t(17), size_t(20), size_t(-4)}) {
        const std::string words = "bytes: got 4 at offset " + std::to_string(offset) + "; the cl_mem has 20";
        const fakes::Failure to = failure_of(halation_device_copy_to(context->get(), memory.data(), offset, &changed, 4));
        CHECK(to.status == HALATION_INVALID_ARGUMENT);
        CHECK(to.says(words.c_str()));
        const fakes::Failure from = failure_of(halation_device_copy_from(context->get(), memory.data(), offset, found.data(), 4));
        CHECK(from.status == HALATION_INVALID_ARGUMENT);
        CHECK(from.says(words.c_str()));
    }
    memory.copy_to(found.data(), 20);
    CHECK(found == std::vector<float>{1, 2, 9, 4, 5});
    CHECK(halation_device_release(context->get(), nullptr) == HALATION_OK);
}

TEST_CASE("memory that the host may not copy from or to is refused", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    float value = 1;
    const OpenclMemory write_only(*context, 4, 1 | 1 << 7), read_only(*context, 4, 1 | 1 << 8), none(*context, 4, 1 | 1 << 9);
    const char *words = "forbid the host to copy so";
    CHECK(halation_device_copy_to(context->get(), write_only.get(), 0, &value, 4) == HALATION_OK);
    CHECK(failure_of(halation_device_copy_from(context->get(), write_only.get(), 0, &value, 4)).says(words));
    CHECK(halation_device_copy_from(context->get(), read_only.get(), 0, &value, 4) == HALATION_OK);
    CHECK(failure_of(halation_device_copy_to(context->get(), read_only.get(), 0, &value, 4)).says(words));
    CHECK(failure_of(halation_device_copy_from(context->get(), none.get(), 0, &value, 4)).says(words));
    CHECK(failure_of(halation_device_copy_to(context->get(), none.get(), 0, &value, 4)).status == HALATION_INVALID_ARGUMENT);
}

TEST_CASE("device code is loaded once and launched by name; what is wrong with it is told", "[device]") {
    if (!opencl_context()) return;
    const std::unique_ptr<Device> device = open();
    void *data = nullptr;
    halation::check(device->allocate(4096, &data));
    const int32_t words[] = {0x3f800000, 0x40000000};  // 1 and 2
    halation::check(device->put(data, words, 2));
    halation::runtime::Location location;
    halation::check(device->locate("x", data, 0, {true, true}, &location));
    uint64_t handle = 0;
    halation::check(device->point_to("x", location, 8, &handle));
    CHECK(failure_of(scale(*device, scale_code, "scale", handle, 3, 2)).says("launched before its code is loaded"));
    for (int i = 0; i < 2; i++) halation::check(device->load(scale_code, sizeof scale_code));
    halation::check(scale(*device, scale_code, "scale", handle, 3, 2));
    float found[2];
    halation::check(device->copy_from(data, 0, found, 8));
    CHECK(found[0] == 3);
    CHECK(found[1] == 6);
    CHECK(failure_of(scale(*device, scale_code, "other", handle, 3, 2)).says("has no other"));
    static const char broken[] = "__kernel void scale(int x) { nonsense }";
    const fakes::Failure failure = failure_of(device->load(broken, sizeof broken));
    CHECK(failure.status == HALATION_INTERNAL_ERROR);
    CHECK(failure.says("did not compile a kernel"));
    device->let_go(handle);
    halation::check(device->release(data));
}

TEST_CASE("words that are put into the queue may change at once", "[device]") {
    if (!opencl_context()) return;
    const std::unique_ptr<Device> device = open();
    std::vector<int32_t> words(5000), found(words.size());
    std::vector<void *> places(50);
    for (size_t i = 0; i < places.size(); i++) {
        halation::check(device->allocate(words.size() * 4, &places[i]));
        for (size_t w = 0; w < words.size(); w++) words[w] = static_cast<int32_t>(i * words.size() + w);
        halation::check(device->put(places[i], words.data(), words.size()));
    }
    for (size_t i = 0; i < places.size(); i++) {
        halation::check(device->copy_from(places[i], 0, found.data(), found.size() * 4));
        CHECK(found[0] == static_cast<int32_t>(i * words.size()));
        CHECK(found.back() == static_cast<int32_t>(i * words.size() + words.size() - 1));
        halation::check(device->release(places[i]));
    }
}

TEST_CASE("a context and queues of the caller's own", "[device]") {
    const auto context = opencl_context();
    if (!context) return;
    // Those of the first context serve as the caller's: a second queue in it comes from the driver itself.
    const halation_device_info info = context->device();
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    using CreateQueue = void *(*)(void *, void *, uint64_t, int32_t *);
    using GetQueueInfo = int32_t (*)(void *, uint32_t, size_t, void *, size_t *);
    using ReleaseQueue = int32_t (*)(void *);
    const auto create_queue = reinterpret_cast<CreateQueue>(dlsym(library, "clCreateCommandQueue"));
    const auto get_queue_info = reinterpret_cast<GetQueueInfo>(dlsym(library, "clGetCommandQueueInfo"));
    const auto release_queue = reinterpret_cast<ReleaseQueue>(dlsym(library, "clReleaseCommandQueue"));
    REQUIRE((create_queue && get_queue_info && release_queue));
    void *device = nullptr;
    REQUIRE(get_queue_info(info.native_queue, 0x1091, sizeof device, &device, nullptr) == 0);
    int32_t code = -1;
    void *queue = create_queue(info.native_context, device, 0, &code),
         *out_of_order = create_queue(info.native_context, device, 1, &code);
    REQUIRE(queue);

    halation::Context other(1);
    other.add_kernels(*fakes::table());
    other.add_kernels(*table());
    const halation_device_info theirs = other.open_device("opencl", 3, nullptr, queue);
    CHECK(theirs.native_context == info.native_context);
    CHECK(theirs.native_queue == queue);
    CHECK(theirs.device.device_id == 3);
    if (out_of_order) CHECK(failure_of([&] { other.set_queue(out_of_order); }).says("must be an in-order queue"));

    const fakes::Gated data(2, 3, 1, 1, 4, 4);
    std::vector<float> o, states;
    data.reference_all(true, &o, &states);
    halation::Problem problem = fakes::gated_problem(data);
    problem.backend = "opencl";
    halation::Plan plan(other, problem);
    for (void *next : {queue, static_cast<void *>(nullptr), info.native_queue}) {
        other.synchronize();
        other.set_queue(next);
        CHECK((next == nullptr || other.device().native_queue == next));
        OnDevice there(other, data);
        plan.run(there.tensors());
        CHECK(fakes::close(there.read("o"), o));
    }
    halation::Context third(1);
    CHECK(third.open_device("opencl", 0, info.native_context).native_context == info.native_context);
    CHECK(failure_of([&] { third.open_device("opencl", 0, info.native_context, queue); }).says("has a device already"));
    // Of another context.
    halation::Context apart(1);
    apart.open_device("opencl");
    CHECK(failure_of([&] { apart.set_queue(queue); }).says("is of another cl_context or device"));
    OnDevice elsewhere(apart, data);
    halation::NamedTensors tensors = elsewhere.tensors();
    for (auto &[name, tensor] : tensors) tensor = tensor.on({kDLOpenCL, 3});
    CHECK(failure_of([&] { plan.run(tensors); }).says("is of another cl_context than the device that was opened"));
    other.synchronize();
    release_queue(queue);
    if (out_of_order) release_queue(out_of_order);
    dlclose(library);
}

TEST_CASE("a plan and its context may be destroyed in either order", "[device]") {
    auto context = opencl_context();
    if (!context) return;
    const fakes::Gated data(1, 3, 1, 1, 4, 4);
    halation::Problem problem = fakes::gated_problem(data);
    problem.backend = "opencl";
    halation_plan *plan = nullptr;
    halation::check(halation_plan_create(context->get(), &problem, &plan));
    context.reset();
    halation_plan_destroy(plan);
}
