#include "runtime_fakes.h"

#include <HalideRuntime.h>

#include <algorithm>

namespace fakes {

Seen seen;

void Seen::reset() {
    calls = chunkwise_calls = most_heads = most_values = most_tokens = 0;
    least_values = 1 << 30;
    fail_at = -1;
}

namespace {

void raise(std::atomic<int> &to, int value) {
    int now = to.load();
    while (now < value && !to.compare_exchange_weak(now, value)) {
    }
}

void lower(std::atomic<int> &to, int value) {
    int now = to.load();
    while (now > value && !to.compare_exchange_weak(now, value)) {
    }
}

// A buffer as the kernels index it, innermost first. Checks what a generated kernel would check.
struct View {
    halide_buffer_t *buffer;
    explicit View(void *argument) : buffer(static_cast<halide_buffer_t *>(argument)) {}
    int extent(int d) const { return buffer->dim[d].extent; }
    float &at(int x, int y = 0, int z = 0) const {
        const int index[3] = {x, y, z};
        int64_t offset = 0;
        for (int d = 0; d < buffer->dimensions; d++) offset += int64_t(index[d]) * buffer->dim[d].stride;
        return reinterpret_cast<float *>(buffer->host)[offset];
    }
    bool sound() const { return buffer->dim[0].stride == 1 && buffer->dim[0].min == 0 && buffer->type.bits == 32; }
};

halation_kernel_context *context_of(void **argv) {
    return *static_cast<halation_kernel_context **>(argv[0]);
}

int refuse(void **argv, const char *message) {
    context_of(argv)->error(context_of(argv), message);
    context_of(argv)->error(context_of(argv), "a second message, which must not be the one that is told");
    return -1;
}

// Scratch as a generated kernel takes it: several blocks, contents not to be relied on.
struct Block {
    halation_kernel_context *context;
    float *data;
    Block(halation_kernel_context *from, size_t count)
        : context(from), data(static_cast<float *>(from->allocate(from, count * sizeof(float)))) {
        if (data) std::fill(data, data + count, std::nanf(""));
    }
    ~Block() {
        if (data) context->release(context, data);
    }
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
};

bool fails_now() {
    return seen.fail_at.load() >= 0 && seen.fail_at.fetch_sub(1) == 0;
}

void see(int tokens, int heads, int values) {
    seen.calls++;
    raise(seen.most_heads, heads);
    raise(seen.most_values, values);
    lower(seen.least_values, values);
    raise(seen.most_tokens, tokens);
}

enum class Decay { gate, gamma, none };

// argv: context, q, k, v, [g or gamma], scale, initial_state, [initial_normalizer], o, final_state, [final_normalizer]
template<Decay decay, bool normalized> int run_rows(void **argv) {
    int at = 1;
    const View q(argv[at++]), k(argv[at++]), v(argv[at++]);
    const View gate(decay == Decay::none ? argv[1] : argv[at++]);
    const float scale = *static_cast<float *>(argv[at++]);
    const View initial(argv[at++]);
    const View initial_z(normalized ? argv[at++] : argv[1]);
    const View o(argv[at++]), final(argv[at++]);
    const View final_z(normalized ? argv[at++] : argv[1]);
    const int V = o.extent(0), G = o.extent(1), T = o.extent(2), K = q.extent(0);
    see(T, G, V);
    if (fails_now()) return refuse(argv, "told to fail");
    for (const View &view : {q, k, v, gate, initial, o, final})
        if (!view.sound()) return refuse(argv, "a buffer is not as a kernel expects it");
    if (q.extent(1) != G || k.extent(2) != T || v.extent(0) != V || initial.extent(2) != G || final.extent(1) != K)
        return refuse(argv, "extents do not agree");
    Block state(context_of(argv), static_cast<size_t>(K)), z(context_of(argv), static_cast<size_t>(K)),
        unused(context_of(argv), 1000);
    if (!state.data || !z.data || !unused.data) return refuse(argv, "out of memory");
    for (int h = 0; h < G; h++) {
        for (int x = 0; x < V; x++) {
            for (int d = 0; d < K; d++) state.data[d] = initial.at(x, d, h);
            for (int d = 0; d < K && normalized; d++) z.data[d] = initial_z.at(d, h);
            for (int t = 0; t < T; t++) {
                const float a = decay == Decay::gate ? std::exp(gate.at(h, t)) : decay == Decay::gamma ? gate.at(h) : 1;
                float sum = 0, norm = 0;
                for (int d = 0; d < K; d++) {
                    state.data[d] = a * state.data[d] + k.at(d, h, t) * v.at(x, h, t);
                    sum += q.at(d, h, t) * state.data[d];
                    if (normalized) norm += q.at(d, h, t) * (z.data[d] += k.at(d, h, t));
                }
                o.at(x, h, t) = scale * (normalized ? (norm == 0 ? 0 : sum / norm) : sum);
            }
            for (int d = 0; d < K; d++) final.at(x, d, h) = state.data[d];
        }
        for (int d = 0; d < K && normalized; d++) final_z.at(d, h) = z.data[d];
    }
    return 0;
}

int run_gated_recurrent(void **argv) {
    return run_rows<Decay::gate, false>(argv);
}
int run_gated_chunkwise(void **argv) {
    seen.chunkwise_calls++;
    return run_rows<Decay::gate, false>(argv);
}
int run_retention(void **argv) {
    return run_rows<Decay::gamma, false>(argv);
}
int run_normalized(void **argv) {
    return run_rows<Decay::none, true>(argv);
}

// argv: context, x, A, skip, gain, initial_state, o, final_state; state (V, K) += A x, o = gain (sum over K) + skip x
int run_plain(void **argv) {
    const View x(argv[1]), A(argv[2]), skip(argv[3]), gain(argv[4]), initial(argv[5]), o(argv[6]), final(argv[7]);
    const int V = o.extent(0), T = o.extent(1), K = A.extent(0);
    see(T, 1, V);
    for (int c = 0; c < V; c++)
        for (int t = 0; t < T; t++) {
            float sum = 0;
            for (int d = 0; d < K; d++) {
                final.at(c, d) = (t == 0 ? initial.at(c, d) : final.at(c, d)) + A.at(d, c) * x.at(c, t);
                sum += final.at(c, d);
            }
            o.at(c, t) = gain.at(c) * sum + skip.at(c) * x.at(c, t);
        }
    return 0;
}

// argv: context, q, k, v, causal, o; no softmax: o = sum over the tokens seen of (q . k) v
int run_cached(void **argv) {
    const View q(argv[1]), k(argv[2]), v(argv[3]), o(argv[5]);
    const bool causal = *static_cast<int32_t *>(argv[4]) != 0;
    const int V = o.extent(0), G = o.extent(1), T = o.extent(2), K = q.extent(0), S = k.extent(2);
    see(T, G, V);
    for (int h = 0; h < G; h++)
        for (int t = 0; t < T; t++)
            for (int c = 0; c < V; c++) {
                float sum = 0;
                for (int s = 0; s < (causal ? S - T + t + 1 : S); s++) {
                    float dot = 0;
                    for (int d = 0; d < K; d++) dot += q.at(d, h, t) * k.at(d, h, s);
                    sum += dot * v.at(c, h, s);
                }
                o.at(c, h, t) = sum;
            }
    return 0;
}

// ---- metadata ------------------------------------------------------------------------------------------------

constexpr halide_type_t f32(halide_type_float, 32), handle(halide_type_handle, 64), i32(halide_type_int, 32);
constexpr int in = halide_argument_kind_input_buffer, out = halide_argument_kind_output_buffer;
constexpr int scalar = halide_argument_kind_input_scalar;

halide_filter_argument_t argument(const char *name, int kind, int dims, halide_type_t type = f32) {
    return {name, kind, dims, type, nullptr, nullptr, nullptr, nullptr, nullptr};
}

template<int which> const halide_filter_metadata_t *metadata_of(std::vector<halide_filter_argument_t> arguments) {
    static const std::vector<halide_filter_argument_t> kept = std::move(arguments);
    static const halide_filter_metadata_t metadata = {1, static_cast<int32_t>(kept.size()), kept.data(), "host", "fake"};
    return &metadata;
}

const halide_filter_metadata_t *gated_metadata() {
    return metadata_of<0>({argument("__user_context", scalar, 0, handle), argument("q", in, 3), argument("k", in, 3),
                           argument("v", in, 3), argument("g", in, 2), argument("scale", scalar, 0),
                           argument("initial_state", in, 3), argument("o", out, 3), argument("final_state", out, 3)});
}

const halide_filter_metadata_t *retention_metadata() {
    return metadata_of<1>({argument("__user_context", scalar, 0, handle), argument("q", in, 3), argument("k", in, 3),
                           argument("v", in, 3), argument("gamma", in, 1), argument("scale", scalar, 0),
                           argument("initial_state", in, 3), argument("o", out, 3), argument("final_state", out, 3)});
}

const halide_filter_metadata_t *normalized_metadata() {
    return metadata_of<2>({argument("__user_context", scalar, 0, handle), argument("q", in, 3), argument("k", in, 3),
                           argument("v", in, 3), argument("scale", scalar, 0), argument("initial_state", in, 3),
                           argument("initial_normalizer", in, 2), argument("o", out, 3), argument("final_state", out, 3),
                           argument("final_normalizer", out, 2)});
}

const halide_filter_metadata_t *plain_metadata() {
    return metadata_of<3>({argument("__user_context", scalar, 0, handle), argument("x", in, 2), argument("A", in, 2),
                           argument("skip", in, 1), argument("gain", in, 1), argument("initial_state", in, 2),
                           argument("o", out, 2), argument("final_state", out, 2)});
}

const halide_filter_metadata_t *cached_metadata() {
    return metadata_of<4>({argument("__user_context", scalar, 0, handle), argument("q", in, 3), argument("k", in, 3),
                           argument("v", in, 3), argument("causal", scalar, 0, i32), argument("o", out, 3)});
}

// ---- the table -----------------------------------------------------------------------------------------------

const halation_row_tensor gated_inputs[] = {{"q", "BTHK", HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, 0},
                                            {"k", "BTHK", HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, 0},
                                            {"v", "BTGV", HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, 0},
                                            {"g", "BTG", HALATION_ROLE_GATE, HALATION_DEFAULT_REQUIRED, 0}};
const halation_row_tensor retention_inputs[] = {
    gated_inputs[0], gated_inputs[1], gated_inputs[2], {"gamma", "G", HALATION_ROLE_GATE, HALATION_DEFAULT_RETENTION, 0}};
const halation_row_tensor plain_inputs[] = {{"x", "BTV", HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, 0},
                                            {"A", "VK", HALATION_ROLE_GATE, HALATION_DEFAULT_REQUIRED, 0},
                                            {"skip", "V", HALATION_ROLE_GATE, HALATION_DEFAULT_ZERO, 0},
                                            {"gain", "V", HALATION_ROLE_GATE, HALATION_DEFAULT_ONE, 0}};
const halation_row_tensor cached_inputs[] = {{"q", "BTGK", HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, 0},
                                             {"k", "BSHK", HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, 0},
                                             {"v", "BSHV", HALATION_ROLE_DATA, HALATION_DEFAULT_REQUIRED, 0}};

const char *const none = "there is no state to carry";
const halation_row rows[] = {
    {"gated", "S = exp(g) S + k v^T", gated_inputs, 4, "BTGV", "NGKV", nullptr, nullptr, NAN, {}, 2, nullptr},
    {"retention", "S = gamma S + k v^T", retention_inputs, 4, "BTGV", "NGKV", nullptr, nullptr, NAN, {}, 2, nullptr},
    {"normalized", "o = q S / q z", gated_inputs, 3, "BTGV", "NGKV", "NGK", "elu+1", 1, {}, 2, nullptr},
    {"plain",
     "S = S + A x",
     plain_inputs,
     4,
     "BTV",
     "NKV",
     nullptr,
     nullptr,
     1,
     {nullptr, nullptr, nullptr, "work would be quadratic for nothing"},
     2,
     nullptr},
    {"cached",
     "o = sum (q . k) v",
     cached_inputs,
     3,
     "BTGV",
     nullptr,
     nullptr,
     nullptr,
     1,
     {nullptr, nullptr, none, nullptr},
     2,
     nullptr},
};

constexpr DLDataType f = halation::float32;
const halation_kernel kernels[] = {
    {"gated_recurrent", "gated", "cpu", "x86_64", nullptr, HALATION_FORM_RECURRENT, f, f, 0, 0, 1, 1, 4, run_gated_recurrent,
     gated_metadata},
    {"gated_chunkwise", "gated", "cpu", "x86_64", nullptr, HALATION_FORM_CHUNKWISE, f, f, 0, 0, 4, 8, 4, run_gated_chunkwise,
     gated_metadata},
    {"gated_chunkwise_whole", "gated", "cpu", "x86_64", nullptr, HALATION_FORM_CHUNKWISE, f, f, 0, 0, 16, 0, 0,
     run_gated_chunkwise, gated_metadata},
    {"gated_chunkwise_neon", "gated", "cpu", "neon", nullptr, HALATION_FORM_CHUNKWISE, f, f, 0, 0, 32, 0, 0, run_gated_chunkwise,
     gated_metadata},
    {"gated_parallel_neon", "gated", "cpu", "neon", nullptr, HALATION_FORM_PARALLEL, f, f, 0, 0, 0, 0, 0, run_gated_chunkwise,
     gated_metadata},
    {"retention_recurrent", "retention", "cpu", "x86_64", nullptr, HALATION_FORM_RECURRENT, f, f, 0, 0, 1, 1, 0, run_retention,
     retention_metadata},
    {"normalized_recurrent", "normalized", "cpu", "x86_64", "elu+1", HALATION_FORM_RECURRENT, f, f, 0, 0, 1, 1, 4, run_normalized,
     normalized_metadata},
    {"plain_recurrent", "plain", "cpu", "x86_64", nullptr, HALATION_FORM_RECURRENT, f, f, 0, 0, 1, 3, 2, run_plain,
     plain_metadata},
    {"cached_parallel", "cached", "cpu", "x86_64", nullptr, HALATION_FORM_PARALLEL, f, f, 0, 0, 0, 4, 0, run_cached,
     cached_metadata},
};

}  // namespace

const halation_kernel_table *table() {
#if defined(__aarch64__)
    static std::vector<halation_kernel> mine = [] {
        std::vector<halation_kernel> swapped(std::begin(kernels), std::end(kernels));
        for (halation_kernel &kernel : swapped) kernel.isa = strcmp(kernel.isa, "neon") ? "neon" : "avx2";
        return swapped;
    }();
    const halation_kernel *list = mine.data();
#else
    const halation_kernel *list = kernels;
#endif
    static const halation_kernel_table made = {
        sizeof(halation_kernel_table),     HALATION_VERSION, "fakes", rows, sizeof rows / sizeof rows[0], list,
        sizeof kernels / sizeof kernels[0]};
    return &made;
}

// ---- data ----------------------------------------------------------------------------------------------------

namespace {

std::vector<float> numbers(int64_t count, unsigned seed, float low, float high) {
    std::vector<float> values(static_cast<size_t>(count));
    uint32_t state = seed * 2654435761u + 12345u;
    for (float &value : values) {
        state = state * 1664525u + 1013904223u;
        value = low + (high - low) * static_cast<float>(state >> 8) / 16777216.f;
    }
    return values;
}

}  // namespace

Gated::Gated(int64_t B_, int64_t T_, int64_t H_, int64_t HV_, int64_t K_, int64_t V_, unsigned seed)
    : B(B_), T(T_), H(H_), HV(HV_), K(K_), V(V_) {
    q = numbers(B * T * H * K, seed + 1, -1, 1);
    k = numbers(B * T * H * K, seed + 2, -1, 1);
    v = numbers(B * T * HV * V, seed + 3, -1, 1);
    g = numbers(B * T * HV, seed + 4, -2, 0);
    initial = numbers(B * HV * K * V, seed + 5, -1, 1);
    o.assign(static_cast<size_t>(B * T * HV * V), std::nanf(""));
    final.assign(static_cast<size_t>(B * HV * K * V), std::nanf(""));
}

halation::NamedTensors Gated::tensors(bool with_initial, bool with_final) {
    using halation::Tensor;
    halation::NamedTensors list = {{"q", Tensor(q.data(), {B, T, H, K})},
                                   {"k", Tensor(k.data(), {B, T, H, K})},
                                   {"v", Tensor(v.data(), {B, T, HV, V})},
                                   {"g", Tensor(g.data(), {B, T, HV})},
                                   {"o", Tensor(o.data(), {B, T, HV, V})}};
    if (with_initial) list.push_back({"initial_state", Tensor(initial.data(), {B, HV, K, V})});
    if (with_final) list.push_back({"final_state", Tensor(final.data(), {B, HV, K, V})});
    return list;
}

void Gated::reference(int64_t b, int64_t begin, int64_t end, std::vector<float> *state, std::vector<float> *out,
                      bool tiled) const {
    const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(K)));
    for (int64_t t = begin; t < end; t++)
        for (int64_t h = 0; h < HV; h++) {
            const int64_t kh = tiled ? h % H : h / (HV / H);
            const int64_t token = b * T + t;
            const float a = std::exp(g[static_cast<size_t>(token * HV + h)]);
            for (int64_t x = 0; x < V; x++) {
                float sum = 0;
                for (int64_t d = 0; d < K; d++) {
                    float &s = (*state)[static_cast<size_t>((h * K + d) * V + x)];
                    s = a * s +
                        k[static_cast<size_t>((token * H + kh) * K + d)] * v[static_cast<size_t>((token * HV + h) * V + x)];
                    sum += q[static_cast<size_t>((token * H + kh) * K + d)] * s;
                }
                (*out)[static_cast<size_t>((token * HV + h) * V + x)] = scale * sum;
            }
        }
}

void Gated::reference_all(bool from_initial, std::vector<float> *out, std::vector<float> *states, bool tiled) const {
    out->assign(o.size(), 0);
    states->clear();
    const size_t one = static_cast<size_t>(HV * K * V);
    for (int64_t b = 0; b < B; b++) {
        std::vector<float> state(one, 0.f);
        if (from_initial) std::copy_n(initial.begin() + b * static_cast<int64_t>(one), one, state.begin());
        reference(b, 0, T, &state, out, tiled);
        states->insert(states->end(), state.begin(), state.end());
    }
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && (a.empty() || !memcmp(a.data(), b.data(), a.size() * sizeof(float)));
}

bool close(const std::vector<float> &a, const std::vector<float> &b, float tolerance) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
        if (!(std::abs(a[i] - b[i]) <= tolerance)) return false;
    return true;
}

halation::Problem gated_problem(const Gated &data, halation_form form) {
    halation::Problem problem("gated", data.H, data.HV, data.K, data.V);
    problem.form = form;
    return problem;
}

halation::Context &context() {
    static halation::Context made(2);
    static const bool added = (made.add_kernels(*table()), true);
    (void)added;
    return made;
}

std::vector<float> row(const std::vector<float> &states, int64_t index, int64_t elements) {
    return {states.begin() + index * elements, states.begin() + (index + 1) * elements};
}

}  // namespace fakes
