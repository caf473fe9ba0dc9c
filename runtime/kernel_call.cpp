#include "kernel_call.h"

namespace halation::runtime {

void KernelBuffer::fill(const Slice &slice, DLDataType type) {
    buffer.device = 0;
    buffer.device_interface = nullptr;
    buffer.host = reinterpret_cast<uint8_t *>(slice.data);  // never NULL: tasks without tokens or cache call no kernel
    buffer.flags = 0;
    buffer.type = halide_type_t(static_cast<halide_type_code_t>(type.code), type.bits, 1);
    buffer.dimensions = slice.rank;
    buffer.dim = dim;
    buffer.padding = nullptr;
    token_bytes = 0;
    token_dim = -1;
    for (int axis = 0; axis < slice.rank; axis++) {
        const int d = slice.rank - 1 - axis;  // Halide counts from the innermost
        const int64_t extent = slice.extent[axis];
        // A stride that is never taken may not fit into 32 bits; innermost, kernels insist on 1, but for the 0 of a value
        // that serves all channels.
        const int64_t stride = d == 0 ? (extent > 1 && slice.stride[axis] == 0 ? 0 : 1) : extent == 1 ? 0 : slice.stride[axis];
        dim[d].min = 0;
        dim[d].extent = static_cast<int32_t>(extent);
        dim[d].stride = static_cast<int32_t>(stride);
        dim[d].flags = 0;
        if (axis == slice.token_axis) {
            token_dim = d;
            token_bytes = slice.stride[axis] * slice.bytes;
        }
    }
}

void KernelCall::bind(const BoundKernel &bound, const Problem &problem, const Arguments &arguments, void *context) {
    user_context = context;
    scale = problem.scale;
    causal = problem.causal;
    present = 1;
    absent = 0;
    most_tokens = most_cached = 1;
    reads_bits = writes_bits = 0;
    const bool tiled = problem.head_mapping == HALATION_HEADS_TILED;
    key_head_step = tiled ? 1 : static_cast<int32_t>(problem.value_heads / problem.heads);
    key_heads = static_cast<int32_t>(problem.heads);
    const auto place = [&](const Binding &binding) -> void * {
        switch (binding.source) {
        case Source::user_context:
            return &user_context;
        case Source::scale:
            return &scale;
        case Source::causal:
            return &causal;
        case Source::presence:
            return arguments.tensors[binding.tensor].given ? &present : &absent;
        case Source::tensor:
            return &buffers[binding.tensor].buffer;
        case Source::initial_bits:
            return &initial_bits.buffer;
        case Source::final_bits:
            return &final_bits.buffer;
        case Source::reads_bits:
            return &reads_bits;
        case Source::writes_bits:
            return &writes_bits;
        case Source::sequences:
            return &sequences.buffer;
        case Source::most_tokens:
            return &most_tokens;
        case Source::most_cached:
            return &most_cached;
        case Source::key_head_step:
            return &key_head_step;
        case Source::key_heads:
            return &key_heads;
        }
        return nullptr;
    };
    for (int i = 0; i < bound.argument_count; i++) argv[i] = place(bound.arguments[i]);
}

}  // namespace halation::runtime
