// The CUDA device by itself, with PTX by hand, where there is one; HALATION_REQUIRE_CUDA makes it a failure that there is none.
#include "device.h"
#include "halation.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iostream>

using halation::check;
using halation::runtime::Device;

namespace {

// x[block] = by * x[block], by way of the word at byte `at` of the shared memory.
const char code[] = R"(
.version 6.0
.target sm_50
.address_size 64
.extern .shared .align 16 .b8 shared[];
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 at) {
    .reg .b32 %block, %at;
    .reg .f32 %value, %by;
    .reg .b64 %x, %offset;
    ld.param.u64 %x, [x];
    cvta.to.global.u64 %x, %x;
    ld.param.f32 %by, [by];
    ld.param.u32 %at, [at];
    mov.u32 %block, shared;
    add.u32 %at, %at, %block;
    mov.u32 %block, %ctaid.x;
    mul.wide.u32 %offset, %block, 4;
    add.u64 %x, %x, %offset;
    ld.global.f32 %value, [%x];
    st.shared.f32 [%at], %value;
    ld.shared.f32 %value, [%at];
    mul.f32 %value, %value, %by;
    st.global.f32 [%x], %value;
    ret;
}
)";

struct Driver {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    template<typename... Values> int call(const char *name, Values... values) const {
        const auto function = reinterpret_cast<int (*)(Values...)>(dlsym(library, name));
        REQUIRE(function);
        return function(values...);
    }
};

bool there() {
    int32_t count = 0;
    if (halation_backend_devices("cuda", &count) == HALATION_OK) return true;
    const std::string reason = halation_last_message();
    if (std::getenv("HALATION_REQUIRE_CUDA")) FAIL("HALATION_REQUIRE_CUDA is set, but " << reason);
    std::cout << "skipped: " << reason << "\n";
    return false;
}

std::unique_ptr<Device> open(void *context = nullptr, void *queue = nullptr) {
    auto options = HALATION_INIT(halation_device_options);
    options.backend = "cuda";
    options.native_context = context;
    options.native_queue = queue;
    std::unique_ptr<Device> device;
    check(halation::runtime::cuda_backend.open(options, &device));
    return device;
}

struct Scale {
    uint64_t x;
    float by;
    uint32_t at;
    size_t sizes[3] = {8, 4, 4};
    void *values[3] = {&x, &by, &at};
    int8_t buffers[3] = {1, 0, 0};
    halation_launch launch(int count, int shared) {
        return {code, "scale", {count, 1, 1}, {1, 1, 1}, shared, 3, sizes, values, buffers};
    }
};

std::vector<float> read(Device &device, void *data, size_t count) {
    std::vector<float> values(count);
    check(device.copy_from(data, 0, values.data(), count * 4));
    return values;
}

}  // namespace

TEST_CASE("a CUDA device loads, launches, puts and copies", "[cuda]") {
    if (!there()) return;
    const std::unique_ptr<Device> device = open();
    CHECK(device->info().device.device_type == kDLCUDA);
    void *data = nullptr;
    check(device->allocate(4 * 5000, &data));
    std::vector<float> numbers(5000);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = static_cast<float>(i);
    std::vector<int32_t> words(numbers.size());
    std::memcpy(words.data(), numbers.data(), words.size() * 4);
    for (const size_t count : {1, 96, 97, 960, 961, 5000}) {
        check(device->copy_to(data, 0, std::vector<float>(5000, -1).data(), 4 * 5000));
        check(device->put(data, words.data(), count));
        const std::vector<float> found = read(*device, data, 5000);
        CHECK(std::equal(found.begin(), found.begin() + static_cast<int64_t>(count), numbers.begin()));
        CHECK((count == 5000 || found[count] == -1));
    }
    for (int i = 0; i < 2; i++) check(device->load(code, sizeof code));
    Scale scale{reinterpret_cast<uintptr_t>(data), 3, 100 << 10};
    for (const int shared : {(100 << 10) + 16, (160 << 10)}) check(device->launch(scale.launch(3, shared)));  // above 48 KB
    CHECK(read(*device, data, 4) == std::vector<float>{0, 9, 18, 3});
    CHECK(device->launch(scale.launch(3, 1 << 20)) == HALATION_UNSUPPORTED);
    CHECK(std::string(halation_last_message()).find("1048576 bytes of shared memory in a block, more than the device has") !=
          std::string::npos);
    CHECK(device->launch(scale.launch(0, 0)) == HALATION_OK);
    check(device->release(data));
    CHECK(device->allocate(size_t(1) << 50, &data) == HALATION_OUT_OF_MEMORY);
    CHECK(device->load("nonsense", 9) == HALATION_INTERNAL_ERROR);
}

TEST_CASE("a graph keeps what was put while it was captured", "[cuda]") {
    if (!there()) return;
    const Driver driver;
    const std::unique_ptr<Device> first = open();
    void *context = first->info().native_context, *stream = nullptr, *graph = nullptr, *executable = nullptr, *popped;
    REQUIRE(driver.call("cuCtxPushCurrent_v2", context) == 0);
    REQUIRE(driver.call("cuStreamCreate", &stream, 1u) == 0);
    const std::unique_ptr<Device> device = open(nullptr, stream);
    CHECK(device->info().native_context == context);
    CHECK(device->info().device.device_id == first->info().device.device_id);
    void *data = nullptr;
    check(device->allocate(64, &data));
    check(device->load(code, sizeof code));
    CHECK(!device->capturing());
    REQUIRE(driver.call("cuStreamBeginCapture_v2", stream, 0) == 0);
    CHECK(device->capturing());
    const float three = 3;
    int32_t word;
    std::memcpy(&word, &three, 4);
    check(device->put(data, &word, 1));
    word = 0;
    Scale scale{reinterpret_cast<uintptr_t>(data), 2, 0};
    check(device->launch(scale.launch(1, 16)));
    REQUIRE(driver.call("cuStreamEndCapture", stream, &graph) == 0);
    REQUIRE(driver.call("cuGraphInstantiateWithFlags", &executable, graph, 0ull) == 0);
    CHECK(!device->capturing());
    for (int i = 0; i < 2; i++) {
        check(device->put(data, &word, 1));
        REQUIRE(driver.call("cuGraphLaunch", executable, stream) == 0);
        CHECK(read(*device, data, 1)[0] == 6);
    }
    check(device->release(data));
    driver.call("cuGraphExecDestroy", executable);
    driver.call("cuGraphDestroy", graph);
    driver.call("cuStreamDestroy_v2", stream);
    driver.call("cuCtxPopCurrent_v2", &popped);
}
