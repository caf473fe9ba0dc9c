#include "demo_memories.h"

#include <cmath>
#include <fmt/format.h>

namespace halation::demo {
namespace {

// Chosen by hand on examples/demo.txt, and the same for every recurrence.
constexpr double half_life = 4096;                                     // tokens
constexpr double shortest_half_life = 2048, longest_half_life = 8192;  // of the channels
constexpr double kept_at_blank_line = 0.75;                            // gated only
constexpr double beta = 1.0 / 16;                                      // share of the error that a write mends
constexpr double key_length = 128;                                     // linear_normalized only
constexpr double sharpness = 24;                                       // softmax only

using Value = std::function<float(const Task &, int64_t, int, int)>;

Value constant(double value) {
    return [value](const Task &, int64_t, int, int) { return static_cast<float>(value); };
}

double log_decay(double half_life_in_tokens) {
    return -std::log(2.0) / half_life_in_tokens;
}

Gate decay_per_head() {
    return {"g", fmt::format("g = -ln 2 / {:.0f}", half_life), constant(log_decay(half_life))};
}

Gate decay_per_channel(const char *input) {
    return {input,
            fmt::format("{} = -ln 2 / h, h from {:.0f} to {:.0f}, evenly in log h over the channels", input, shortest_half_life,
                        longest_half_life),
            [](const Task &, int64_t, int, int channel) {
                const double place = channel / (dim - 1.0);
                return static_cast<float>(
                    log_decay(shortest_half_life * std::pow(longest_half_life / shortest_half_life, place)));
            }};
}

bool ends_blank_line(const Task &task, int64_t token) {
    if (task.byte(token) != '\n') return false;
    int64_t before = token - 1;
    while (before >= 0 && task.byte(before) == '\r') before--;
    return before >= 0 && task.byte(before) == '\n';
}

Gate decay_at_blank_lines() {
    return {"g", fmt::format("g = ln {:.2f} at the end of a blank line, else -ln 2 / {:.0f}", kept_at_blank_line, half_life),
            [](const Task &task, int64_t token, int, int) {
                return static_cast<float>(ends_blank_line(task, token) ? std::log(kept_at_blank_line) : log_decay(half_life));
            }};
}

Gate write_strength() {
    return {"beta", "beta = 1/16", constant(beta)};
}

// The plain vectors of the task, times a factor.
Gate queries_times(const char *input, double factor, std::string listed) {
    return {input, std::move(listed), [factor](const Task &task, int64_t token, int head, int channel) {
                return static_cast<float>(factor) * task.queries()[(token * heads + head) * dim + channel];
            }};
}
Gate keys_times(const char *input, double factor, std::string listed) {
    return {input, std::move(listed), [factor](const Task &task, int64_t token, int head, int channel) {
                return static_cast<float>(factor) * task.keys()[(token * heads + head) * dim + channel];
            }};
}

std::vector<Memory> make_memories() {
    std::vector<Memory> all;
    all.push_back({"linear", "adds every pair, keeps all"});
    all.push_back({"linear_normalized",
                   "the same on positive features of the keys, divided by their sum",
                   {queries_times("q", key_length, ""), keys_times("k", key_length, "")}});
    all.back().feature_map = "softmax";
    all.back().listed_besides = fmt::format("feature map softmax, over the channels, of q and k of length {:.0f}", key_length);
    all.push_back({"retention",
                   "adds, and forgets at one constant rate",
                   {{"gamma", fmt::format("gamma = 2^(-1/{:.0f})", half_life), constant(std::exp(log_decay(half_life)))}}});
    all.push_back({"gated", "adds, and forgets when a gate says so", {decay_at_blank_lines()}});
    all.push_back({"gla", "adds, each key channel forgets at its own rate", {decay_per_channel("g")}});
    all.push_back({"gla_outer",
                   "adds, key and value channels forget at their own rates",
                   {decay_per_channel("g"), decay_per_channel("gv")}});
    all.push_back({"rwkv6",
                   "as gla, read before it is written; the newest pair enters through a bonus",
                   {decay_per_channel("g"), {"bonus", "bonus = 1", constant(1)}}});
    all.push_back({"delta", "writes only what it did not know yet", {write_strength()}});
    all.push_back({"gated_delta", "the same, and forgets at one rate", {decay_per_head(), write_strength()}});
    all.push_back({"kda", "the same, each key channel forgets at its own rate", {decay_per_channel("g"), write_strength()}});
    // With a = k and b = -beta k the low-rank write is a delta rule that reads the state before it decays.
    all.push_back({"rwkv7",
                   "the delta rule as a low-rank write, on the state before it forgets",
                   {decay_per_channel("g"), keys_times("k", beta, "key k/16"), keys_times("a", 1, "a = k"),
                    keys_times("b", -beta, "b = -k/16")}});
    all.push_back({"softmax", "keeps every pair in a cache, reads all of them each time"});
    all.back().scale = sharpness;
    all.back().listed_besides = fmt::format("scores times {:.0f}", sharpness);
    return all;
}

}  // namespace

const Gate *Memory::gate(const std::string &input) const {
    for (const Gate &gate : gates) {
        if (gate.input == input) return &gate;
    }
    return nullptr;
}

std::string Memory::listed() const {
    std::string line = listed_besides;
    for (const Gate &gate : gates) {
        if (gate.listed.empty()) continue;
        line += (line.empty() ? "" : "; ") + gate.listed;
    }
    return line.empty() ? "none" : line;
}

const std::vector<Memory> &memories() {
    static const std::vector<Memory> all = make_memories();
    return all;
}

}  // namespace halation::demo
