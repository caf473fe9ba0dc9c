#include "stage.h"

#include <algorithm>

namespace halation::runtime {

bool Stage::add(const TensorSpec &spec, const Slice &slice, int64_t tokens, KernelBuffer *buffer, Borrowed *memory) {
    Slice some = slice;
    if (slice.token_axis >= 0) some.extent[slice.token_axis] = std::min(tokens, slice.extent[slice.token_axis]);
    const Slice ours = memory->take_like(some, spec.bytes);
    if (!ours.data) return false;
    buffer->fill(ours, spec.type);
    buffer->token_bytes = 0;
    if (slice.token_axis >= 0)
        staged_[count_++] = {slice, ours, spec.output};
    else
        copy(slice, ours);
    return true;
}

void Stage::bring(int64_t token, int64_t tokens) {
    for (int i = 0; i < count_; i++)
        if (!staged_[i].output) copy(tokens_of(staged_[i].theirs, token, tokens), tokens_of(staged_[i].ours, 0, tokens));
}

void Stage::take_back(int64_t token, int64_t tokens) {
    for (int i = 0; i < count_; i++)
        if (staged_[i].output) copy(tokens_of(staged_[i].ours, 0, tokens), tokens_of(staged_[i].theirs, token, tokens));
}

}  // namespace halation::runtime
