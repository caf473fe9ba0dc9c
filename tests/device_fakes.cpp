#include "device_fakes.h"

#include <HalideRuntime.h>
#include <HalideRuntimeOpenCL.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <dlfcn.h>
#include <iostream>

namespace device_fakes {

Seen seen;

namespace {

// A work item has one value channel of one head of one sequence, and its column of the state. `decays`, exp(g) of each token and
// head, is made by a first kernel: something that lives on the device between two launches.
const char code[] = R"(
typedef __global const float *Input;
typedef __global float *Output;

__kernel void decays_of(Input g, Output decays, __global const int *sequences, int4 gs, int heads, int most, __local int16 *shared) {
    const int h = get_global_id(0), t = get_global_id(1), s = get_global_id(2);
    __global const int *sequence = sequences + 8 * s;
    if (t < sequence[2])
        decays[(s * most + t) * heads + h] = exp(g[h * gs.x + (sequence[1] + t) * gs.y + sequence[0] * gs.z]);
}

__kernel void gated(Input q, Input k, Input v, Input decays, Input initial_state, Output o, Output final_state,
                    __global const int *sequences, int4 qs, int4 ks, int4 vs, int4 os, int4 is, int4 fs, float scale,
                    int key_head_step, int key_heads, int K, int heads, int most, __local int16 *shared) {
    const int x = get_global_id(0), h = get_global_id(1), s = get_global_id(2);
    const int kh = h / key_head_step % key_heads;
    __global const int *sequence = sequences + 8 * s;
    const int batch = sequence[0], first = sequence[1], tokens = sequence[2], from = sequence[3], to = sequence[4];
    float state[64];
    for (int d = 0; d < K; d++)
        state[d] = from < 0 ? 0 : initial_state[x * is.x + d * is.y + h * is.z + from * is.w];
    for (int t = 0; t < tokens; t++) {
        float sum = 0;
        for (int d = 0; d < K && !(sequence[5] & 1); d++) {
            const int key = d * ks.x + kh * ks.y + (first + t) * ks.z + batch * ks.w;
            const int query = d * qs.x + kh * qs.y + (first + t) * qs.z + batch * qs.w;
            state[d] = decays[(s * most + t) * heads + h] * state[d] +
                       k[key] * v[x * vs.x + h * vs.y + (first + t) * vs.z + batch * vs.w];
            sum += q[query] * state[d];
        }
        o[x * os.x + h * os.y + (first + t) * os.z + batch * os.w] = scale * sum;
    }
    if (to >= 0)
        for (int d = 0; d < K; d++) final_state[x * fs.x + d * fs.y + h * fs.z + to * fs.w] = state[d];
}
)";

void *state_of_library = nullptr;

struct Int4 {
    int32_t stride[4] = {};
    explicit Int4(const halide_buffer_t &buffer) {
        for (int d = 0; d < buffer.dimensions; d++) stride[d] = buffer.dim[d].stride;
    }
};

// The three lists that describe arguments of a launch.
struct LaunchArguments {
    std::vector<size_t> sizes;
    std::vector<void *> values;
    std::vector<int8_t> buffers;

    LaunchArguments &buffer(halide_buffer_t &buffer) {
        sizes.push_back(8), values.push_back(&buffer), buffers.push_back(1);
        return *this;
    }
    template<typename T> LaunchArguments &value(T &value) {
        sizes.push_back(sizeof value), values.push_back(&value), buffers.push_back(0);
        return *this;
    }
    int launch(void *user, const char *entry, int x, int y, int z) {
        sizes.push_back(0), values.push_back(nullptr), buffers.push_back(0);
        return halide_opencl_run(user, state_of_library, entry, x, y, z, 1, 1, 1, 0, sizes.data(), values.data(), buffers.data());
    }
};

// argv: context, q, k, v, g, scale, sequences, key_head_step, key_heads, initial_state, o, final_state, most_tokens
int run(void **argv, bool chunkwise) {
    void *user = *static_cast<void **>(argv[0]);
    const auto buffer = [&](int i) -> halide_buffer_t & { return *static_cast<halide_buffer_t *>(argv[i]); };
    halide_buffer_t &q = buffer(1), &k = buffer(2), &v = buffer(3), &g = buffer(4), &sequences = buffer(6), &initial = buffer(9),
                    &o = buffer(10), &final = buffer(11);
    auto &scale = *static_cast<float *>(argv[5]);
    auto &step = *static_cast<int32_t *>(argv[7]), &key_heads = *static_cast<int32_t *>(argv[8]);
    if (*static_cast<int32_t *>(argv[12]) != o.dim[2].extent) return -5;
    // As the code that Halide makes has it.
    int64_t elements = 1;
    for (const halide_dimension_t &dim : {o.dim[0], o.dim[1], o.dim[2], o.dim[3]}) {
        elements *= dim.extent;
        if (std::max(elements, int64_t(1) * dim.extent * std::abs(dim.stride)) > INT32_MAX) return -6;
    }
    seen.calls++;
    seen.chunkwise_calls += chunkwise;
    seen.entries += o.dim[3].extent;
    seen.most_tokens = std::max(seen.most_tokens, o.dim[2].extent);
    if (!seen.fail && halide_opencl_initialize_kernels(user, &state_of_library, code, sizeof code) != 0) return -1;
    static int other = 0;
    if (seen.fail) state_of_library = &other;

    int32_t heads = o.dim[1].extent, most = o.dim[2].extent, S = o.dim[3].extent, K = q.dim[0].extent;
    halide_dimension_t dims[] = {{0, heads, 1}, {0, most, heads}, {0, S, heads * most}};
    halide_buffer_t decays{};
    decays.type = halide_type_t(halide_type_float, 32);
    decays.dimensions = 3;
    decays.dim = dims;
    const auto *interface = halide_opencl_device_interface();
    if (!interface || halide_device_malloc(user, &decays, interface) != 0) return -2;
    for (halide_buffer_t *each : {&q, &k, &v, &g, &sequences, &initial, &o, &final})
        if (halide_copy_to_device(user, each, interface) != 0) return -3;
    Int4 qs(q), ks(k), vs(v), gs(g), os(o), is(initial), fs(final);
    LaunchArguments first, second;
    first.buffer(g).buffer(decays).buffer(sequences).value(gs).value(heads).value(most);
    int result = first.launch(user, "decays_of", heads, most, S);
    second.buffer(q).buffer(k).buffer(v).buffer(decays).buffer(initial).buffer(o).buffer(final).buffer(sequences);
    second.value(qs).value(ks).value(vs).value(os).value(is).value(fs).value(scale).value(step).value(key_heads);
    second.value(K).value(heads).value(most);
    if (result == 0) result = second.launch(user, "gated", o.dim[0].extent, heads, S);
    if (halide_device_free(user, &decays) != 0) return -4;
    halide_opencl_finalize_kernels(user, state_of_library);
    return result;
}

int run_recurrent(void **argv) {
    return run(argv, false);
}
int run_chunkwise(void **argv) {
    return run(argv, true);
}

const halide_filter_metadata_t *metadata() {
    constexpr halide_type_t f32(halide_type_float, 32), i32(halide_type_int, 32), handle(halide_type_handle, 64);
    constexpr int in = halide_argument_kind_input_buffer, out = halide_argument_kind_output_buffer;
    constexpr int scalar = halide_argument_kind_input_scalar;
    const auto argument = [](const char *name, int kind, int dims, halide_type_t type) {
        return halide_filter_argument_t{name, kind, dims, type, nullptr, nullptr, nullptr, nullptr, nullptr};
    };
    static const halide_filter_argument_t arguments[] = {argument("__user_context", scalar, 0, handle),
                                                         argument("q", in, 4, f32),
                                                         argument("k", in, 4, f32),
                                                         argument("v", in, 4, f32),
                                                         argument("g", in, 3, f32),
                                                         argument("scale", scalar, 0, f32),
                                                         argument("sequences", in, 2, i32),
                                                         argument("key_head_step", scalar, 0, i32),
                                                         argument("key_heads", scalar, 0, i32),
                                                         argument("initial_state", in, 4, f32),
                                                         argument("o", out, 4, f32),
                                                         argument("final_state", out, 4, f32),
                                                         argument("most_tokens", scalar, 0, i32)};
    static const halide_filter_metadata_t made = {1, 13, arguments, "opencl", "fake"};
    return &made;
}

constexpr DLDataType f = halation::float32;
const halation_kernel kernels[] = {{"gated_recurrent_opencl", "gated", "opencl", "gpu", nullptr, HALATION_FORM_RECURRENT, f, f, 0,
                                    0, 1, 0, 0, run_recurrent, metadata},
                                   {"gated_chunkwise_opencl", "gated", "opencl", "gpu", nullptr, HALATION_FORM_CHUNKWISE, f, f, 0,
                                    0, 16, 0, 0, run_chunkwise, metadata}};

}  // namespace

const halation_kernel_table *table() {
    static const halation_kernel_table made = {
        sizeof(halation_kernel_table), HALATION_VERSION, "device fakes", nullptr, 0, kernels, 2};
    return &made;
}

std::unique_ptr<halation::Context> opencl_context() {
    int32_t count = 0;
    if (halation_backend_devices("opencl", &count) != HALATION_OK) {
        const std::string reason = halation_last_message();
        if (std::getenv("HALATION_REQUIRE_OPENCL")) FAIL("HALATION_REQUIRE_OPENCL is set, but " << reason);
        std::cout << "skipped: " << reason << "\n";
        return nullptr;
    }
    auto context = std::make_unique<halation::Context>(1);
    context->add_kernels(*fakes::table());
    context->add_kernels(*table());
    context->open_device("opencl");
    seen = {};
    return context;
}

OpenclMemory::OpenclMemory(const halation::Context &context, size_t bytes, uint64_t flags) {
    using CreateBuffer = void *(*)(void *, uint64_t, size_t, void *, int32_t *);
    const auto create = reinterpret_cast<CreateBuffer>(dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), "clCreateBuffer"));
    REQUIRE(create);
    int32_t code = -1;
    memory_ = create(context.device().native_context, flags, bytes, nullptr, &code);
    REQUIRE(memory_);
}

OpenclMemory::~OpenclMemory() {
    using ReleaseMemory = int32_t (*)(void *);
    reinterpret_cast<ReleaseMemory>(dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), "clReleaseMemObject"))(memory_);
}

OnDevice::OnDevice(const halation::Context &context, const fakes::Gated &data) : context_(context) {
    const auto place = [&](const char *name, const std::vector<float> &values, std::vector<int64_t> shape) {
        const size_t bytes = std::max<size_t>(values.size() * sizeof(float), 1);
        halation::DeviceMemory memory(context, bytes);
        if (!values.empty()) memory.copy_from(values.data(), bytes);
        placed_.push_back({name, std::move(memory), std::move(shape), values.size()});
    };
    const int64_t B = data.B, T = data.T, H = data.H, HV = data.HV, K = data.K, V = data.V;
    place("q", data.q, {B, T, H, K});
    place("k", data.k, {B, T, H, K});
    place("v", data.v, {B, T, HV, V});
    place("g", data.g, {B, T, HV});
    place("o", data.o, {B, T, HV, V});
    place("initial_state", data.initial, {B, HV, K, V});
    place("final_state", data.final, {B, HV, K, V});
}

halation::Tensor OnDevice::named(const char *name) const {
    for (const Placed &placed : placed_)
        if (placed.name == name)
            return halation::Tensor(placed.memory.data(), halation::float32, placed.shape).on(context_.device().device);
    throw std::runtime_error(name);
}

halation::NamedTensors OnDevice::tensors(bool with_initial, bool with_final) const {
    halation::NamedTensors all;
    for (const Placed &placed : placed_) {
        if (placed.name == "initial_state" && !with_initial) continue;
        if (placed.name == "final_state" && !with_final) continue;
        all.emplace_back(placed.name, named(placed.name.c_str()));
    }
    return all;
}

halation::NamedTensors OnDevice::tensors_with(const char *name, halation::Tensor own) const {
    halation::NamedTensors all = tensors();
    for (auto &[known, tensor] : all)
        if (known == name) tensor = own;
    return all;
}

std::vector<float> OnDevice::read(const char *name) const {
    for (const Placed &placed : placed_) {
        if (placed.name != name) continue;
        std::vector<float> values(placed.count);
        placed.memory.copy_to(values.data(), values.size() * sizeof(float));
        return values;
    }
    throw std::runtime_error(name);
}

}  // namespace device_fakes
