#include "report.h"
#include "parts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace halation::lab {
namespace report {

bool is_timed(const Result &result) {
    return result.status == Status::timed;
}

View::View(const Sweep &sweep) : sweep(sweep), best(sweep.best()), shipped(nullptr), shipped_seconds(NAN), shipped_timed(false) {
    const auto add_name = [&](const std::string &name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const Axis &axis : sweep.axes) {
        add_name(axis.name);
        shipped_parameters[axis.name] = axis.shipped;
    }
    for (const Result &result : sweep.results) {
        for (const auto &[name, value] : result.parameters) add_name(name);
        // What a candidate does not say is as it is shipped.
        const bool same = std::all_of(shipped_parameters.begin(), shipped_parameters.end(), [&](const auto &parameter) {
            const auto found = result.parameters.find(parameter.first);
            return found == result.parameters.end() || found->second == parameter.second;
        });
        // A schedule of a user's own is not the shipped one, whatever its parameters.
        if (same && sweep.subject.schedule.empty() && (!shipped || (is_timed(result) && !is_timed(*shipped)))) shipped = &result;
    }
    shipped_timed = shipped && is_timed(*shipped) && is_positive(shipped->seconds);
    // What was timed in turn with the best is what its ratio is to.
    if (best && is_positive(best->shipped_seconds)) {
        shipped_seconds = best->shipped_seconds;
    } else if (shipped_timed) {
        shipped_seconds = shipped->seconds;
    } else if (best && is_positive(best->seconds)) {
        shipped_seconds = best->seconds / best->ratio;
    }
    const Subject &subject = sweep.subject;
    token_heads = static_cast<double>(subject.batch) * static_cast<double>(subject.tokens) *
                  static_cast<double>(subject.value_heads > 0 ? subject.value_heads : subject.heads);
    head = subject.value_heads > 0 && subject.value_heads != subject.heads ? "value head" : "head";
}

size_t View::count(Status status) const {
    return std::count_if(sweep.results.begin(), sweep.results.end(),
                         [&](const Result &result) { return result.status == status; });
}

bool View::knows_limit() const {
    const Limit &limit = sweep.limit;
    return is_positive(limit.multiply_adds) && is_positive(limit.bytes) && is_positive(limit.multiply_adds_per_second) &&
           is_positive(limit.bytes_per_second);
}

double View::limit_seconds() const {
    return knows_limit() ? sweep.limit.seconds() : NAN;
}

namespace {

std::string title(const Subject &subject) {
    std::string out = subject.recurrence;
    for (const std::string &word : {subject.form, subject.isa, subject.type}) out += (word.empty() ? "" : ", ") + word;
    return out;
}

std::string sizes(const Subject &subject) {
    std::string out = fmt::format("batch {}, {}, {}", subject.batch, counted(subject.tokens, "token", "tokens"),
                                  counted(subject.heads, "head", "heads"));
    if (subject.value_heads > 0 && subject.value_heads != subject.heads)
        out += fmt::format(" ({} value heads)", subject.value_heads);
    const auto channels = [](int64_t dim, const char *kind, bool known) {
        return fmt::format(", {} {} channels{}", dim, kind, known ? " (known to the kernel)" : "");
    };
    return out + channels(subject.key_dim, "key", subject.known_key_dim) +
           channels(subject.value_dim, "value", subject.known_value_dim);
}

std::string opening(const View &view) {
    const Subject &subject = view.sweep.subject;
    std::string out = "<header><h1>Sweep: " + escape(title(subject)) + "</h1>\n<dl class='facts'>\n";
    const auto line = [&](const char *term, const std::string &text) {
        if (!text.empty()) out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", term, escape(text));
    };
    std::string kernel = subject.recurrence;
    for (const std::string &word : {subject.form, subject.backend, subject.isa}) kernel += (word.empty() ? "" : ", ") + word;
    const auto said = [](const std::string &word) { return !word.empty() && word != "-" && word != "none"; };
    if (said(subject.schedule)) kernel += ", schedule " + subject.schedule;
    std::string types = subject.type;
    if (said(subject.gates)) types += subject.gates == "same" ? ", gates of the same type" : ", gates " + subject.gates;
    if (said(subject.feature_map)) types += ", feature map " + subject.feature_map;
    line("Kernel", kernel);
    line("Type", types);
    line("Sizes", sizes(subject));
    line("Machine", (view.sweep.limit.cpu.empty() ? "" : view.sweep.limit.cpu + ", ") +
                        counted(std::max(0, subject.threads), "thread", "threads"));
    line("Date", view.sweep.date);
    return out + "</dl></header>\n";
}

}  // namespace
}  // namespace report

// The policy in the head forbids the browser to load anything, whatever else the page says.
std::string report_page(const Sweep &sweep, const std::string &loop_nest_of_best, const std::string &loop_nest_of_shipped) {
    using namespace report;
    constexpr const char *words = R"html(<!DOCTYPE html>
<html lang='en'>
<head>
<meta charset='utf-8'>
<meta name='viewport' content='width=device-width, initial-scale=1'>
<meta http-equiv='Content-Security-Policy' content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>Sweep: {title}</title>
<link rel='icon' href='data:,'>
<style>{style}</style>
</head>
<body>
{body}<footer><p class='facts'>Written by halation-lab. Charts: Chart.js, © Chart.js Contributors, MIT License.</p></footer>
<script type='application/json' id='sweep'>{data}</script>
<script>{page_js}</script>
{terms}<script>{chart_js}</script>
<script>{page_charts_js}</script>
</body>
</html>
)html";
    const View view(sweep);
    return fmt::format(words, fmt::arg("title", escape(title(sweep.subject))), fmt::arg("style", style),
                       fmt::arg("body", opening(view) + "<main>\n" + summary(view) + charts(view) + candidates(view) +
                                            loop_nests(loop_nest_of_shipped, loop_nest_of_best) + "</main>\n"),
                       fmt::arg("data", chart_data(view)), fmt::arg("terms", chart_js_terms),
                       fmt::arg("chart_js", script_text(chart_js())), fmt::arg("page_js", script_text(page_js())),
                       fmt::arg("page_charts_js", script_text(page_charts_js())));
}

}  // namespace halation::lab
