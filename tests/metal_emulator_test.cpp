// The emulator of Metal by itself: it must notice what a GPU would do otherwise, or not at all.
#include "device.h"
#include "halation.hpp"
#include "metal_emulator.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace halation::runtime;
using metal_emulator::Order;

namespace {

// Around a body, what Halide writes around its own; `x` is a buffer, `count` a scalar.
std::string kernel(const std::string &body, const std::string &more_arguments = "", int threadgroup_at = 0) {
    return "#include <metal_stdlib>\nusing namespace metal;\n"
           "struct turn_args {\nint count;\nuchar flag;\n};\n"
           "kernel void turn(\nuint3 tgroup_index [[ threadgroup_position_in_grid ]],\n"
           "uint3 tid_in_tgroup [[ thread_position_in_threadgroup ]],\nconst device turn_args *_scalar_args [[ buffer(0) ]],\n"
           " device float *x [[ buffer(1) ]]" +
           more_arguments + ",\n threadgroup int4* shared [[ threadgroup(" + std::to_string(threadgroup_at) +
           ") ]])\n{\nint count = _scalar_args->count;\nint t = tid_in_tgroup.x;\n" + body + "}\n";
}

// The rows of threads of a block in turn: thread t takes what thread t + 1 left in shared memory.
const std::string turn = "threadgroup float *s = (threadgroup float *)shared;\n"
                         "s[t] = x[t];\n"
                         "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                         "float next = s[(t + 1) % count];\n"
                         "x[t] = next;\n";
const std::string barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n";

std::string without(std::string text, const std::string &part) {
    return text.erase(text.find(part), part.size());
}

struct Outcome {
    halation_status status;
    std::string message;
    std::vector<float> x;
};

struct Sizes {
    int threads = 8, shared_bytes = 64;
    size_t elements = 8, buffers = 1, scalars = 2, offset = 0;
};

Outcome outcome(halation_status status) {
    return {status, halation_last_message(), {}};
}

Outcome run(const std::string &code, const Sizes &sizes = {}) {
    auto options = HALATION_INIT(halation_device_options);
    options.backend = "metal";
    std::unique_ptr<Device> device;
    halation::check(metal_backend.open(options, &device));
    if (const halation_status status = device->load(code.c_str(), code.size() + 1)) return outcome(status);
    std::vector<float> x(sizes.elements);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i);
    void *data = nullptr;
    halation::check(device->allocate(x.size() * sizeof(float), &data));
    halation::check(device->copy_to(data, 0, x.data(), x.size() * sizeof(float)));
    Location location;
    halation::check(device->locate("x", data, sizes.offset, {true, true}, &location));
    uint64_t handle = 0;
    halation::check(device->point_to("x", location, x.size() * sizeof(float) - sizes.offset, &handle));
    int32_t count = sizes.threads;
    uint8_t flag = 1;
    std::vector<size_t> bytes(sizes.buffers, 8);
    std::vector<void *> values(sizes.buffers, &handle);
    std::vector<int8_t> is_buffer(sizes.buffers, 1);
    if (sizes.scalars > 0) bytes.push_back(4), values.push_back(&count), is_buffer.push_back(0);
    if (sizes.scalars > 1) bytes.push_back(1), values.push_back(&flag), is_buffer.push_back(0);
    const halation_launch launch = {code.c_str(),       "turn",
                                    {1, 1, 1},          {sizes.threads, 1, 1},
                                    sizes.shared_bytes, static_cast<int32_t>(bytes.size()),
                                    bytes.data(),       values.data(),
                                    is_buffer.data()};
    Outcome found;
    try {
        found = outcome(device->launch(launch));
        if (found.status == HALATION_OK) found = outcome(device->copy_from(data, 0, x.data(), x.size() * sizeof(float)));
    } catch (const metal_objects::Violation &violation) {
        found = {HALATION_INTERNAL_ERROR, violation.what(), {}};
    }
    found.x = x;
    device->let_go(handle);
    halation::check(device->release(data));
    return found;
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_refused(const Outcome &outcome, const std::string &words) {
    INFO(outcome.message);
    CHECK(outcome.status != HALATION_OK);
    CHECK(outcome.message.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("threads meet at barriers, in any order", "[metal]") {
    for (const char *order : {"forward", "reverse", "1", "2"}) {
        metal_emulator::set_order(Order::named(order));
        const Outcome sound = run(kernel(turn));
        INFO(order << ": " << sound.message);
        CHECK(sound.status == HALATION_OK);
        CHECK(sound.x == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 0});
    }
    metal_emulator::set_order({});
    CHECK_THROWS_WITH(Order::named("sideways"), "order of threads: got 'sideways'; may be forward, reverse or a number");
}

TEST_CASE("a barrier that is missing changes results in every order", "[metal]") {
    for (const char *order : {"forward", "reverse", "1"}) {
        metal_emulator::set_order(Order::named(order));
        const Outcome spoilt = run(kernel(without(turn, barrier)));
        CHECK(spoilt.status == HALATION_OK);
        CHECK(spoilt.x != std::vector<float>{1, 2, 3, 4, 5, 6, 7, 0});
        metal_emulator::take_barriers_met();
        run(kernel(turn));
        const std::set<int> met = metal_emulator::take_barriers_met();
        CHECK(met.size() == 1);
        metal_emulator::leave_out_barriers(met);
        const Outcome left_out = run(kernel(turn));
        CHECK(left_out.status == HALATION_OK);
        CHECK(same_bits(left_out.x, spoilt.x));
        metal_emulator::leave_out_barriers({});
    }
    metal_emulator::set_order({});
}

TEST_CASE("barriers that not all threads come to are told", "[metal]") {
    check_refused(run(kernel("if (t != 3) {\n" + barrier + "}\n")), "a thread has ended while another waits at a barrier");
    check_refused(run(kernel("if (t != 3) {\n" + barrier + "} else {\n" + barrier + "}\n")), "wait at different barriers");
}

TEST_CASE("barriers of threads alone are refused", "[metal]") {
    check_refused(run(kernel("threadgroup_barrier(mem_flags::mem_none);\n")), "mem_none");
    for (const char *memory :
         {"mem_flags::mem_device", "mem_flags::mem_threadgroup", "mem_flags::mem_device | mem_flags::mem_threadgroup"})
        CHECK(run(kernel("threadgroup_barrier(" + std::string(memory) + ");\n")).status == HALATION_OK);
}

TEST_CASE("memory outside of a buffer is told", "[metal]") {
    for (const std::string &synchronized : {std::string(), barrier}) {
        check_refused(run(kernel(synchronized + "x[t] = x[count + t];\n")), "0 bytes behind a buffer of 32");
        check_refused(run(kernel(synchronized + "x[t + 1] = 1;\n")), "touches memory that it may not");
        check_refused(run(kernel(synchronized + "x[t - 1] = 1;\n")), "writes before buffer 1");
        check_refused(run(kernel(synchronized + "x[t - 1500] = 1;\n")), "bytes before a buffer of 32");
        check_refused(run(kernel(synchronized + "((threadgroup float *)shared)[16 + t] = 1;\n")),
                      "touches memory that it may not");
        check_refused(run(kernel(synchronized + "((threadgroup float *)shared)[t - 1] = 1;\n")),
                      "writes before its threadgroup memory");
    }
    CHECK(run(kernel("x[t] = x[t] + 1;\n")).status == HALATION_OK);  // it goes on afterwards
}

TEST_CASE("threadgroup memory is full of NaN", "[metal]") {
    const Outcome spoilt = run(kernel("x[t] = ((threadgroup float *)shared)[t];\n"));
    CHECK(spoilt.status == HALATION_OK);
    for (const float value : spoilt.x) CHECK(value != value);
}

TEST_CASE("what Apple's GPUs have not is refused", "[metal]") {
    Sizes many, much;
    many.threads = 1025;
    many.elements = 1025;
    check_refused(run(kernel("x[t] = 1;\n"), many), "turn is dispatched with 1025 threads in a threadgroup");
    many.threads = 1024;
    CHECK(run(kernel("x[t] = 1;\n"), many).status == HALATION_OK);
    much.shared_bytes = 32769;
    check_refused(run(kernel(turn), much), "turn is dispatched with 32784 bytes of threadgroup memory");
    much.shared_bytes = 32768;
    CHECK(run(kernel(turn), much).status == HALATION_OK);
    std::string more;
    for (int i = 2; i <= 31; i++) more += ",\n device float *x" + std::to_string(i) + " [[ buffer(" + std::to_string(i) + ") ]]";
    Sizes wide;
    wide.buffers = 31;
    check_refused(run(kernel("x[t] = 1;\n", more), wide), "makes no pipeline of turn: the function has 32 buffers");
    check_refused(run(kernel("double y = x[t];\nx[t] = y;\n")), "did not compile a kernel: the compiler of the host refuses it");
    check_refused(run(kernel("long y = x[t];\nx[t] = y;\n")), "did not compile a kernel");
}

TEST_CASE("arguments are bound as the text numbers them", "[metal]") {
    const Outcome flags = run(kernel("x[t] = _scalar_args->flag + count;\n"));
    CHECK(flags.x == std::vector<float>(8, 9));
    check_refused(run(kernel(turn, ",\n device float *y [[ buffer(3) ]]")),
                  "arguments are not numbered as the emulator binds them");
    check_refused(run(kernel(turn, "", 1)), "arguments are not numbered as the emulator binds them");
    Sizes none, two;
    none.scalars = 0;
    two.buffers = 2;
    check_refused(run(kernel(turn), none), "turn has 2 buffers, and buffer 1 is not given");
    check_refused(run(kernel(turn), two), "turn has 2 buffers, and buffer 2 is given");
    Sizes odd;
    odd.offset = 2;
    check_refused(run(kernel(turn), odd), "turn has elements of 4 bytes in buffer 1, and is given offset 2");
    none.scalars = 1;
    check_refused(run(kernel(turn), none), "the scalars of turn are a struct of 8 bytes, and given as 4");
    check_refused(run("int nothing;\n"), "there is no kernel in it");
}
