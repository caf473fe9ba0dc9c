// runtime/metal_device.cpp against the emulated objects: what it sends, what it keeps, what it refuses and says.
#include "device.h"
#include "halation.hpp"
#include "metal_emulator.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <memory>

using namespace halation::runtime;
using metal_emulator::limits;
using metal_emulator::new_device;
using metal_emulator::new_private_buffer;
using metal_emulator::new_queue;
using metal_objects::Object;

namespace {

const char scale_code[] = R"(#include <metal_stdlib>
using namespace metal;
struct scale_args { float by; int first; };
kernel void scale(uint3 tgroup_index [[ threadgroup_position_in_grid ]], uint3 tid_in_tgroup [[ thread_position_in_threadgroup ]],
    const device scale_args *_scalar_args [[ buffer(0) ]], device float *x [[ buffer(1) ]], threadgroup int4* shared [[ threadgroup(0) ]])
{
    x[_scalar_args->first + int(tgroup_index.x * 2 + tid_in_tgroup.x)] *= _scalar_args->by;
}
)";

// Fails a test at whose end there are other objects than at its beginning.
class Balance {
public:
    ~Balance() { CHECK(metal_objects::live_objects() == before_); }

private:
    const size_t before_ = [] {
        int32_t count = 0;
        halation::check(metal_backend.count(&count));  // which makes the device
        return metal_objects::live_objects();
    }();
};

std::unique_ptr<Device> open(Object device = nullptr, Object queue = nullptr) {
    auto options = HALATION_INIT(halation_device_options);
    options.backend = "metal";
    options.native_context = device;
    options.native_queue = queue;
    std::unique_ptr<Device> opened;
    halation::check(metal_backend.open(options, &opened));
    return opened;
}

void release(Object object) {
    metal::api().release(object);
}

bool refused(halation_status status, const std::string &words) {
    INFO("status " << status << ": " << halation_last_message());
    const bool found = status != HALATION_OK && std::string(halation_last_message()).find(words) != std::string::npos;
    CHECK(found);
    return found;
}

// The launch of two blocks of two threads, of the elements from `first` on.
struct Scale {
    const char *code = scale_code, *entry = "scale";
    uint64_t handle = 0;
    float by = 2;
    int32_t first = 0, blocks = 2, threads = 2, shared_bytes = 0;

    halation_status with(halation_status (Device::*what)(const halation_launch &), Device &device) {
        const size_t sizes[] = {8, 4, 4};
        void *const values[] = {&handle, &by, &first};
        const int8_t buffers[] = {1, 0, 0};
        return (device.*what)({code, entry, {blocks, 1, 1}, {threads, 1, 1}, shared_bytes, 3, sizes, values, buffers});
    }
};

struct Pointed {
    Device &device;
    uint64_t handle = 0;

    Pointed(Device &device, void *data, uint64_t offset, uint64_t bytes) : device(device) {
        Location location;
        halation::check(device.locate("x", data, offset, {true, true}, &location));
        halation::check(device.point_to("x", location, bytes, &handle));
    }
    ~Pointed() { device.let_go(handle); }
};

struct Values {
    Device &device;
    void *data = nullptr;

    Values(Device &device, std::vector<float> values) : device(device) {
        halation::check(device.allocate(values.size() * sizeof(float), &data));
        halation::check(device.copy_to(data, 0, values.data(), values.size() * sizeof(float)));
    }
    ~Values() { halation::check(device.release(data)); }
    std::vector<float> read(size_t count) {
        std::vector<float> values(count);
        halation::check(device.copy_from(data, 0, values.data(), count * sizeof(float)));
        return values;
    }
};

}  // namespace

TEST_CASE("Metal's devices, or why there are none", "[metal]") {
    const Balance balance;
    int32_t count = 0;
    REQUIRE(halation_backend_devices("metal", &count) == HALATION_OK);
    CHECK(count == 1);
    auto info = HALATION_INIT(halation_device_info);
    REQUIRE(halation_backend_device("metal", 0, &info) == HALATION_OK);
    CHECK(std::string(info.name) == "emulated Metal");
    CHECK(info.memory_bytes == uint64_t(8) << 30);
    CHECK(info.device.device_type == kDLMetal);
    CHECK(refused(halation_backend_device("metal", 1, &info), "ordinal: got 1; may be 0 to 0, the last metal device"));

    static Object first, second;
    first = new_device("first"), second = new_device("second");
    const auto default_device = metal::api().default_device;
    metal_objects::set_devices(default_device, [] {
        return metal_objects::new_array({metal::api().retain(first), metal::api().retain(second)});
    });
    REQUIRE(halation_backend_device("metal", 1, &info) == HALATION_OK);
    CHECK(std::string(info.name) == "second");
    // A list without devices (a program without a window server) leaves the default one.
    metal_objects::set_devices(default_device, [] { return metal_objects::new_array({}); });
    REQUIRE(halation_backend_device("metal", 0, &info) == HALATION_OK);
    CHECK(std::string(info.name) == "emulated Metal");
    metal_objects::set_devices([]() -> Object { return nullptr; }, nullptr);
    CHECK(refused(halation_backend_devices("metal", &count), "metal is not there: the system has no device for it"));
    metal_objects::set_devices(default_device, nullptr);
    metal_objects::set_fault("no framework");
    CHECK(refused(halation_backend_devices("metal", &count), "metal is not there: no framework"));
    metal_objects::set_fault("");
    release(first), release(second);
}

TEST_CASE("a launch is encoded, committed once and not waited for", "[metal]") {
    const Balance balance;
    const auto device = open();
    Values x(*device, {1, 2, 3, 4, 5, 6, 7, 8});
    Scale scale;
    CHECK(refused(scale.with(&Device::launch, *device), "metal: scale is launched before its code is loaded"));
    halation::check(device->load(scale_code, sizeof scale_code));
    halation::check(device->load(scale_code, sizeof scale_code));
    {
        const Pointed second(*device, x.data, 4, 20), whole(*device, x.data, 0, 32);
        scale.handle = second.handle;
        halation::check(scale.with(&Device::prepare, *device));
        metal_objects::take_messages();
        halation::check(scale.with(&Device::launch, *device));
        scale.handle = whole.handle;
        scale.first = 4, scale.by = 10, scale.shared_bytes = 17;
        halation::check(scale.with(&Device::launch, *device));
        halation::check(device->submit());
    }
    const std::vector<std::string> expected = {"MTLCommandQueue commandBuffer",
                                               "MTLCommandBuffer computeCommandEncoder",
                                               "MTLComputeCommandEncoder setComputePipelineState:",
                                               "MTLComputeCommandEncoder setBytes:length:atIndex:",
                                               "MTLComputeCommandEncoder setBuffer:offset:atIndex:",
                                               "MTLComputeCommandEncoder setThreadgroupMemoryLength:atIndex:",
                                               "MTLComputeCommandEncoder dispatchThreadgroups:threadsPerThreadgroup:",
                                               "MTLComputeCommandEncoder setComputePipelineState:",
                                               "MTLComputeCommandEncoder setBytes:length:atIndex:",
                                               "MTLComputeCommandEncoder setBuffer:offset:atIndex:",
                                               "MTLComputeCommandEncoder setThreadgroupMemoryLength:atIndex:",
                                               "MTLComputeCommandEncoder dispatchThreadgroups:threadsPerThreadgroup:",
                                               "MTLComputeCommandEncoder endEncoding",
                                               "MTLCommandBuffer commit",
                                               "MTLCommandBuffer status"};
    CHECK(metal_objects::take_messages() == expected);
    CHECK(x.read(8) == std::vector<float>{1, 4, 6, 8, 100, 60, 70, 80});  // 5 twice
    scale.blocks = 0;
    halation::check(scale.with(&Device::launch, *device));  // nothing to do
    halation::check(device->submit());
    CHECK(x.read(1)[0] == 1);
}

TEST_CASE("words that are put into the queue may change at once, and come after what is in it", "[metal]") {
    const Balance balance;
    const auto device = open();
    Values x(*device, {1, 1, 1, 1});
    halation::check(device->load(scale_code, sizeof scale_code));
    Scale scale;
    const Pointed pointed(*device, x.data, 0, 16);
    scale.handle = pointed.handle;
    halation::check(scale.with(&Device::launch, *device));
    std::vector<int32_t> words = {0x40800000, 0x40a00000};  // 4 and 5
    halation::check(device->put(x.data, words.data(), 2));
    words = {0, 0};
    halation::check(scale.with(&Device::launch, *device));
    halation::check(device->submit());
    CHECK(x.read(4) == std::vector<float>{8, 10, 4, 4});
}

TEST_CASE("memory of Metal: any offset, ranges, the device's alone", "[metal]") {
    const Balance balance;
    const auto device = open();
    auto *const own = static_cast<Object>(device->info().native_context);
    const Object buffer = new_private_buffer(own, 20);
    const float changed = 9;
    const std::vector<float> values = {1, 2, 3, 4, 5};
    std::vector<float> found(5);
    halation::check(device->copy_to(buffer, 0, values.data(), 20));
    halation::check(device->copy_to(buffer, 8, &changed, 4));
    halation::check(device->copy_from(buffer, 0, found.data(), 20));
    CHECK(found == std::vector<float>{1, 2, 9, 4, 5});
    CHECK(refused(device->copy_to(buffer, 20, &changed, 4), "bytes: got 4 at offset 20; the MTLBuffer has 20"));
    CHECK(refused(device->copy_from(buffer, 21, found.data(), 4), "bytes: got 4 at offset 21; the MTLBuffer has 20"));
    Location location;
    halation::check(device->locate("v", buffer, 8, {true, true}, &location));
    CHECK(location.bytes == 12);
    uint64_t handle = 0;
    CHECK(
        refused(device->point_to("v", location, 16, &handle), "v: takes 16 bytes of its MTLBuffer, which has 12 from there on"));
    CHECK(refused(device->locate("v", buffer, 24, {true, true}, &location), "v: byte_offset is 24; its MTLBuffer has 20 bytes"));
    // Copies are of whole words; what lies beside in a word stays.
    const uint16_t odd[] = {0x1111, 0x2222, 0x3333};
    uint16_t halves[10] = {};
    halation::check(device->copy_to(buffer, 6, odd, 6));
    halation::check(device->copy_to(buffer, 18, odd, 2));
    halation::check(device->copy_from(buffer, 0, halves, 20));
    std::vector<uint16_t> wanted(10);
    const std::vector<float> before = {1, 2, 9, 4, 5};
    std::memcpy(wanted.data(), before.data(), 20);
    wanted[3] = 0x1111, wanted[4] = 0x2222, wanted[5] = 0x3333, wanted[9] = 0x1111;
    CHECK(std::vector<uint16_t>(halves, halves + 10) == wanted);
    halation::check(device->copy_from(buffer, 10, halves, 2));
    CHECK(halves[0] == 0x3333);
    release(buffer);
    const Object short_one = new_private_buffer(own, 6);
    halation::check(device->copy_to(short_one, 0, odd, 2));
    CHECK(refused(device->copy_to(short_one, 4, odd, 2),
                  "bytes: got 2 at offset 4; Metal copies whole words of 4 bytes, and the MTLBuffer has 6"));
    release(short_one);
    const Object other = new_device("other"), of_other = new_private_buffer(other, 16);
    CHECK(refused(device->locate("v", of_other, 0, {true, true}, &location), "v: its MTLBuffer is of another MTLDevice"));
    release(of_other), release(other);

    limits().buffer_bytes = 8;
    void *data = nullptr;
    CHECK(refused(device->allocate(12, &data), "metal: no memory for 12 bytes"));
    CHECK(device->allocate(12, &data) == HALATION_OUT_OF_MEMORY);
    halation::check(device->allocate(8, &data));
    limits().buffer_bytes = 4;
    CHECK(device->copy_to(data, 0, values.data(), 8) == HALATION_OUT_OF_MEMORY);
    CHECK(device->copy_from(data, 0, found.data(), 8) == HALATION_OUT_OF_MEMORY);
    limits() = {};
    halation::check(device->release(data));
}

TEST_CASE("a device and queues of the caller's own", "[metal]") {
    const Balance balance;
    const Object device = new_device("theirs"), other = new_device("other"), queue = new_queue(device),
                 another = new_queue(device), of_other = new_queue(other);
    {
        const auto opened = open(nullptr, queue);
        CHECK(opened->info().native_context == device);
        CHECK(opened->info().native_queue == queue);
        CHECK(std::string(opened->info().name) == "theirs");
        CHECK(refused(opened->set_queue(of_other), "native_queue: is of another MTLDevice than the one that was opened"));
        CHECK(opened->info().native_queue == queue);
        Values x(*opened, {3, 4, 5, 6});
        halation::check(opened->load(scale_code, sizeof scale_code));
        const Pointed pointed(*opened, x.data, 0, 16);
        for (const Object next : {queue, another, Object()}) {
            halation::check(opened->set_queue(next));
            CHECK((next ? opened->info().native_queue == next : opened->info().native_queue != another));
            Scale scale;
            scale.handle = pointed.handle;
            halation::check(scale.with(&Device::launch, *opened));
            halation::check(opened->submit());
            halation::check(opened->synchronize());
        }
        CHECK(x.read(4) == std::vector<float>{24, 32, 40, 48});
        // What has not run is kept by its queue when all else is gone.
        Scale scale;
        scale.handle = pointed.handle;
        halation::check(opened->set_queue(queue));
        halation::check(scale.with(&Device::launch, *opened));
        halation::check(opened->submit());
    }
    CHECK(open(device)->info().native_context == device);
    auto options = HALATION_INIT(halation_device_options);
    options.backend = "metal";
    options.native_context = other;
    options.native_queue = queue;
    std::unique_ptr<Device> none;
    CHECK(refused(metal_backend.open(options, &none), "native_queue: is of another MTLDevice than native_context"));
    options = HALATION_INIT(halation_device_options);
    options.ordinal = 1;
    CHECK(refused(metal_backend.open(options, &none), "ordinal: got 1; there are 1 metal devices"));
    limits().has_queues = false;
    options.ordinal = 0;
    CHECK(refused(metal_backend.open(options, &none), "metal: emulated Metal makes no command queue"));
    limits() = {};
    for (const Object object : {of_other, another, queue, other, device}) release(object);
}

TEST_CASE("what is wrong with code or a launch is told, and nothing of that run is done", "[metal]") {
    const Balance balance;
    const auto device = open();
    static const char broken[] = "#include <metal_stdlib>\nkernel void scale( nonsense )";
    CHECK(refused(device->load(broken, sizeof broken), "metal: emulated Metal did not compile a kernel: "));
    Values x(*device, {1, 2, 3, 4});
    halation::check(device->load(scale_code, sizeof scale_code));
    const Pointed pointed(*device, x.data, 0, 16);
    Scale scale, other, wide;
    scale.handle = other.handle = wide.handle = pointed.handle;
    other.entry = "other";
    CHECK(refused(other.with(&Device::prepare, *device), "metal: a library has no other"));
    limits().pipeline_threads = 1;
    CHECK(refused(wide.with(&Device::prepare, *device),
                  "metal: scale takes blocks of 2 threads; of this function emulated Metal takes up to 1"));
    limits() = {};
    halation::check(scale.with(&Device::launch, *device));
    CHECK(refused(other.with(&Device::launch, *device), "metal: a library has no other"));
    halation::check(device->submit());
    CHECK(x.read(4) == std::vector<float>{1, 2, 3, 4});
    limits().has_encoders = false;
    CHECK(refused(scale.with(&Device::launch, *device), "metal: a command buffer of emulated Metal makes no encoder"));
    limits().has_command_buffers = false;
    CHECK(refused(scale.with(&Device::launch, *device), "metal: the command queue makes no command buffer"));
    CHECK(refused(device->synchronize(), "metal: the command queue makes no command buffer"));
    limits() = {};
    halation::check(scale.with(&Device::launch, *device));
    halation::check(device->submit());
    CHECK(x.read(4) == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("arithmetic is exact on systems that have modes of it, and on those before", "[metal]") {
    const Balance balance;
    auto &methods = metal_objects::class_named("MTLCompileOptions")->methods;
    const auto mode = methods.at("setMathMode:");
    halation::check(open()->load(scale_code, sizeof scale_code));  // which the emulator refuses for fast arithmetic
    methods.erase("setMathMode:");
    halation::check(open()->load(scale_code, sizeof scale_code));
    methods["setMathMode:"] = mode;
}

TEST_CASE("a fault of a kernel shows at the next wait, once", "[metal]") {
    const Balance balance;
    const auto device = open();
    Values x(*device, {1, 2, 3, 4});
    halation::check(device->load(scale_code, sizeof scale_code));
    const Pointed pointed(*device, x.data, 0, 16);
    Scale scale;
    scale.handle = pointed.handle;
    scale.first = 2;  // two elements further than there are
    halation::check(scale.with(&Device::launch, *device));
    halation::check(device->submit());
    CHECK(
        refused(device->synchronize(), "metal: a kernel failed: scale: a thread touches memory that it may not: 0 bytes behind"));
    CHECK(device->synchronize() == HALATION_OK);
}

TEST_CASE("a context on Metal", "[metal]") {
    const Balance balance;
    halation::Context context(1);
    const halation_device_info info = context.open_device("metal");
    CHECK(std::string(info.backend) == "metal");
    const std::vector<float> values = {1, 2, 3};
    std::vector<float> found(3);
    halation::DeviceMemory memory(context, values.data(), 12);
    memory.copy_to(found.data(), 12);
    CHECK(found == values);
    context.synchronize();
    CHECK(refused(halation_context_open_device(context.get(),
                                               [] {
                                                   static auto options = HALATION_INIT(halation_device_options);
                                                   options.backend = "metal";
                                                   return &options;
                                               }()),
                  "has a device already, metal:0"));
}
