// All that the demonstration found, and the two ways it is shown.
#ifndef HALATION_CLI_DEMO_RESULTS_H
#define HALATION_CLI_DEMO_RESULTS_H

#include "demo_measure.h"

#include <string>
#include <vector>

namespace halation::demo {

struct Entry {
    const Memory *memory = nullptr;
    std::string missing;  // why there is nothing below; empty: it was run
    Score score;
    std::vector<Point> state_norm;
    double whole_text_difference = 0;  // recurrent to chunkwise
    Agreement agreement{};
    Timing timing{};
    std::string kernel, isa;

    bool ran() const { return missing.empty(); }
};

struct Cost {  // seconds a token, by context length
    std::vector<Point> linear, softmax;
};

struct Results {
    std::string file;
    bool cut = false;
    int64_t tokens = 0, scored = 0, scored_every = 1;
    uint64_t seed = 0;
    int threads = 0;
    std::string processor;
    Score byte_counts, context_counts;
    std::vector<Entry> entries;
    Cost prefill, decode;  // empty if linear or softmax was not run

    int64_t timed_context() const;
    int64_t parallel_context() const;
    int64_t cache_bytes(int64_t context) const;  // keys and values of all heads in float32

    // The entry of a recurrence that was run, or nullptr.
    const Entry *find(const std::string &recurrence) const;
};

// Where the curves cross, in words.
std::string crossover_words(const Cost &cost);

std::string summary(const Results &results);  // plain text
std::string report(const Results &results);   // one HTML page that needs nothing else

}  // namespace halation::demo
#endif
