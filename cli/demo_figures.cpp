#include "demo_figures.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace halation::demo {
namespace {

Colour colour_of(const std::string &recurrence) {
    if (recurrence == "softmax") return softmax_colour;
    for (const char *delta : {"delta", "gated_delta", "kda", "rwkv7"}) {
        if (recurrence == delta) return delta_colour;
    }
    return additive_colour;
}

// The smallest and largest y of all series, for an axis that holds them.
std::pair<double, double> range_of(const std::vector<Series> &all) {
    double low = INFINITY, high = 0;
    for (const Series &series : all) {
        for (const Point &point : series.points) {
            low = std::min(low, point.y);
            high = std::max(high, point.y);
        }
    }
    return {low, high};
}

std::vector<Point> in_microseconds(std::vector<Point> points) {
    for (Point &point : points) point.y *= 1e6;
    return points;
}

// The height of a curve at x, by straight lines on logarithmic axes.
double height_at(const std::vector<Point> &curve, double x) {
    size_t i = 1;
    while (i + 1 < curve.size() && curve[i].x < x) i++;
    const double part = std::log(x / curve[i - 1].x) / std::log(curve[i].x / curve[i - 1].x);
    return curve[i - 1].y * std::pow(curve[i].y / curve[i - 1].y, part);
}

}  // namespace

std::string bytes_text(double bytes) {
    if (bytes >= 1e9) return fmt::format("{:.3g} GB", bytes / 1e9);
    if (bytes >= 1e6) return fmt::format("{:.3g} MB", bytes / 1e6);
    if (bytes >= 1e3) return fmt::format("{:.3g} kB", bytes / 1e3);
    return fmt::format("{:.3g} B", bytes);
}

std::string prediction_figure(const Results &results) {
    BarChart chart;
    chart.title = "Next-byte accuracy and bits per byte of each recurrence";
    BarPanel accuracy, bits;
    accuracy.title = "Next byte right (more is better)";
    bits.title = "Bits per byte (less is better)";
    const Score &counts = results.byte_counts, &table = results.context_counts;
    double most_right = std::max(counts.accuracy, table.accuracy), most_bits = std::max(counts.bits, table.bits);
    for (const Entry &entry : results.entries) {
        chart.rows.emplace_back(entry.memory->recurrence, colour_of(entry.memory->recurrence));
        if (!entry.ran()) {
            accuracy.bars.emplace_back(NAN, "not run");
            bits.bars.emplace_back(NAN, "not run");
            continue;
        }
        most_right = std::max(most_right, entry.score.accuracy);
        most_bits = std::max(most_bits, entry.score.bits);
        accuracy.bars.emplace_back(100 * entry.score.accuracy, fmt::format("{:.1f}", 100 * entry.score.accuracy));
        bits.bars.emplace_back(entry.score.bits, fmt::format("{:.2f}", entry.score.bits));
    }
    accuracy.axis = linear_axis("share of bytes, %", 100 * most_right * 1.1);
    bits.axis = linear_axis("bits per byte", most_bits * 1.1);
    accuracy.references = {{100 * counts.accuracy, "byte counts"}, {100 * table.accuracy, "exact table"}};
    bits.references = {{counts.bits, "byte counts"}, {table.bits, "exact table"}};
    chart.panels = {accuracy, bits};
    return svg(chart);
}

std::string memory_figure(const Results &results, const Entry &entry) {
    const double last = static_cast<double>(results.tokens), state = static_cast<double>(entry.timing.state_bytes);
    const double per_token = static_cast<double>(results.cache_bytes(1)), equal = state / per_token;
    LineChart chart;
    chart.title = "Bytes of state and of KV cache against context length";
    chart.x = logarithmic_axis("context length, tokens", 1, last, 4);
    chart.y = logarithmic_axis("bytes, all heads", per_token, per_token * last, 10, bytes_text);
    chart.series = {
        {"state of " + entry.memory->recurrence, additive_colour, {{1, state}, {last, state}}},
        {"KV cache of softmax", softmax_colour, {{1, per_token}, {last, per_token * last}}},
    };
    chart.marks = {{{equal, state}, fmt::format("equal at {:.0f} tokens", equal)}};
    return svg(chart);
}

std::string cost_figure(const std::string &name, const Cost &cost) {
    LineChart chart;
    chart.title = name;
    chart.width = 430;  // two beside each other
    chart.series = {{"linear", additive_colour, in_microseconds(cost.linear), true},
                    {"softmax", softmax_colour, in_microseconds(cost.softmax), true}};
    const auto [low, high] = range_of(chart.series);
    chart.x = logarithmic_axis("context length, tokens", cost.linear.front().x, cost.linear.back().x, 2);
    chart.y = logarithmic_axis(name + ", µs a token", low, high, 10);
    const double at = crossover(cost.linear, cost.softmax);
    if (!std::isnan(at)) {
        chart.marks = {{{at, height_at(chart.series[0].points, at)}, fmt::format("{:.0f} tokens", at)}};
    }
    return svg(chart);
}

std::string norm_figure(const Results &results) {
    LineChart chart;
    chart.title = "Norm of the state over time";
    const auto add = [&](const char *recurrence, const char *name, Colour colour) {
        const Entry *entry = results.find(recurrence);
        if (entry && !entry->state_norm.empty()) chart.series.push_back({name, colour, entry->state_norm});
    };
    add("linear", "linear: keeps all", additive_colour);
    add("retention", "retention: constant decay", retention_colour);
    add("gated", "gated: blank lines", gated_colour);
    add("delta", "delta", delta_colour);
    if (chart.series.empty()) return "";

    const auto [low, high] = range_of(chart.series);
    chart.x = linear_axis("bytes read", static_cast<double>(results.tokens));
    chart.x.high = static_cast<double>(results.tokens);  // the curves end where the axis does
    while (chart.x.ticks.back().first > chart.x.high) chart.x.ticks.pop_back();
    chart.y = logarithmic_axis("norm of the state", low, high, 10);
    return svg(chart);
}

}  // namespace halation::demo
