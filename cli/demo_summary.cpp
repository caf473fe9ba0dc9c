#include "demo_results.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace halation::demo {
namespace {

std::string error_text(double error) {
    return std::isnan(error) ? "-" : fmt::format("{:.1e}", error);
}
std::string microseconds(double seconds) {
    return std::isnan(seconds) ? "-" : fmt::format("{:.2f}", seconds * 1e6);
}

}  // namespace

int64_t Results::timed_context() const {
    return std::min(timed_tokens, tokens);
}
int64_t Results::parallel_context() const {
    return std::min(parallel_tokens, tokens);
}
int64_t Results::cache_bytes(int64_t context) const {
    return context * heads * 2 * dim * static_cast<int64_t>(sizeof(float));
}

const Entry *Results::find(const std::string &recurrence) const {
    for (const Entry &entry : entries) {
        if (entry.ran() && entry.memory->recurrence == recurrence) return &entry;
    }
    return nullptr;
}

std::string crossover_words(const Cost &cost) {
    const double at = crossover(cost.linear, cost.softmax);
    if (!std::isnan(at)) return fmt::format("softmax costs more from about {:.0f} tokens on", at);
    const bool above = cost.softmax.front().y > cost.linear.front().y;
    return fmt::format("softmax costs {} at every length measured, {:.0f} to {:.0f} tokens", above ? "more" : "less",
                       cost.linear.front().x, cost.linear.back().x);
}

std::string summary(const Results &results) {
    std::string out = fmt::format("{}: {} bytes{}, {} predictions scored; seed {}, {} thread{}\n\n", results.file, results.tokens,
                                  results.cut ? " (the start of it)" : "", results.scored, results.seed, results.threads,
                                  results.threads == 1 ? "" : "s");
    out += fmt::format("{:<18} {:>9} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11}\n", "", "next byte", "bits/", "recurr.",
                       "recurr.", "chunkw.", "prefill", "decode", "state");
    out += fmt::format("{:<18} {:>9} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11}\n", "", "right", "byte", "/ chunkw.", "/ paral.",
                       "/ paral.", "us/token", "us/token", "bytes");
    for (const Entry &entry : results.entries) {
        if (!entry.ran()) {
            out += fmt::format("{:<18} {}\n", entry.memory->recurrence, entry.missing);
            continue;
        }
        const int64_t bytes = entry.timing.state_bytes;
        out += fmt::format("{:<18} {:>7.1f} % {:>6.3f} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11}\n", entry.memory->recurrence,
                           100 * entry.score.accuracy, entry.score.bits, error_text(entry.whole_text_difference),
                           error_text(entry.agreement.recurrent_to_parallel), error_text(entry.agreement.chunkwise_to_parallel),
                           microseconds(entry.timing.prefill), microseconds(entry.timing.decode),
                           bytes ? bytes : results.cache_bytes(results.tokens));
    }
    out += fmt::format("{:<18} {:>7.1f} % {:>6.3f}\n", "(byte counts)", 100 * results.byte_counts.accuracy,
                       results.byte_counts.bits);
    out += fmt::format("{:<18} {:>7.1f} % {:>6.3f}\n\n", "(exact table)", 100 * results.context_counts.accuracy,
                       results.context_counts.bits);
    const size_t before = out.size();
    if (results.find("softmax")) out += "softmax has no state: its bytes are the KV cache of the whole text\n";
    if (!results.prefill.linear.empty()) out += fmt::format("prefill: {}\n", crossover_words(results.prefill));
    if (!results.decode.linear.empty()) out += fmt::format("decode:  {}\n", crossover_words(results.decode));
    if (out.size() > before) out += "\n";
    return out;
}

}  // namespace halation::demo
