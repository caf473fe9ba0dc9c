#include "gpu_table.h"

#include <algorithm>

namespace halation::runtime {
namespace {

class TableMaker {
public:
    TableMaker(const halation_plan &plan, const Arguments &arguments, size_t alignment, GpuTable *table)
        : plan_(plan), arguments_(arguments), words_apart_(alignment / sizeof(int32_t)), table_(*table) {}

    void make() {
        table_.words.clear();
        table_.launches.clear();
        add(plan_.one, plan_.many == plan_.one ? Lengths::all : Lengths::single);
        if (plan_.many != plan_.one) add(plan_.many, Lengths::others);
    }

private:
    enum class Lengths { all, single, others };

    static bool fits(const Sequence &sequence, Lengths lengths) {
        return lengths == Lengths::all || (sequence.length == 1) == (lengths == Lengths::single);
    }

    // A recurrent kernel is called token by token, others once.
    void add(const BoundKernel *kernel, Lengths lengths) {
        if (kernel->kernel->form != HALATION_FORM_RECURRENT) return add_launch(kernel, lengths, 0, INT32_MAX, false);
        int64_t longest = 0;
        for (int64_t n = 0; n < arguments_.sequences; n++) {
            const Sequence sequence = arguments_.sequence(n);
            if (fits(sequence, lengths)) longest = std::max(longest, sequence.length);
        }
        for (int64_t token = 0; token < std::max<int64_t>(longest, 1); token++)
            add_launch(kernel, lengths, token, 1, longest > 1);
    }

    void add_launch(const BoundKernel *kernel, Lengths lengths, int64_t token, int64_t most_tokens, bool several) {
        std::vector<int32_t> &words = table_.words;
        const bool keeps = several && kernel->takes_state && !arguments_.writes_state;
        words.resize((words.size() + words_apart_ - 1) / words_apart_ * words_apart_);
        GpuLaunch launch{kernel, words.size(), 0, 1, token > 0, keeps};
        for (int64_t n = 0; n < arguments_.sequences; n++) {
            const Sequence sequence = arguments_.sequence(n);
            const bool hands_on = sequence.length == 0 && !sequence.skipped && arguments_.writes_state && kernel->takes_state;
            if (!fits(sequence, lengths) || (token == 0 ? sequence.length == 0 && !hands_on : token >= sequence.length)) continue;
            TableEntry entry;
            entry.batch = static_cast<int32_t>(sequence.batch);
            entry.first_token = static_cast<int32_t>(sequence.begin + token);
            entry.tokens = static_cast<int32_t>(std::min(sequence.length - token, most_tokens));
            const int64_t row_after = arguments_.writes_state ? sequence.write_row : keeps ? n : -1;
            const int64_t row_before = token > 0 ? row_after : sequence.from_zero ? -1 : sequence.read_row;
            const bool carries = kernel->takes_state && !sequence.skipped;
            entry.read_row = carries ? static_cast<int32_t>(row_before) : -1;
            entry.write_row = carries ? static_cast<int32_t>(row_after) : -1;
            entry.flags = sequence.skipped ? 1 : 0;
            const auto *begin = reinterpret_cast<const int32_t *>(&entry);
            words.insert(words.end(), begin, begin + table_words);
            launch.entries++;
            launch.tokens = std::max(launch.tokens, entry.tokens);
        }
        if (launch.entries > 0) table_.launches.push_back(launch);
    }

    const halation_plan &plan_;
    const Arguments &arguments_;
    const size_t words_apart_;
    GpuTable &table_;
};

}  // namespace

void make_table(const halation_plan &plan, const Arguments &arguments, size_t alignment, GpuTable *table) {
    TableMaker(plan, arguments, alignment, table).make();
}

}  // namespace halation::runtime
