#include "gpu_table.h"

#include <algorithm>

namespace halation::runtime {
namespace {

enum class Lengths { all, single, others };

bool fits(const Sequence &sequence, Lengths lengths) {
    return lengths == Lengths::all || (sequence.length == 1) == (lengths == Lengths::single);
}

void add_launch(const Arguments &arguments, const BoundKernel *kernel, Lengths lengths, size_t words_apart, GpuTable *table) {
    std::vector<int32_t> &words = table->words;
    words.resize((words.size() + words_apart - 1) / words_apart * words_apart);
    GpuLaunch launch{kernel, words.size(), 0, 1};
    for (int64_t n = 0; n < arguments.sequences; n++) {
        const Sequence sequence = arguments.sequence(n);
        const bool carries = kernel->takes_state && !sequence.skipped;
        const bool hands_on = carries && arguments.writes_state;
        if (!fits(sequence, lengths) || (sequence.length == 0 && !hands_on)) continue;
        TableEntry entry;
        entry.batch = static_cast<int32_t>(sequence.batch);
        entry.first_token = static_cast<int32_t>(sequence.begin);
        entry.tokens = static_cast<int32_t>(sequence.length);
        entry.read_row = carries && !sequence.from_zero ? static_cast<int32_t>(sequence.read_row) : -1;
        entry.write_row = hands_on ? static_cast<int32_t>(sequence.write_row) : -1;
        entry.flags = sequence.skipped ? 1 : 0;
        const auto *begin = reinterpret_cast<const int32_t *>(&entry);
        words.insert(words.end(), begin, begin + table_words);
        launch.entries++;
        launch.tokens = std::max(launch.tokens, entry.tokens);
    }
    if (launch.entries > 0) table->launches.push_back(launch);
}

}  // namespace

void make_table(const halation_plan &plan, const Arguments &arguments, size_t alignment, GpuTable *table) {
    const size_t words_apart = alignment / sizeof(int32_t);
    const bool alike = plan.many == plan.one;
    add_launch(arguments, plan.one, alike ? Lengths::all : Lengths::single, words_apart, table);
    if (!alike) add_launch(arguments, plan.many, Lengths::others, words_apart, table);
}

}  // namespace halation::runtime
