#include "run_gpu.h"
#include "gpu_call.h"
#include "gpu_table.h"
#include "status.h"
#include "text.h"
#include "types.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace halation::runtime {
namespace {

// Where no tensor is, so that its extents can be looked at: row-major, one sequence, one token, one row.
TensorView compact_view(const TensorSpec &spec, const Problem &problem) {
    TensorView view{};
    int64_t stride = 1;
    for (int axis = spec.rank - 1; axis >= 0; axis--) {
        const Letter letter = spec.letter[axis];
        const int64_t extent = letter == letter_H   ? problem.heads
                               : letter == letter_G ? problem.value_heads
                               : letter == letter_K ? problem.key_dim
                               : letter == letter_V ? problem.value_dim
                                                    : 1;
        view.extent[axis] = extent;
        view.stride[axis] = stride;
        stride *= extent;
    }
    return view;
}

// Bytes from the first element on, and before it.
struct Reach {
    uint64_t forward, back;
};

Reach reach_of(const TensorSpec &spec, const TensorView &view) {
    Reach reach{static_cast<uint64_t>(spec.bytes), 0};
    for (int axis = 0; axis < spec.rank; axis++) {
        const int64_t steps = view.extent[axis] - 1, stride = view.stride[axis];
        if (steps > 0) (stride < 0 ? reach.back : reach.forward) += static_cast<uint64_t>(steps * std::abs(stride) * spec.bytes);
    }
    return reach;
}

// What would make less of a tensor, if anything: of what it has more than one.
const char *advice(const TensorSpec &spec, const TensorView &view) {
    const struct {
        Letter letter;
        const char *text;
    } known[] = {{letter_B, "; share the batch out over several calls"},
                 {letter_N, "; give fewer rows of it"},
                 {letter_T, "; give fewer tokens a call"},
                 {letter_G, "; share the heads out over several calls"},
                 {letter_H, "; share the heads out over several calls"},
                 {letter_V, "; share the value channels out over several calls"}};
    for (const auto &[letter, text] : known)
        for (int axis = 0; axis < spec.rank; axis++)
            if (spec.letter[axis] == letter && view.extent[axis] > 1) return text;
    return "";
}

// Kernels reckon offsets in 32 bits, and count elements so, those that share a place too.
halation_status check_reach(const halation_plan &plan, const TensorSpec &spec, const TensorView &view, const Reach &reach) {
    const auto bytes = static_cast<uint64_t>(spec.bytes);
    uint64_t furthest = std::max(reach.forward / bytes - 1, reach.back / bytes);
    uint64_t count = 1;
    for (int axis = 0; axis < spec.rank; axis++) {
        const auto extent = static_cast<uint64_t>(view.extent[axis]);
        // An axis may be gone along to its end, one step behind its last element.
        furthest = std::max(furthest, extent * static_cast<uint64_t>(std::abs(view.stride[axis])));
        count = extent > 0 && count > INT64_MAX / extent ? INT64_MAX : count * extent;
    }
    if (furthest > INT32_MAX)
        return fail(HALATION_UNSUPPORTED, "%s: reaches %llu elements from its first; kernels of backend %s reach %d%s", spec.name,
                    static_cast<unsigned long long>(furthest), plan.problem.backend, INT32_MAX, advice(spec, view));
    if (count > INT32_MAX)
        return fail(HALATION_UNSUPPORTED, "%s: has %llu elements; kernels of backend %s count to %d%s", spec.name,
                    static_cast<unsigned long long>(count), plan.problem.backend, INT32_MAX, advice(spec, view));
    if (reach.back > 0 && !plan.device->reaches_back())
        return fail(HALATION_UNSUPPORTED, "%s: has a negative stride; backend %s takes strides of 0 and more", spec.name,
                    plan.problem.backend);
    return HALATION_OK;
}

// That no tensor is too large for kernels whatever the call: with one sequence of one token.
halation_status check_sizes(const halation_plan &plan) {
    const Problem &problem = plan.problem;
    for (int i = 0; i < plan.tensor_count; i++) {
        const TensorSpec &spec = plan.tensors[i];
        const TensorView view = compact_view(spec, problem);
        int64_t count = 1;
        for (int axis = 0; axis < spec.rank; axis++) count *= view.extent[axis];  // at most 2^60: problem.cpp
        if (count > INT32_MAX)
            return fail(HALATION_UNSUPPORTED,
                        "value_heads, key_dim, value_dim: got %lld, %lld and %lld; %s of one sequence has %lld elements, and "
                        "kernels of backend %s reach %d%s",
                        static_cast<long long>(problem.value_heads), static_cast<long long>(problem.key_dim),
                        static_cast<long long>(problem.value_dim), spec.name, static_cast<long long>(count), problem.backend,
                        INT32_MAX, advice(spec, view));
    }
    return HALATION_OK;
}

// States and normalizers are carried together: kernels know one row for both.
halation_status check_carried(const halation_plan &plan, const Arguments &arguments) {
    for (const int *which : {plan.initial, plan.final, plan.snapshot}) {
        if (which[carried_normalizer] < 0) continue;
        const bool state = arguments.tensors[which[carried_state]].given;
        if (state != arguments.tensors[which[carried_normalizer]].given)
            return fail(HALATION_UNSUPPORTED, "%s: given without %s; backend %s takes both or neither",
                        plan.tensors[which[state ? carried_state : carried_normalizer]].name,
                        plan.tensors[which[state ? carried_normalizer : carried_state]].name, plan.problem.backend);
    }
    return HALATION_OK;
}

// Whether launches hand vectors of key channels on: those of a normalizer, or with decays of their own.
bool keeps_vectors(const halation_row &row, const halation_kernel &kernel) {
    if (row.normalizer_dims) return true;
    for (int i = 0; i < row.input_count; i++)
        if (row.inputs[i].role == HALATION_ROLE_GATE && std::strchr(row.inputs[i].dims, 'K')) return kernel.chunk > 1;
    return false;
}

class GpuRun {
public:
    GpuRun(const halation_plan &plan, const Arguments &arguments)
        : plan_(plan), arguments_(arguments), device_(*plan.device), memory_(*plan.device_memory), handles_(device_) {}

    halation_status run() {
        HALATION_TRY(check_carried(plan_, arguments_));
        make_table(plan_, arguments_, device_.alignment(), &table_);
        if (table_.launches.empty()) return HALATION_OK;
        HALATION_TRY(check_kept());
        HALATION_TRY(reach_tensors());
        HALATION_TRY(reach_states());
        HALATION_TRY(reach_table());
        HALATION_TRY(device_.put(table_data_, table_.words.data(), table_.words.size()));
        for (const GpuLaunch &launch : table_.launches) HALATION_TRY(call(launch));
        return device_.submit();
    }

private:
    // What kernels keep between launches of their own can be reached, too.
    halation_status check_kept() const {
        for (const GpuLaunch &launch : table_.launches)
            HALATION_TRY(plan_.has_cache                 ? check_kept_of_cache(launch)
                         : plan_.problem.row->state_dims ? check_kept_of_chunks(launch)
                                                         : check_kept_of_parts(launch));
        return HALATION_OK;
    }

    // Sums over parts of a cache.
    halation_status check_kept_of_cache(const GpuLaunch &launch) const {
        if (kept_of_token(plan_, *launch.kernel->kernel) <= INT32_MAX) return HALATION_OK;
        return fail(HALATION_UNSUPPORTED,
                    "value_heads, value_dim: got %lld and %lld; backend %s takes fewer than %d value channels of all "
                    "heads in form recurrent%s: use form parallel",
                    static_cast<long long>(plan_.problem.value_heads), static_cast<long long>(plan_.problem.value_dim),
                    plan_.problem.backend, INT32_MAX / (HALATION_CACHE_FLOATS * HALATION_CACHE_PARTS),
                    plan_.problem.form == HALATION_FORM_AUTO ? ", which form auto takes for one token" : "");
    }

    // Where keys are kept as features, all of a sequence's; and sums over parts of it.
    halation_status check_kept_of_parts(const GpuLaunch &launch) const {
        const int64_t kept = kept_of_sequence(plan_, *launch.kernel->kernel, launch.tokens);
        if (kept <= INT32_MAX) return HALATION_OK;
        return fail(HALATION_UNSUPPORTED,
                    "value_heads, key_dim, value_dim: got %lld, %lld and %lld; of a sequence of %d tokens kernels of "
                    "backend %s would keep %lld floats, and can keep %d: share the %s out over several calls",
                    static_cast<long long>(plan_.problem.value_heads), static_cast<long long>(plan_.problem.key_dim),
                    static_cast<long long>(plan_.problem.value_dim), launch.tokens, plan_.problem.backend,
                    static_cast<long long>(kept), INT32_MAX, plan_.problem.value_heads > 1 ? "heads" : "value channels");
    }

    // Vectors of a chunk's tokens or, otherwise, their products, of two writers at most.
    halation_status check_kept_of_chunks(const GpuLaunch &launch) const {
        const halation_kernel &kernel = *launch.kernel->kernel;
        if (kernel.chunk == 0) return HALATION_OK;
        const int64_t of_token = keeps_vectors(*plan_.problem.row, kernel)
                                     ? kept_of_token(plan_, kernel)
                                     : plan_.problem.value_heads * kernel.chunk * HALATION_KEPT_VECTORS;
        const int64_t most = INT32_MAX / of_token - kernel.chunk;
        if (most < 2)
            return fail(HALATION_UNSUPPORTED,
                        "value_heads, key_dim: got %lld and %lld; of one token kernels of backend %s would keep more in form "
                        "chunkwise than they can: use form recurrent",
                        static_cast<long long>(plan_.problem.value_heads), static_cast<long long>(plan_.problem.key_dim),
                        plan_.problem.backend);
        if (launch.tokens < most) return HALATION_OK;
        return fail(HALATION_UNSUPPORTED,
                    "a sequence has %d tokens; with %lld heads of %lld key channels, kernels of backend %s take fewer than "
                    "%lld in a call: carry the state from call to call",
                    launch.tokens, static_cast<long long>(plan_.problem.value_heads),
                    static_cast<long long>(plan_.problem.key_dim), plan_.problem.backend, static_cast<long long>(most));
    }

    halation_status reach(const TensorSpec &spec, const TensorView &view, KernelBuffer *buffer) {
        const Reach reach = reach_of(spec, view);
        HALATION_TRY(check_reach(plan_, spec, view, reach));
        uint64_t handle;
        HALATION_TRY(handles_.point_to(spec.name, {view.memory, view.data, view.memory_bytes}, reach.forward, &handle));
        GpuCall::fill(spec, view, handle, buffer);
        return HALATION_OK;
    }

    // The same of memory of the plan's own.
    halation_status reach_own(PlanMemory::Purpose purpose, const TensorSpec &spec, TensorView view, KernelBuffer *buffer) {
        const Reach reach = reach_of(spec, view);
        HALATION_TRY(check_reach(plan_, spec, view, reach));
        Location location;
        void *data;
        HALATION_TRY(memory_.get(purpose, reach.forward, &data));
        HALATION_TRY(device_.locate(spec.name, data, &location));
        view.data = location.address;
        view.memory = location.memory;
        view.memory_bytes = location.bytes;
        return this->reach(spec, view, buffer);
    }

    halation_status reach_tensors() {
        for (int i = 0; i <= plan_.output; i++) {
            TensorView view = arguments_.tensors[i];
            bool empty = !view.data;
            for (int axis = 0; axis < plan_.tensors[i].rank; axis++) empty |= view.extent[axis] == 0;
            if (!empty) {
                HALATION_TRY(reach(plan_.tensors[i], view, &buffers_[i]));
                continue;
            }
            // Without tokens. Kernels look at the nearest token there is, whose values they drop: one must be there.
            for (int axis = 0; axis < plan_.tensors[i].rank; axis++) {
                view.extent[axis] = std::max<int64_t>(view.extent[axis], 1);
                view.stride[axis] = 0;
            }
            HALATION_TRY(reach_own(PlanMemory::filler, plan_.tensors[i], view, &buffers_[i]));
        }
        return HALATION_OK;
    }

    halation_status reach_states() {
        for (int c = 0; c < carried_count; c++) {
            const int initial = plan_.initial[c], final = plan_.final[c], snapshot = plan_.snapshot[c];
            if (initial < 0) continue;
            const auto there = [&](int tensor) { return arguments_.tensors[tensor].given && arguments_.tensors[tensor].data; };
            for (const int tensor : {initial, final, snapshot})
                if (there(tensor)) HALATION_TRY(reach(plan_.tensors[tensor], arguments_.tensors[tensor], &buffers_[tensor]));
            // An absent state is memory that is not looked at: a row of the other one, or of our own.
            if (!there(initial) && !there(final)) {
                const TensorView row = compact_view(plan_.tensors[final], plan_.problem);
                HALATION_TRY(reach_own(PlanMemory::filler, plan_.tensors[final], row, &buffers_[final]));
            }
            if (!there(initial)) buffers_[initial] = buffers_[final];
            if (there(initial) && !there(final)) buffers_[final] = buffers_[initial];
            if (table_.kept_rows == 0) continue;
            TensorSpec spec = plan_.tensors[snapshot];
            spec.type = float32;
            spec.bytes = sizeof(float);
            TensorView rows = compact_view(spec, plan_.problem);
            rows.extent[0] = table_.kept_rows;
            const auto purpose = c == carried_state ? PlanMemory::kept_state : PlanMemory::kept_normalizer;
            const halation_status status = reach_own(purpose, spec, rows, &kept_[c]);
            if (status == HALATION_UNSUPPORTED)
                return fail(HALATION_UNSUPPORTED,
                            "snapshots: %lld sequences are broken off for them, whose states are more than kernels of backend %s "
                            "reach: give %sfewer sequences a call",
                            static_cast<long long>(table_.kept_rows), plan_.problem.backend,
                            same_type(plan_.problem.state_type, float32) ? "the final states, or " : "");
            HALATION_TRY(status);
        }
        return HALATION_OK;
    }

    halation_status reach_table() {
        HALATION_TRY(memory_.get(PlanMemory::table, table_.words.size() * sizeof(int32_t), &table_data_));
        return device_.locate("sequences", table_data_, &table_location_);
    }

    const KernelBuffer &rows_of(StateIn tensor, int c) const {
        switch (tensor) {
        case StateIn::initial:
            return buffers_[plan_.initial[c]];
        case StateIn::final:
            return buffers_[plan_.final[c]];
        case StateIn::snapshot:
            return buffers_[plan_.snapshot[c]];
        case StateIn::kept:
            break;
        }
        return kept_[c];
    }

    halation_status call(const GpuLaunch &launch) {
        GpuCall call(plan_, *launch.kernel, arguments_, GpuCall::Mode::launch);
        for (int i = 0; i <= plan_.output; i++) call.buffer(i) = buffers_[i];
        for (int c = 0; c < carried_count; c++) {
            if (plan_.initial[c] < 0) continue;
            call.buffer(plan_.initial[c]) = rows_of(launch.from, c);
            call.buffer(plan_.final[c]) = rows_of(launch.to, c);
        }
        const bool bits = !same_type(plan_.problem.state_type, float32);
        call.set_bits(bits && launch.from != StateIn::kept, bits && launch.to != StateIn::kept);
        const TensorSpec &output = plan_.tensors[plan_.output];
        halide_dimension_t *dim = call.buffer(plan_.output).dim;
        dim[output.rank - 1 - output.token_axis].extent = launch.tokens;
        call.set_most(launch.tokens, launch.cached);
        dim[output.rank - 1 - output.row_axis].extent = launch.entries;
        const size_t offset = launch.first_word * sizeof(int32_t);
        const Location entries = {table_location_.memory, table_location_.address + offset, table_location_.bytes - offset};
        Handles handle_of_table(device_);  // of this launch alone
        uint64_t handle;
        HALATION_TRY(
            handle_of_table.point_to("sequences", entries, static_cast<uint64_t>(launch.entries) * sizeof(TableEntry), &handle));
        GpuCall::fill_sequences(launch.entries, handle, &call.sequences());
        return call.run();
    }

    const halation_plan &plan_;
    const Arguments &arguments_;
    Device &device_;
    PlanMemory &memory_;
    Handles handles_;
    GpuTable table_;
    void *table_data_ = nullptr;
    Location table_location_{};
    KernelBuffer buffers_[most_tensors];
    KernelBuffer kept_[carried_count];
};

// A call of one token of one sequence that launches nothing, as if the problem had that many key channels.
halation_status dry_call(const halation_plan &plan, const BoundKernel &bound, GpuCall::Mode mode, int64_t key_dim) {
    Problem problem = plan.problem;
    problem.key_dim = key_dim;
    const Arguments none{};
    GpuCall call(plan, bound, none, mode);
    for (int i = 0; i < plan.tensor_count; i++)
        GpuCall::fill(plan.tensors[i], compact_view(plan.tensors[i], problem), 1, &call.buffer(i));
    GpuCall::fill_sequences(1, 1, &call.sequences());
    return call.run();
}

halation_status dry_calls(const halation_plan &plan, GpuCall::Mode mode, int64_t key_dim) {
    HALATION_TRY(dry_call(plan, *plan.one, mode, key_dim));
    return plan.many == plan.one ? HALATION_OK : dry_call(plan, *plan.many, mode, key_dim);
}

// What a block takes grows with the key channels. Where that is too much for the device, the caller learns how many it can have.
halation_status dry_calls(const halation_plan &plan, GpuCall::Mode mode) {
    const int64_t wanted = plan.problem.key_dim;
    const halation_status status = dry_calls(plan, mode, wanted);
    if (status != HALATION_UNSUPPORTED) return status;
    Text<700> reason;
    reason.add("%s", halation_last_message());
    int64_t most = 0;
    const auto search = plan.device->capturing() ? mode : GpuCall::Mode::prepare;  // registers count, too
    if (plan.one->kernel->key_dim == 0 && plan.many->kernel->key_dim == 0)
        for (int64_t above = wanted; above - most > 1;) {
            const int64_t between = most + (above - most) / 2;
            (dry_calls(plan, search, between) == HALATION_OK ? most : above) = between;
        }
    if (most == 0) return fail(HALATION_UNSUPPORTED, "%s", reason.c_str());
    return fail(HALATION_UNSUPPORTED, "key_dim: got %lld; may be 1 to %lld on this device: %s", static_cast<long long>(wanted),
                static_cast<long long>(most), reason.c_str());
}

}  // namespace

halation_status check_gpu(const halation_plan &plan) {
    HALATION_TRY(check_sizes(plan));
    return dry_calls(plan, GpuCall::Mode::check);
}

halation_status prepare_gpu(const halation_plan &plan) {
    return dry_calls(plan, GpuCall::Mode::prepare);
}

halation_status run_gpu(const halation_plan &plan, const Arguments &arguments) {
    return GpuRun(plan, arguments).run();
}

}  // namespace halation::runtime
