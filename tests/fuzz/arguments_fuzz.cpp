// libFuzzer: whatever the C structs say, a call is run within the memory that its shapes and strides claim, or refused
// with a message, all outputs as they were. The kernels are the hand-written ones, which the sanitizers see into.
#include "../runtime_fakes.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace {

constexpr int64_t most_bytes = 1 << 20;

void require(bool holds) {
    if (!holds) std::abort();
}

// Once in so many times; never once the data are used up.
bool rarely(FuzzedDataProvider &from, int times) {
    return from.ConsumeIntegralInRange(1, times) == times;
}

// A tensor with as much memory as its shape and strides claim, exactly; none where they claim too much.
class Claimed {
public:
    explicit Claimed(FuzzedDataProvider &from, const std::vector<int64_t> &likely, DLDataType likely_type) {
        tensor_.device = {from.ConsumeBool() || !likely.empty() ? kDLCPU : kDLCUDA, 0};
        tensor_.dtype = likely_type;
        shape_ = likely;
        if (rarely(from, 16)) {
            tensor_.dtype.code = from.ConsumeIntegral<uint8_t>();
            tensor_.dtype.bits = from.PickValueInArray<uint8_t>({8, 16, 32, 64});
            tensor_.dtype.lanes = from.ConsumeIntegralInRange<uint16_t>(0, 2);
        }
        if (rarely(from, 16)) shape_.resize(from.ConsumeIntegralInRange<size_t>(0, 9), 1);
        for (int64_t &extent : shape_)
            if (rarely(from, 16)) extent = draw_number(from);
        int64_t stride = 1;
        for (size_t axis = shape_.size(); axis-- > 0;) {
            strides_.insert(strides_.begin(), stride);
            if (__builtin_mul_overflow(stride, shape_[axis], &stride) || stride > most_bytes) stride = 1;
            if (rarely(from, 8)) stride += from.ConsumeIntegralInRange(0, 3);
        }
        for (int64_t &s : strides_)
            if (rarely(from, 16)) s = draw_number(from);
        if (rarely(from, 8)) std::reverse(strides_.begin(), strides_.end());
        tensor_.ndim = static_cast<int32_t>(shape_.size());
        tensor_.shape = shape_.data();
        tensor_.strides = from.ConsumeIntegralInRange(0, 3) ? strides_.data() : nullptr;
        if (rarely(from, 32)) tensor_.shape = nullptr;
        allocate(from);
    }
    Claimed(const Claimed &) = delete;
    Claimed &operator=(const Claimed &) = delete;

    const DLTensor *get() const { return &tensor_; }
    bool as_before() const { return memory_.empty() || memory_ == before_; }
    uint8_t *bytes() { return memory_.data(); }
    size_t size() const { return memory_.size(); }

private:
    static int64_t draw_number(FuzzedDataProvider &from) {
        switch (from.ConsumeIntegralInRange(0, 3)) {
        case 0:
            return from.ConsumeIntegralInRange<int64_t>(-2, 20);
        case 1:
            return from.ConsumeIntegralInRange<int64_t>(-40, 0);
        case 2:
            return int64_t(1) << from.ConsumeIntegralInRange(0, 62);
        default:
            return from.ConsumeIntegral<int64_t>();
        }
    }

    void allocate(FuzzedDataProvider &from) {
        const int64_t width = std::max(1, tensor_.dtype.bits / 8);
        int64_t low = 0, high = 0, compact = 1;
        bool too_much = !tensor_.shape, empty = false;
        for (size_t axis = shape_.size(); axis-- > 0 && !too_much && !empty;) {
            const int64_t stride = tensor_.strides ? strides_[axis] : compact;
            empty = shape_[axis] <= 0;
            int64_t reach = 0;
            too_much =
                !empty && (__builtin_mul_overflow(compact, shape_[axis], &compact) ||
                           __builtin_mul_overflow(shape_[axis] - 1, stride, &reach) || reach > most_bytes || reach < -most_bytes);
            if (!too_much && shape_[axis] > 1) (reach < 0 ? low : high) += reach;
        }
        if (too_much || empty || (high - low + 1) * width > most_bytes) return;  // NULL, which must be refused
        memory_.resize(static_cast<size_t>((high - low + 1) * width));
        for (size_t i = 0; i < memory_.size(); i++) memory_[i] = static_cast<uint8_t>(i % 61);
        for (uint8_t &byte : from.ConsumeBytes<uint8_t>(std::min<size_t>(memory_.size(), 8))) memory_[0] ^= byte;
        before_ = memory_;
        tensor_.data = memory_.data() - low * width;
        if (rarely(from, 32)) {
            tensor_.byte_offset = static_cast<uint64_t>(width);
            tensor_.data = static_cast<char *>(tensor_.data) - width;
        }
        if (rarely(from, 64)) tensor_.data = static_cast<char *>(tensor_.data) + 1;  // unaligned: refused
    }

    DLTensor tensor_{};
    std::vector<int64_t> shape_, strides_;
    std::vector<uint8_t> memory_, before_;
};

// The tensors of the hand-written rows.
std::string words_of(const std::string &recurrence) {
    if (recurrence == "plain") return " x A skip o initial_state final_state snapshot_state ";
    if (recurrence == "cached") return " q k v o ";
    const std::string states = " o initial_state final_state snapshot_state ";
    if (recurrence == "gated") return " q k v g" + states;
    if (recurrence == "retention") return " q k v gamma" + states;
    return " q k v initial_normalizer final_normalizer" + states;
}

// A vector of integers, mostly sound.
std::unique_ptr<Claimed> draw_vector(FuzzedDataProvider &from, int64_t count, int64_t most, bool rising, int times = 4) {
    if (!rarely(from, times)) return nullptr;
    auto vector = std::make_unique<Claimed>(from, std::vector<int64_t>{count}, halation::int64);
    std::vector<int64_t> values(vector->size() / 8);
    for (int64_t &value : values) value = from.ConsumeIntegralInRange<int64_t>(-1, most);
    if (rising && !values.empty()) {
        std::sort(values.begin(), values.end());
        values.front() = 0;
        values.back() = most;
    }
    if (!values.empty()) std::memcpy(vector->bytes(), values.data(), values.size() * 8);
    return vector;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzedDataProvider from(data, size);
    static halation_context *context = [] {
        auto options = HALATION_INIT(halation_context_options);
        options.threads = 2;
        halation_context *made = nullptr;
        require(halation_context_create(&options, &made) == HALATION_OK);
        require(halation_context_add_kernels(made, fakes::table()) == HALATION_OK);
        return made;
    }();
    const int64_t H = from.ConsumeIntegralInRange<int64_t>(1, 3), HV = H * from.ConsumeIntegralInRange<int64_t>(1, 2);
    const int64_t K = from.ConsumeIntegralInRange<int64_t>(1, 5), V = from.ConsumeIntegralInRange<int64_t>(1, 9);
    const int64_t B = from.ConsumeIntegralInRange<int64_t>(0, 3), T = from.ConsumeIntegralInRange<int64_t>(0, 9);
    const int64_t S = T + from.ConsumeIntegralInRange<int64_t>(0, 3), N = from.ConsumeIntegralInRange<int64_t>(1, 6);
    const int64_t rows = from.ConsumeBool() ? N + 2 : B;

    const char *const recurrences[] = {"gated", "retention", "normalized", "plain", "cached"};
    const char *const words[] = {nullptr, "cpu", "x86_64", "avx2", "elu+1", "gated", "?"};
    auto problem = HALATION_INIT(halation_problem);
    problem.recurrence = from.PickValueInArray(recurrences);
    problem.heads = H, problem.value_heads = HV, problem.key_dim = K, problem.value_dim = V;
    problem.type = problem.gate_type = halation::float32;
    if (!std::strcmp(problem.recurrence, "plain")) problem.heads = problem.value_heads = 1;
    if (rarely(from, 4)) {
        problem.recurrence = from.PickValueInArray(words);
        problem.backend = from.PickValueInArray(words);
        problem.isa = from.PickValueInArray(words);
        problem.feature_map = from.PickValueInArray(words);
        const int form = from.ConsumeIntegral<int>(), mapping = from.ConsumeIntegral<int>();
        std::memcpy(&problem.form, &form, sizeof form);
        std::memcpy(&problem.head_mapping, &mapping, sizeof mapping);
        problem.chunk = from.ConsumeIntegral<int32_t>();
        problem.non_causal = from.ConsumeIntegral<int32_t>();
        problem.heads = from.ConsumeIntegral<int64_t>();
        problem.key_dim = from.ConsumeIntegral<int64_t>();
        problem.scale = from.ConsumeFloatingPoint<double>();
        problem.size = from.ConsumeIntegral<uint8_t>();
    } else if (from.ConsumeBool()) {
        problem.state_type = halation::bfloat16;
        problem.non_causal = from.ConsumeBool();
        problem.head_mapping = from.ConsumeBool() ? HALATION_HEADS_TILED : HALATION_HEADS_GROUPED;
    }
    auto choice = HALATION_INIT(halation_choice);
    const halation_status can = halation_can_run(context, &problem, &choice);
    halation_plan *plan = nullptr;
    require(halation_plan_create(context, &problem, &plan) == can);
    require((can == HALATION_OK) == (plan != nullptr));
    if (!plan) {
        require(*halation_last_message() != 0);
        return 0;
    }

    struct Named {
        const char *name;
        std::vector<int64_t> shape;
        bool output, state;
    };
    const bool cached = !std::strcmp(problem.recurrence, "cached");
    const Named named[] = {
        {"q", {B, T, cached ? HV : H, K}, false, false},
        {"k", {B, cached ? S : T, H, K}, false, false},
        {"v", {B, cached ? S : T, cached ? H : HV, V}, false, false},
        {"g", {B, T, HV}, false, false},
        {"gamma", {HV}, false, false},
        {"x", {B, T, V}, false, false},
        {"A", {V, K}, false, false},
        {"skip", {V}, false, false},
        {"o", {B, T, HV, V}, true, false},
        {"initial_state", {rows, HV, K, V}, false, true},
        {"final_state", {rows, HV, K, V}, true, true},
        {"snapshot_state", {rows, HV, K, V}, true, true},
        {"initial_normalizer", {rows, HV, K}, false, false},
        {"final_normalizer", {rows, HV, K}, true, false},
    };
    const bool plain = !std::strcmp(problem.recurrence, "plain"), snapshots = rarely(from, 3);
    std::vector<std::unique_ptr<Claimed>> tensors;
    std::vector<halation_named_tensor> list;
    std::vector<Claimed *> outputs;
    for (const Named &tensor : named) {
        if (rarely(from, 8)) continue;
        std::vector<int64_t> shape = tensor.shape;
        if (plain && !std::strcmp(tensor.name, "o")) shape = {B, T, V};
        if (plain && tensor.state) shape = {rows, K, V};
        const bool half = tensor.state && problem.state_type.bits == 16;
        tensors.push_back(std::make_unique<Claimed>(from, shape, half ? halation::bfloat16 : halation::float32));
        if (tensor.output) outputs.push_back(tensors.back().get());
        const char *name = tensor.name;
        // Only what the recurrence has, mostly. The snapshots need their vectors.
        if (tensor.output && !std::strncmp(name, "snapshot", 8) && !snapshots && !rarely(from, 8)) continue;
        if (words_of(problem.recurrence).find(std::string(" ") + name + " ") == std::string::npos && !rarely(from, 16)) continue;
        list.push_back({name, tensors.back()->get()});
    }
    const auto offsets = draw_vector(from, N + 1, T, true), caches = draw_vector(from, N + 1, S, true);
    const int64_t sequences = offsets ? N : B;
    const auto reads = draw_vector(from, sequences, rows - 1, false), writes = draw_vector(from, sequences, rows - 1, false);
    const auto snapshot = [&](int64_t most) { return draw_vector(from, 2, most, false, snapshots ? 1 : 64); };
    const auto of = snapshot(sequences - 1), at = snapshot(T), to = snapshot(rows - 1);
    auto arguments = HALATION_INIT(halation_arguments);
    arguments.tensors = list.data();
    arguments.tensor_count = static_cast<int32_t>(list.size());
    const auto view = [](const std::unique_ptr<Claimed> &vector) { return vector ? vector->get() : nullptr; };
    arguments.offsets = view(offsets);
    arguments.cache_offsets = view(caches);
    arguments.read_slots = view(reads);
    arguments.write_slots = view(writes);
    arguments.snapshot_sequences = view(of);
    arguments.snapshot_tokens = view(at);
    arguments.snapshot_slots = view(to);
    size_t bytes = 0;
    const halation_status asked = halation_plan_workspace(plan, &arguments, &bytes);
    fakes::seen.reset();
    const halation_status status = halation_run(plan, &arguments);
    if (status == HALATION_OK) {
        require(asked == HALATION_OK);
    } else {
        require(*halation_last_message() != 0);
        require(status != HALATION_INTERNAL_ERROR);
        for (const Claimed *output : outputs) require(output->as_before());
        require(fakes::seen.calls.load() == 0);
    }
    halation_plan_destroy(plan);
    return 0;
}
