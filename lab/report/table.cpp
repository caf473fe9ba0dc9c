// The table of all candidates. It is complete without the script, which sorts, filters and selects.
#include "parts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace halation::lab::report {
namespace {

constexpr size_t short_reason = 120;  // characters shown of a reason before it is unfolded

// The fastest first, then those without a time, in the order they were tried.
std::vector<size_t> sorted(const std::vector<Result> &results) {
    std::vector<size_t> order(results.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto key = [&](size_t i) {
        const Result &result = results[i];
        const double ratio = is_timed(result) && std::isfinite(result.ratio) ? result.ratio : HUGE_VAL;
        return std::pair(is_timed(result) ? 0 : static_cast<int>(result.status) + 1, ratio);
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    return order;
}

std::string reason_cell(const std::string &reason) {
    if (reason.size() <= short_reason) return "<td class='reason'>" + escape(reason) + "</td>";
    const size_t end = cut_before(reason, short_reason);
    return "<td class='reason'><details><summary>" + escape(reason.substr(0, end)) + "<span class='more'>…</span></summary>" +
           escape(reason.substr(end)) + "</details></td>";
}

struct Decimals {
    int milliseconds, compile;
};

std::string row(const View &view, size_t i, Decimals decimals) {
    const Result &result = view.sweep.results[i];
    const bool timed = is_timed(result);
    std::string note;
    if (&result == view.best) note += " <b class='tag'>best</b>";
    if (&result == view.shipped) note += " <b class='tag'>shipped</b>";
    std::string out = fmt::format("<tr data-candidate='{}'><th scope='row' class='n'>{}</th>", i, i + 1);
    for (const std::string &name : view.names) {
        const auto found = result.parameters.find(name);
        out += "<td class='n'>" + (found == result.parameters.end() ? "–" : std::to_string(found->second)) + "</td>";
    }
    const auto cell = [&](const std::string &text) { out += "<td class='n'>" + text + "</td>"; };
    cell(timed ? fixed(1e3 * result.seconds, decimals.milliseconds) : "–");
    cell(timed ? fixed(1e3 * result.least, decimals.milliseconds) : "–");
    cell(timed ? fixed(result.ratio, 3) : "–");
    cell(timed ? fixed(result.ratio_low, 3) + "–" + fixed(result.ratio_high, 3) : "–");
    const bool checked = result.allowed != 0 || result.error != 0;
    cell(checked ? scientific(result.error) : "–");
    cell(checked ? scientific(result.allowed) : "–");
    cell(is_positive(result.compile_seconds) ? fixed(result.compile_seconds, decimals.compile) : "–");
    return out + "<td class='status'>" + name_of(result.status) + note + "</td>" + reason_cell(result.reason) + "</tr>\n";
}

// Data keys are those of the script's columns (chart_data).
std::string head(const View &view) {
    std::string out = "<tr><th scope='col' class='n' data-key='number'>#</th>";
    for (size_t p = 0; p < view.names.size(); p++) {
        std::string breakable;  // at its underscores, which keeps the columns narrow
        for (const char c : escape(view.names[p])) breakable += c == '_' ? std::string("_<wbr>") : std::string(1, c);
        out += fmt::format("<th scope='col' class='n' data-parameter='{}'>{}</th>", p, breakable);
    }
    return out +
           "<th scope='col' class='n' data-key='seconds'>ms</th><th scope='col' class='n' data-key='least'>least&nbsp;ms</th>"
           "<th scope='col' class='n' data-key='ratio' aria-sort='ascending'>ratio</th>"
           "<th scope='col' class='n' data-key='ratio_low'>quartiles</th>"
           "<th scope='col' class='n' data-key='error'>error</th><th scope='col' class='n' data-key='allowed'>allowed</th>"
           "<th scope='col' class='n' data-key='compile_seconds'>compile&nbsp;s</th>"
           "<th scope='col' data-key='status'>status</th><th scope='col' data-key='reason'>reason</th></tr>";
}

}  // namespace

std::string candidates(const View &view) {
    const std::vector<Result> &results = view.sweep.results;
    if (results.empty()) return "";
    double least = HUGE_VAL;
    for (const Result &result : results) {
        if (is_timed(result) && is_positive(result.seconds)) least = std::min(least, 1e3 * result.seconds);
    }
    const Decimals decimals = {std::isinf(least) ? 3 : std::clamp(3 - static_cast<int>(std::floor(std::log10(least))), 0, 7), 1};
    constexpr const char *words = R"html(<section><h2 id='candidates'>All candidates</h2>
<p>ms: median of a call. Ratio: time over that of the shipped schedule, the two run in turn; below 1 is faster. Quartiles are
those of the ratio. Error: the largest of all checks against the plain loop, and what is allowed.</p>
<p class='control' hidden><label for='filter'>Show only</label> <input id='filter' type='search' autocomplete='off'
spellcheck='false' placeholder='chunk=8 ratio&lt;1 timed' aria-describedby='filter-help'>
<span id='filter-count' role='status'></span><br><small id='filter-help'>Words in a row, or a comparison (=, &lt;, &gt;,
&lt;=, &gt;=) with a parameter, ms, ratio, error or compile; all must hold. A click on a head sorts.</small></p>
<div class='scroll tall' tabindex='0' role='region' aria-labelledby='candidates'><table id='table'><thead>{}</thead><tbody>
)html";
    std::string out = fmt::format(words, head(view));
    for (const size_t i : sorted(results)) out += row(view, i, decimals);
    return out + "</tbody></table></div></section>\n";
}

}  // namespace halation::lab::report
