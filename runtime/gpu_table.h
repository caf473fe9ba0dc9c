// Which sequences, or pieces of sequences, go to which launch of a call on a GPU: the tables that kernels read, of all launches.
#ifndef HALATION_RUNTIME_GPU_TABLE_H
#define HALATION_RUNTIME_GPU_TABLE_H

#include "gpu_pieces.h"

#include <vector>

namespace halation::runtime {

struct GpuLaunch {
    const BoundKernel *kernel;
    StateIn from, to;   // what its read and write rows are of
    size_t first_word;  // of its entries, in the words below
    int32_t entries;    // sequences, or pieces
    int32_t tokens;     // of the longest
    int32_t cached;     // of the longest cache
};

struct GpuTable {
    std::vector<int32_t> words;
    std::vector<GpuLaunch> launches;  // in the order in which they run
    int64_t kept_rows = 0;
};

// Floats that a launch keeps of a token in its largest array, at most, which halation_kernels.h says.
int64_t kept_of_token(const halation_plan &plan, const halation_kernel &kernel);

// Floats that it keeps of a sequence at most: those of its tokens or, where there is neither a state nor a cache, sums over them.
int64_t kept_of_sequence(const halation_plan &plan, const halation_kernel &kernel, int64_t tokens);

// `alignment`: of each launch's entries, in bytes.
void make_table(const halation_plan &plan, const Arguments &arguments, size_t alignment, GpuTable *table);

}  // namespace halation::runtime
#endif
