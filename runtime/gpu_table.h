// Which sequences go to which launch of a call on a GPU: the tables that kernels read, of all launches.
#ifndef HALATION_RUNTIME_GPU_TABLE_H
#define HALATION_RUNTIME_GPU_TABLE_H

#include "arguments.h"

#include <vector>

namespace halation::runtime {

// One sequence of a launch, as kernels see it: a column of `sequences`.
struct TableEntry {
    int32_t batch, first_token, tokens;
    int32_t read_row, write_row;  // -1: from zero, not wanted
    int32_t flags;                // 1: skipped
    int32_t first_cached, cached;
};
constexpr int table_words = 8;
static_assert(sizeof(TableEntry) == table_words * sizeof(int32_t), "kernels read it as 8 int32");

struct GpuLaunch {
    const BoundKernel *kernel;
    size_t first_word;  // of its entries, in the words below
    int32_t entries;    // sequences
    int32_t tokens;     // of the longest
    int32_t cached;     // of the longest cache
};

struct GpuTable {
    std::vector<int32_t> words;
    std::vector<GpuLaunch> launches;
};

// Floats that a launch keeps of a token at most, which halation_kernels.h says.
int64_t kept_of_token(const halation_plan &plan, const halation_kernel &kernel);

// Floats that it keeps of a sequence at most: those of its tokens or, where there is neither a state nor a cache, sums over them.
int64_t kept_of_sequence(const halation_plan &plan, const halation_kernel &kernel, int64_t tokens);

// `alignment`: of each launch's entries, in bytes.
void make_table(const halation_plan &plan, const Arguments &arguments, size_t alignment, GpuTable *table);

}  // namespace halation::runtime
#endif
