#include "walk.h"
#include "snapshots.h"
#include "stage.h"
#include "types.h"

#include <algorithm>

namespace halation::runtime {
namespace {

// Copies a state, of c = state and normalizer each, to the row of a snapshot.
void store_snapshot(const Task &task, const Slice *state, int64_t slot, const Region &region) {
    for (int c = 0; c < carried_count; c++) {
        const int snapshot = task.plan().snapshot[c];
        if (task.given(snapshot)) copy(state[c], task.tensor(snapshot, slot, region));
    }
}

class Walk {
public:
    Walk(Task &task, const BoundKernel &bound, const Region &region, int64_t segment)
        : task_(task), plan_(task.plan()), bound_(bound), region_(region), segment_(segment),
          snapshots_(plan_, task.run.arguments, task.sequence_index), memory_(task.scratch) {}

    // False: something failed, and is recorded.
    bool run() {
        if (!prepare()) return no_memory();
        const int64_t length = task_.sequence.length;
        for (int64_t token = 0;;) {
            for (; snapshots_.any() && snapshots_.stop(bound_, length) == token; snapshots_.next())
                if (!take_snapshot(token)) return false;
            if (token == length) break;
            int64_t tokens = std::min(segment_, length - token);
            if (snapshots_.any()) tokens = std::min(tokens, snapshots_.stop(bound_, length) - token);
            if (!call(token, tokens)) return false;
            for (int i = 0; i < moving_count_; i++) moving_[i]->buffer.host += moving_[i]->token_bytes * tokens;
            if (token == 0 && bound_.takes_state) read_state_where_it_was_left();
            token += tokens;
        }
        for (int c = 0; c < carried_count; c++)
            if (stored_[c].data) copy(state_[c], stored_[c]);
        return true;
    }

private:
    // Points every argument at this region of its tensor, or at scratch memory where that does not do.
    bool prepare() {
        call_.bind(bound_, plan_.problem, task_.run.arguments, task_.scratch.kernel_context());
        for (int i = 0; i < bound_.argument_count; i++) {
            if (bound_.arguments[i].source != Source::tensor) continue;
            const int tensor = bound_.arguments[i].tensor;
            const TensorSpec &spec = plan_.tensors[tensor];
            if (spec.carried >= 0) continue;
            KernelBuffer &buffer = call_.buffers[tensor];
            const Slice slice = task_.tensor(tensor, task_.sequence.batch, region_);
            if (!task_.run.division.staged[tensor])
                buffer.fill(slice, spec.type);
            else if (!stage_.add(spec, slice, segment_, &buffer, &memory_))
                return false;
            if (buffer.token_dim >= 0) moving_[moving_count_++] = &buffer;
            if (spec.cache_axis >= 0) {
                cached_dim_[cached_count_] = spec.rank - 1 - spec.cache_axis;
                cached_[cached_count_++] = &buffer;
            }
        }
        for (int c = 0; bound_.takes_state && c < carried_count; c++)
            if (plan_.initial[c] >= 0 && !prepare_state(c)) return false;
        return true;
    }

    // The kernel leaves a state in the caller's row, or, if that is not wanted or not for kernels to write, in scratch memory.
    bool prepare_state(int c) {
        const int initial = plan_.initial[c], final = plan_.final[c];
        const TensorSpec &spec = plan_.tensors[final];
        if (task_.given(final)) {
            const Slice row = task_.tensor(final, task_.sequence.write_row, region_);
            const bool staged = task_.run.division.staged[final];
            state_[c] = staged ? memory_.take_like(row, sizeof(float)) : row;
            if (staged) stored_[c] = row;
        } else {
            state_[c] = place_in_workspace(c, spec);
        }
        if (!state_[c].data) return false;
        call_.buffers[final].fill(state_[c], float32);
        call_.buffers[initial].fill(state_[c], float32);
        initial_[c] = state_[c];
        if (!task_.given(initial) || task_.sequence.from_zero) {
            set_zero(state_[c]);
        } else if (task_.run.division.staged[initial]) {
            copy(task_.tensor(initial, task_.sequence.read_row, region_), state_[c]);
        } else {
            initial_[c] = task_.tensor(initial, task_.sequence.read_row, region_);
            call_.buffers[initial].fill(initial_[c], float32);
        }
        return true;
    }

    Slice place_in_workspace(int c, const TensorSpec &spec) const {
        TensorView shape = {};
        for (int axis = 0; axis < spec.rank; axis++)
            if (spec.letter[axis] == letter_K) shape.extent[axis] = plan_.problem.key_dim;
        const Workspace &workspace = task_.run.workspace;
        const size_t place = workspace.per_worker * static_cast<size_t>(task_.worker) + workspace.offset[c];
        return compact_like(slice_of(spec, shape, 0, region_), task_.run.workspace_memory + place, sizeof(float));
    }

    bool call(int64_t token, int64_t tokens) {
        if (!run_kernel(token, tokens)) return false;
        stage_.take_back(token, tokens);
        return true;
    }

    bool run_kernel(int64_t token, int64_t tokens) {
        for (int i = 0; i < moving_count_; i++) moving_[i]->set_tokens(tokens);
        // A causal query sees the cache up to its own token; the queries are the cache's last tokens.
        if (plan_.problem.causal)
            for (int i = 0; i < cached_count_; i++)
                cached_[i]->dim[cached_dim_[i]].extent =
                    static_cast<int32_t>(task_.sequence.cached - (task_.sequence.length - token - tokens));
        stage_.bring(token, tokens);
        const int code = bound_.kernel->run(call_.argv);
        if (code != 0) record_failure(task_, *bound_.kernel, code);
        return code == 0;
    }

    bool no_memory() {
        record_failure(task_, *bound_.kernel, 0);
        return false;
    }

    void read_state_where_it_was_left() {
        for (int c = 0; c < carried_count; c++)
            if (plan_.initial[c] >= 0) call_.buffers[plan_.initial[c]] = call_.buffers[plan_.final[c]];
    }

    bool take_snapshot(int64_t token) {
        const Slice *now = token == 0 ? initial_ : state_;
        const int64_t rest = snapshots_.tokens() - token;
        if (rest == 0) {
            store_snapshot(task_, now, snapshots_.slot(), region_);
            return true;
        }
        // From the state as it is into the row of the snapshot, with outputs that nobody sees. The buffers are put back
        // afterwards.
        Borrowed memory(task_.scratch);
        int redirected[2 * carried_count + 1], count = 0;
        KernelBuffer kept[2 * carried_count + 1];
        const auto redirect = [&](int tensor, const Slice &slice, DLDataType type) {
            redirected[count] = tensor;
            kept[count++] = call_.buffers[tensor];
            call_.buffers[tensor].fill(slice, type);
        };
        Slice taken[carried_count];
        for (int c = 0; c < carried_count; c++) {
            const int snapshot = plan_.snapshot[c];
            if (snapshot < 0) continue;
            const bool direct = task_.given(snapshot) && !task_.run.division.staged[snapshot];
            taken[c] = direct ? task_.tensor(snapshot, snapshots_.slot(), region_) : memory.take_like(now[c], sizeof(float));
            if (!taken[c].data) return no_memory();
            redirect(plan_.initial[c], now[c], float32);
            redirect(plan_.final[c], taken[c], float32);
        }
        const TensorSpec &spec = plan_.tensors[plan_.output];
        Slice outputs = task_.tensor(plan_.output, task_.sequence.batch, region_);
        outputs.extent[outputs.token_axis] = rest;
        outputs = memory.take_like(outputs, spec.bytes);
        if (!outputs.data) return no_memory();
        redirect(plan_.output, outputs, spec.type);
        if (!run_kernel(token, rest)) return false;
        for (int i = 0; i < count; i++) call_.buffers[redirected[i]] = kept[i];
        store_snapshot(task_, taken, snapshots_.slot(), region_);
        return true;
    }

    Task &task_;
    const halation_plan &plan_;
    const BoundKernel &bound_;
    const Region region_;
    const int64_t segment_;
    Snapshots snapshots_;
    Borrowed memory_;
    Stage stage_;
    KernelCall call_;
    KernelBuffer *moving_[most_tensors];  // those with tokens
    KernelBuffer *cached_[most_tensors];  // those with a cache, and which of their dimensions it is
    int cached_dim_[most_tensors];
    int moving_count_ = 0, cached_count_ = 0;
    Slice state_[carried_count];    // float32: where the kernel leaves it
    Slice initial_[carried_count];  // where the first call reads it
    Slice stored_[carried_count];   // where it goes in the end, if that is elsewhere
};

}  // namespace

bool walk(Task &task, const BoundKernel &bound, const Region &region, int64_t segment) {
    return Walk(task, bound, region, segment).run();
}

}  // namespace halation::runtime
