// What the script draws: the places for charts, the same figures as tables for whoever has no script, and the data.
#include "parts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace halation::lab::report {
namespace {

using Json = nlohmann::ordered_json;

int value_of(const Result &result, const std::string &name, int otherwise) {
    const auto found = result.parameters.find(name);
    return found == result.parameters.end() ? otherwise : found->second;
}

// Also those that candidates have and the axis does not say, and the one of the shipped schedule, which charts mark.
std::vector<int> values_of(const View &view, const Axis &axis) {
    std::set<int> values(axis.values.begin(), axis.values.end());
    for (const Result &result : view.sweep.results) values.insert(value_of(result, axis.name, axis.shipped));
    values.insert(axis.shipped);
    return {values.begin(), values.end()};
}

std::string frontier_table(const View &view, const Axis &axis) {
    std::string out = "<details><summary>Figures</summary><div class='scroll'><table><thead><tr><th scope='col' class='n'>value"
                      "</th><th scope='col' class='n'>best ratio</th><th scope='col' class='n'>ms</th>"
                      "<th scope='col' class='n'>timed</th><th scope='col' class='n'>not timed</th></tr></thead><tbody>\n";
    for (const int value : values_of(view, axis)) {
        const Result *best = nullptr;
        size_t timed = 0, other = 0;
        for (const Result &result : view.sweep.results) {
            if (value_of(result, axis.name, axis.shipped) != value) continue;
            is_timed(result) ? timed++ : other++;
            if (is_timed(result) && is_positive(result.ratio) && (!best || result.ratio < best->ratio)) best = &result;
        }
        out +=
            fmt::format("<tr><th scope='row' class='n'>{}{}</th><td class='n'>{}</td><td class='n'>{}</td><td class='n'>{}</td>"
                        "<td class='n'>{}</td></tr>\n",
                        value, value == axis.shipped ? " (shipped)" : "", best ? fixed(best->ratio, 3) : "–",
                        best ? significant(1e3 * best->seconds, 4) : "–", timed, other);
    }
    return out + "</tbody></table></div></details>";
}

std::string axis_figures(const View &view, const std::vector<size_t> &axes) {
    if (axes.empty()) return "";
    constexpr const char *words = R"html(<section><h2>Time against each parameter</h2>
<p>A point is a candidate, its time over that of the shipped schedule. The line joins the best at each value. A click on a
point selects the candidate everywhere on the page.</p>
<p class='control' hidden><label for='cap'>Draw</label> <select id='cap'></select> <span id='cap-note' role='status'></span></p>
<p class='legend drawn' aria-hidden='true' hidden><span><i class='dot'></i>candidate</span> <span><i class='rule'></i>best at a value</span>
<span><i class='diamond'></i>best of all</span> <span><i class='square'></i>shipped</span> <span><i class='dashes'></i>shipped
value, shipped time</span> <span><i class='ring'></i>selected</span></p>
<div class='multiples'>
{}</div></section>
)html";
    std::string figures;
    for (const size_t a : axes) {
        const Axis &axis = view.sweep.axes[a];
        figures +=
            fmt::format("<figure><h3>{0}</h3><div class='plot' hidden><canvas data-axis='{1}' role='img' aria-label='Ratio "
                        "to the shipped time against {0}; the figures follow as a table'></canvas></div>{2}</figure>\n",
                        escape(axis.name), a, frontier_table(view, axis));
    }
    return fmt::format(words, figures);
}

constexpr const char *grid_section = R"html(<section id='grid-section' hidden><h2>Two parameters against each other</h2>
<p class='control'><label for='grid-rows'>Down</label> <select id='grid-rows'></select> <label for='grid-columns'>across</label>
<select id='grid-columns'></select></p>
<p>Each cell is the best ratio with these two values, whatever the others are. Blue cells are faster than the shipped
schedule, orange cells slower; the deeper, the more. ◆ is the best of all, ■ has the shipped values. A click selects the
candidate.</p>
<div class='scroll' id='grid'></div></section>
)html";

std::string pair_figures(const View &view) {
    std::string out = "<section class='drawn' hidden><h2>Progress and limit</h2>\n<div class='pair'>\n";
    out +=
        "<figure><h3>Best ratio so far</h3><div class='plot tall'><canvas id='progress' role='img' aria-label='The best ratio "
        "to the shipped time against the number of candidates tried'></canvas></div><figcaption>Against the number of candidates "
        "tried, those without a time included.</figcaption></figure>\n";
    if (view.knows_limit()) {
        const Limit &limit = view.sweep.limit;
        out += fmt::format(
            "<figure><h3>Roofline</h3><div class='plot tall'><canvas id='roofline' role='img' aria-label='Multiply-adds "
            "per second against multiply-adds per byte, under the roofs of memory bandwidth and of the multiply-add "
            "peak; the shares are in the summary'></canvas></div><figcaption>All candidates do the same {} "
            "multiply-adds per byte; {} is the lower roof there.</figcaption></figure>\n",
            significant(limit.multiply_adds / limit.bytes),
            std::string(limit.binding()) == "memory" ? "memory bandwidth" : "the multiply-add peak");
    }
    return out + "</div></section>\n";
}

// Six digits are more than was measured, and half as long as all of them.
Json number(double value) {
    return std::isfinite(value) ? Json(std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr)) : Json(nullptr);
}

}  // namespace

std::string charts(const View &view) {
    if (!view.best) return "";
    std::vector<size_t> axes;  // those that vary
    for (size_t a = 0; a < view.sweep.axes.size(); a++) {
        const std::vector<int> &values = view.sweep.axes[a].values;
        if (std::set<int>(values.begin(), values.end()).size() > 1) axes.push_back(a);
    }
    return "<noscript><p>The charts need JavaScript; all their figures are in the tables.</p></noscript>\n" +
           axis_figures(view, axes) + (axes.size() > 1 ? grid_section : "") + pair_figures(view);
}

// Columns rather than objects: a name a column, not a name a number.
std::string chart_data(const View &view) {
    const Sweep &sweep = view.sweep;
    Json json;
    json["axes"] = Json::array();
    for (const Axis &axis : sweep.axes) {
        json["axes"].push_back({{"name", axis.name}, {"values", values_of(view, axis)}, {"shipped", axis.shipped}});
    }
    json["best"] = view.best ? Json(view.best - sweep.results.data()) : Json(nullptr);
    json["shipped"] = view.shipped ? Json(view.shipped - sweep.results.data()) : Json(nullptr);
    json["shipped_seconds"] = number(view.shipped_seconds);
    json["token_heads"] = number(view.token_heads);
    json["head"] = view.head;
    if (view.knows_limit()) {
        json["limit"] = {{"multiply_adds", number(sweep.limit.multiply_adds)},
                         {"bytes", number(sweep.limit.bytes)},
                         {"multiply_adds_per_second", number(sweep.limit.multiply_adds_per_second)},
                         {"bytes_per_second", number(sweep.limit.bytes_per_second)}};
    }
    json["parameters"] = Json::array();  // pairs, not an object: a parameter may have any name
    for (const std::string &name : view.names) {
        Json values = Json::array();
        for (const Result &result : sweep.results) {
            Parameters all = view.shipped_parameters;  // what a candidate does not say is as it is shipped
            for (const auto &[other, value] : result.parameters) all[other] = value;
            values.push_back(all.count(name) ? Json(all[name]) : Json(nullptr));
        }
        json["parameters"].push_back({name, values});
    }
    Json &columns = json["columns"];
    for (const Result &result : sweep.results) {
        const bool timed = is_timed(result) && is_positive(result.ratio) && is_positive(result.seconds);
        const auto of_timed = [&](double value) { return timed ? number(value) : Json(nullptr); };
        columns["status"].push_back(name_of(result.status));
        columns["seconds"].push_back(of_timed(result.seconds));
        columns["least"].push_back(of_timed(result.least));
        columns["ratio"].push_back(of_timed(result.ratio));
        columns["ratio_low"].push_back(of_timed(result.ratio_low));
        columns["ratio_high"].push_back(of_timed(result.ratio_high));
        const bool checked = result.allowed != 0 || result.error != 0;
        columns["error"].push_back(!checked ? Json(nullptr) : std::isinf(result.error) ? Json(1e300) : number(result.error));
        columns["allowed"].push_back(checked ? number(result.allowed) : Json(nullptr));
        columns["compile_seconds"].push_back(is_positive(result.compile_seconds) ? number(result.compile_seconds)
                                                                                 : Json(nullptr));
    }
    // In ASCII, where what is not UTF-8 is replaced, and with every '<' escaped, so that no text can end the script element.
    std::string safe;
    for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
        safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
    }
    return safe;
}

}  // namespace halation::lab::report
