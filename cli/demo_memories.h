// The recurrences of the demonstration, with the constant gates each is given.
#ifndef HALATION_CLI_DEMO_MEMORIES_H
#define HALATION_CLI_DEMO_MEMORIES_H

#include "demo_task.h"

#include <functional>
#include <string>
#include <vector>

namespace halation::demo {

// One input besides the plain q, k, v, or instead of one of them. `at` gives its value at a token, head and
// channel; what the input's shape does not have, it ignores.
struct Gate {
    std::string input;
    std::string listed;  // for the report
    std::function<float(const Task &, int64_t token, int head, int channel)> at;
};

struct Memory {
    std::string recurrence;
    std::string rule;  // in words, for the report
    std::vector<Gate> gates = {};
    double scale = 1;                 // of the output; for softmax, of the scores
    std::string feature_map = "";     // empty: the recurrence's default
    std::string listed_besides = "";  // constants that are not gates, for the report

    const Gate *gate(const std::string &input) const;
    std::string listed() const;  // all constants, one line
};

// In the order of the report.
const std::vector<Memory> &memories();

}  // namespace halation::demo
#endif
