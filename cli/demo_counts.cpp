#include "demo_counts.h"

#include <algorithm>

namespace halation::demo {

void ContextTable::see(int64_t t) {
    const uint8_t byte = task_.byte(t);
    for (int order = 0; order <= heads; order++) {
        Followers &followers = table_[label(t, order)];
        auto at = std::find_if(followers.counts.begin(), followers.counts.end(),
                               [&](const auto &entry) { return entry.first == byte; });
        if (at == followers.counts.end()) at = followers.counts.insert(at, {byte, 0});
        at->second++;
        followers.total++;
    }
    end_ = t + 1;
}

std::array<double, alphabet> ContextTable::probabilities() const {
    std::array<double, alphabet> p;
    p.fill(1.0 / alphabet);
    for (int order = 0; order <= heads; order++) {
        const auto found = table_.find(label(end_, order));
        if (found == table_.end()) break;
        const double seen = found->second.total, distinct = static_cast<double>(found->second.counts.size());
        for (double &x : p) x *= distinct / (seen + distinct);
        for (const auto &[byte, count] : found->second.counts) p[byte] += count / (seen + distinct);
    }
    return p;
}

uint64_t ContextTable::label(int64_t end, int order) const {
    uint64_t bytes = static_cast<uint64_t>(order) << 32;
    for (int i = 1; i <= order && i <= end; i++) bytes |= static_cast<uint64_t>(task_.byte(end - i)) << (8 * (i - 1));
    return bytes;
}

}  // namespace halation::demo
