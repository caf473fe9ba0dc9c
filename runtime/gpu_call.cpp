#include "gpu_call.h"
#include "gpu_table.h"
#include "status.h"
#include "text.h"

namespace halation::runtime {

halation_status Handles::point_to(const char *name, const Location &location, uint64_t bytes, uint64_t *handle) {
    for (const Made &made : made_)
        if (made.location.memory == location.memory && made.location.address == location.address && made.bytes >= bytes) {
            *handle = made.handle;
            return HALATION_OK;
        }
    made_.reserve(made_.size() + 1);
    HALATION_TRY(device_.point_to(name, location, bytes, handle));
    made_.push_back({location, bytes, *handle});
    return HALATION_OK;
}

namespace {

halation_status check_limits(const Device &device, const halation_launch &launch) {
    const LaunchLimits &limits = device.limits();
    const char *backend = device.info().backend, *name = device.info().name;
    const auto refuse = [&](const char *what, int64_t taken, int64_t most) {
        return fail(HALATION_UNSUPPORTED, "%s: %s takes %lld %s; %s has %lld", backend, launch.entry,
                    static_cast<long long>(taken), what, name, static_cast<long long>(most));
    };
    if (launch.shared_bytes > limits.shared_bytes)
        return refuse("bytes of shared memory in a block", launch.shared_bytes, limits.shared_bytes);
    const int64_t threads = int64_t(1) * launch.block[0] * launch.block[1] * launch.block[2];
    if (threads > limits.threads) return refuse("threads in a block", threads, limits.threads);
    for (int d = 0; d < 3; d++) {
        if (launch.block[d] > limits.block[d]) return refuse("threads in a row of a block", launch.block[d], limits.block[d]);
        if (launch.grid[d] > limits.grid[d]) return refuse("blocks in a row", launch.grid[d], limits.grid[d]);
    }
    return HALATION_OK;
}

}  // namespace

GpuCall::GpuCall(const halation_plan &plan, const BoundKernel &bound, const Arguments &arguments, Mode mode)
    : plan_(plan), bound_(bound), mode_(mode) {
    interface_.owner = this;
    interface_.kernel.allocate = [](halation_kernel_context *kernel, size_t bytes) {
        return of(kernel).plan_.context->scratch_of(0).allocate(bytes);
    };
    interface_.kernel.release = [](halation_kernel_context *kernel, void *memory) {
        of(kernel).plan_.context->scratch_of(0).release(memory);
    };
    interface_.kernel.error = [](halation_kernel_context *kernel, const char *message) {
        of(kernel).result(fail(HALATION_INTERNAL_ERROR, "%s", message ? message : "an error without a message"));
    };
    interface_.kernel.load = [](halation_kernel_context *kernel, const void *code, size_t bytes) {
        if (of(kernel).mode_ == Mode::check) return 0;
        return of(kernel).result(of(kernel).plan_.device->load(code, bytes));
    };
    interface_.kernel.launch = [](halation_kernel_context *kernel, const halation_launch *launch) {
        return of(kernel).result(of(kernel).launch(*launch));
    };
    interface_.kernel.device_allocate = [](halation_kernel_context *kernel, size_t bytes, uint64_t *handle) {
        GpuCall &call = of(kernel);
        *handle = 1;  // of a dry call: not 0, which is none
        return call.dry() ? 0 : call.result(call.plan_.device_memory->take(bytes, handle));
    };
    interface_.kernel.device_release = [](halation_kernel_context *kernel, uint64_t handle) {
        GpuCall &call = of(kernel);
        return call.dry() ? 0 : call.result(call.plan_.device_memory->give_back(handle));
    };
    call_.bind(bound, plan.problem, arguments, &interface_.kernel);
}

void GpuCall::fill(const TensorSpec &spec, const TensorView &view, uint64_t handle, KernelBuffer *buffer) {
    halide_buffer_t &made = buffer->buffer;
    made = {};
    made.device = handle;
    made.host = reinterpret_cast<uint8_t *>(1);  // no memory, but host code may insist that there is some before it launches
    made.type = halide_type_t(static_cast<halide_type_code_t>(spec.kernel_type.code), spec.kernel_type.bits, 1);
    made.dimensions = spec.rank;
    made.dim = buffer->dim;
    for (int axis = 0; axis < spec.rank; axis++) {
        halide_dimension_t &dim = buffer->dim[spec.rank - 1 - axis];  // Halide counts from the innermost
        dim.min = 0;
        dim.extent = static_cast<int32_t>(view.extent[axis]);
        dim.stride = static_cast<int32_t>(view.stride[axis]);
        dim.flags = 0;
    }
    buffer->token_bytes = 0;
    buffer->token_dim = -1;
}

void GpuCall::fill_sequences(int32_t entries, uint64_t handle, KernelBuffer *buffer) {
    halide_buffer_t &made = buffer->buffer;
    made = {};
    made.device = handle;
    made.type = halide_type_t(halide_type_int, 32, 1);
    made.dimensions = 2;
    made.dim = buffer->dim;
    buffer->dim[0] = {0, table_words, 1};
    buffer->dim[1] = {0, entries, table_words};
}

halation_status GpuCall::launch(const halation_launch &launch) {
    if (!dry()) return plan_.device->launch(launch);
    HALATION_TRY(check_limits(*plan_.device, launch));
    return mode_ == Mode::prepare ? plan_.device->prepare(launch) : HALATION_OK;
}

int GpuCall::result(halation_status status) {
    if (status == HALATION_OK) return 0;
    if (status_ == HALATION_OK) {
        status_ = status;
        copy_text(message_, halation_last_message());
    }
    return -1;
}

halation_status GpuCall::run() {
    // Kernels see states as both types, whose rows have the same strides, and look at one of them.
    if (bound_.takes_bits) {
        call_.initial_bits = call_.buffers[plan_.initial[carried_state]];
        call_.final_bits = call_.buffers[plan_.final[carried_state]];
        for (KernelBuffer *each : {&call_.initial_bits, &call_.final_bits})
            each->buffer.type = halide_type_t(halide_type_uint, 16);
    }
    const int code = bound_.kernel->run(call_.argv);
    if (code == 0) return HALATION_OK;
    if (!dry()) plan_.device_memory->give_back_all();
    if (status_ == HALATION_OK)
        return fail(HALATION_INTERNAL_ERROR, "kernel %s: returned %d without a message", bound_.kernel->name, code);
    return fail(status_, "kernel %s: %s", bound_.kernel->name, message_);
}

}  // namespace halation::runtime
