// Halation for C++17: RAII over halation.h, errors as exceptions. Header only.
//
//     halation::Context context;                                     // one thread per processor
//     context.add_kernels(*halation_kernels());
//     halation::Problem problem("gated_delta", H, HV, K, V);
//     halation::Plan plan(context, problem);
//     plan.run({{"q", {q, {B, T, H, K}}}, ..., {"o", {o, {B, T, HV, V}}}});
#ifndef HALATION_HPP
#define HALATION_HPP

#include "halation.h"

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace halation {

// What a failed call throws; what() is halation_last_message().
class Error : public std::runtime_error {
public:
    explicit Error(halation_status status) : std::runtime_error(halation_last_message()), status_(status) {}
    halation_status status() const { return status_; }

private:
    halation_status status_;
};

inline void check(halation_status status) {
    if (status != HALATION_OK) throw Error(status);
}

constexpr DLDataType float32{kDLFloat, 32, 1};
constexpr DLDataType float16{kDLFloat, 16, 1};
constexpr DLDataType bfloat16{kDLBfloat, 16, 1};
constexpr DLDataType int32{kDLInt, 32, 1};
constexpr DLDataType int64{kDLInt, 64, 1};
constexpr DLDataType uint8{kDLUInt, 8, 1};

inline DLDataType type_of(const float *) {
    return float32;
}
inline DLDataType type_of(const int32_t *) {
    return int32;
}
inline DLDataType type_of(const int64_t *) {
    return int64;
}
inline DLDataType type_of(const uint8_t *) {
    return uint8;
}

// A view of the caller's memory: pointer, type, shape, strides in elements (empty: compact row-major).
// Holds no memory but its own shape; the data must outlive the call it is given to.
class Tensor {
public:
    Tensor() = default;
    template<typename T>
    Tensor(T *data, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
        : Tensor(const_cast<void *>(static_cast<const void *>(data)), type_of(data), std::move(shape), std::move(strides)) {}
    Tensor(void *data, DLDataType type, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
        : data_(data), type_(type), shape_(std::move(shape)), strides_(std::move(strides)) {}

    void *data() const { return data_; }
    DLDataType type() const { return type_; }
    const std::vector<int64_t> &shape() const { return shape_; }
    const std::vector<int64_t> &strides() const { return strides_; }

    // The same on a device: `data` is what DLTensor.data is there, DeviceMemory::data() for example.
    Tensor on(DLDevice device, uint64_t byte_offset = 0) const {
        Tensor moved(*this);
        moved.device_ = device;
        moved.byte_offset_ = byte_offset;
        return moved;
    }

    // Points into this Tensor: valid as long as it is neither moved nor destroyed.
    DLTensor view() const {
        DLTensor tensor{};
        tensor.data = data_;
        tensor.device = device_;
        tensor.byte_offset = byte_offset_;
        tensor.ndim = static_cast<int32_t>(shape_.size());
        tensor.dtype = type_;
        tensor.shape = const_cast<int64_t *>(shape_.data());
        tensor.strides = strides_.empty() ? nullptr : const_cast<int64_t *>(strides_.data());
        return tensor;
    }

private:
    void *data_ = nullptr;
    DLDataType type_ = float32;
    std::vector<int64_t> shape_, strides_;
    DLDevice device_{kDLCPU, 0};
    uint64_t byte_offset_ = 0;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class Context {
public:
    // threads: most threads per call, 0: one per processor.
    explicit Context(int threads = 0) {
        auto options = HALATION_INIT(halation_context_options);
        options.threads = threads;
        check(halation_context_create(&options, &context_));
    }
    explicit Context(const halation_context_options &options) { check(halation_context_create(&options, &context_)); }
    ~Context() { halation_context_destroy(context_); }
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    void add_kernels(const halation_kernel_table &kernels) { check(halation_context_add_kernels(context_, &kernels)); }
    halation_context *get() const { return context_; }

    // The context's device; see halation_context_open_device.
    halation_device_info open_device(const char *backend, int32_t ordinal = 0, void *native_context = nullptr,
                                     void *native_queue = nullptr) {
        auto options = HALATION_INIT(halation_device_options);
        options.backend = backend;
        options.ordinal = ordinal;
        options.native_context = native_context;
        options.native_queue = native_queue;
        check(halation_context_open_device(context_, &options));
        return device();
    }
    halation_device_info device() const {
        auto info = HALATION_INIT(halation_device_info);
        check(halation_context_device(context_, &info));
        return info;
    }
    void set_queue(void *native_queue) { check(halation_context_set_queue(context_, native_queue)); }
    void synchronize() const { check(halation_device_synchronize(context_)); }

private:
    halation_context *context_ = nullptr;
};

// Memory on the device of a context, which must outlive it.
class DeviceMemory {
public:
    DeviceMemory() = default;
    DeviceMemory(const Context &context, size_t bytes) : context_(context.get()) {
        check(halation_device_allocate(context_, bytes, &data_));
    }
    // With what is at `from`.
    DeviceMemory(const Context &context, const void *from, size_t bytes) : DeviceMemory(context, bytes) {
        copy_from(from, bytes);
    }
    ~DeviceMemory() { halation_device_release(context_, data_); }
    DeviceMemory(DeviceMemory &&other) noexcept
        : context_(std::exchange(other.context_, nullptr)), data_(std::exchange(other.data_, nullptr)) {}
    DeviceMemory &operator=(DeviceMemory &&other) noexcept {
        std::swap(context_, other.context_);
        std::swap(data_, other.data_);
        return *this;
    }

    void *data() const { return data_; }
    void copy_from(const void *host, size_t bytes, size_t offset = 0) {
        check(halation_device_copy_to(context_, data_, offset, host, bytes));
    }
    void copy_to(void *host, size_t bytes, size_t offset = 0) const {
        check(halation_device_copy_from(context_, data_, offset, host, bytes));
    }

private:
    halation_context *context_ = nullptr;
    void *data_ = nullptr;
};

// A halation_problem with its defaults: form auto, cpu, best ISA, float32, gates float32, causal, default scale.
struct Problem : halation_problem {
    Problem(const char *recurrence_, int64_t heads_, int64_t value_heads_, int64_t key_dim_, int64_t value_dim_)
        : halation_problem{} {
        size = sizeof(halation_problem);
        version = HALATION_VERSION;
        recurrence = recurrence_;
        heads = heads_;
        value_heads = value_heads_;
        key_dim = key_dim_;
        value_dim = value_dim_;
        type = gate_type = state_type = float32;
    }
};

// What halation_run takes besides tensors; see halation_arguments. Empty tensors are not passed.
struct Batch {
    Tensor offsets, cache_offsets, read_slots, write_slots, has_initial_state;
    Tensor snapshot_sequences, snapshot_tokens, snapshot_slots;
    void *workspace = nullptr;
    size_t workspace_bytes = 0;
};

class Plan {
public:
    Plan(const Context &context, const halation_problem &problem) {
        check(halation_plan_create(context.get(), &problem, &plan_));
    }
    ~Plan() { halation_plan_destroy(plan_); }
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;

    void run(const NamedTensors &tensors, const Batch &batch = {}) {
        with_arguments(tensors, batch, [&](const halation_arguments &a) { check(halation_run(plan_, &a)); });
    }

    size_t workspace(const NamedTensors &tensors, const Batch &batch = {}) const {
        size_t bytes = 0;
        with_arguments(tensors, batch, [&](const halation_arguments &a) { check(halation_plan_workspace(plan_, &a, &bytes)); });
        return bytes;
    }

    halation_choice describe() const {
        auto choice = HALATION_INIT(halation_choice);
        check(halation_plan_describe(plan_, &choice));
        return choice;
    }

    halation_plan *get() const { return plan_; }

private:
    template<typename Call> static void with_arguments(const NamedTensors &tensors, const Batch &batch, Call call) {
        std::vector<DLTensor> views;
        std::vector<halation_named_tensor> named;
        views.reserve(tensors.size());
        for (const auto &[name, tensor] : tensors) {
            views.push_back(tensor.view());
            named.push_back({name.c_str(), &views.back()});
        }
        auto arguments = HALATION_INIT(halation_arguments);
        arguments.tensors = named.data();
        arguments.tensor_count = static_cast<int32_t>(named.size());
        const std::pair<const Tensor &, const DLTensor **> vectors[] = {
            {batch.offsets, &arguments.offsets},
            {batch.cache_offsets, &arguments.cache_offsets},
            {batch.read_slots, &arguments.read_slots},
            {batch.write_slots, &arguments.write_slots},
            {batch.has_initial_state, &arguments.has_initial_state},
            {batch.snapshot_sequences, &arguments.snapshot_sequences},
            {batch.snapshot_tokens, &arguments.snapshot_tokens},
            {batch.snapshot_slots, &arguments.snapshot_slots},
        };
        DLTensor vector_views[sizeof vectors / sizeof vectors[0]];
        for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
            if (!vectors[i].first.data()) continue;
            vector_views[i] = vectors[i].first.view();
            *vectors[i].second = &vector_views[i];
        }
        arguments.workspace = batch.workspace;
        arguments.workspace_bytes = batch.workspace_bytes;
        call(arguments);
    }

    halation_plan *plan_ = nullptr;
};

}  // namespace halation
#endif
