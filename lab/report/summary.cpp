// The figures of the summary: the best candidate against the shipped schedule, and both against the machine.
#include "parts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace halation::lab::report {
namespace {

std::string milliseconds(double seconds) {
    return is_positive(seconds) ? significant(1e3 * seconds, 4) + " ms" : "–";
}

std::string verdict(const View &view) {
    if (view.sweep.results.empty()) return "No candidate was tried.";
    if (!view.best) return "No candidate was timed.";
    const Result &best = *view.best;
    const std::string times =
        fmt::format("{} against {}", milliseconds(best.seconds),
                    milliseconds(view.shipped_seconds) +
                        (view.shipped_timed || best.shipped_seconds > 0 ? "" : " (reckoned from the ratio)"));
    const std::string ratio = fmt::format("{} of the shipped schedule's time (quartiles {} to {})", fixed(best.ratio, 3),
                                          fixed(best.ratio_low, 3), fixed(best.ratio_high, 3));
    if (&best == view.shipped) return "No candidate is faster than the shipped schedule, " + milliseconds(best.seconds) + ".";
    if (best.ratio >= 1)
        return "No candidate is faster than the shipped schedule. The nearest takes " + ratio + ": " + times + ".";
    return "The best candidate takes <b>" + ratio + "</b>: " + times + "." +
           (best.ratio_high < 1 ? "" : " The quartiles reach 1, so this may be noise.");
}

// One line of what became of how many.
std::string counts(const View &view) {
    const size_t all = view.sweep.results.size();
    if (all == 0) return "";
    std::string out = counted(all, "candidate", "candidates") + ": " + std::to_string(view.count(Status::timed)) + " timed";
    for (const auto &[status, meaning] :
         {std::pair{Status::refused, "by the schedule"}, std::pair{Status::wrong, "in their results"},
          std::pair{Status::failed, "to compile or run"}}) {
        out += fmt::format(", {} {}", view.count(status), name_of(status));
        if (view.count(status)) out += std::string(" ") + meaning;
    }
    return out + ".";
}

struct Column {
    double seconds, least;
    const Result *result;  // null if only the time is known
};

std::string figures(const View &view) {
    const Column shipped = {view.shipped_seconds, view.shipped_timed ? view.shipped->least : NAN,
                            view.shipped_timed ? view.shipped : nullptr};
    const Column best = {view.best->seconds, view.best->least, view.best};
    const Limit &limit = view.sweep.limit;
    std::string out = "<table class='figures'><thead><tr><th scope='col'>Figure</th><th scope='col' class='n'>shipped</th>"
                      "<th scope='col' class='n'>best</th></tr></thead><tbody>\n";
    const auto line = [&](const std::string &name, const auto &text) {
        out += "<tr><th scope='row'>" + name + "</th><td class='n'>" + text(shipped) + "</td><td class='n'>" + text(best) +
               "</td></tr>\n";
    };
    line("time of a call, median", [&](const Column &c) { return milliseconds(c.seconds); });
    line("time of a call, least", [&](const Column &c) { return milliseconds(c.least); });
    line("ratio to shipped", [&](const Column &c) { return c.result ? fixed(c.result->ratio, 3) : std::string("1"); });
    line("quartiles of the ratio", [&](const Column &c) {
        return c.result ? fixed(c.result->ratio_low, 3) + "–" + fixed(c.result->ratio_high, 3) : std::string("–");
    });
    if (is_positive(view.token_heads)) {
        line(std::string("per token and ") + view.head, [&](const Column &c) {
            return is_positive(c.seconds) ? significant(1e9 * c.seconds / view.token_heads) + " ns" : std::string("–");
        });
    }
    if (view.knows_limit()) {
        line("share of multiply-add peak",
             [&](const Column &c) { return percent(limit.multiply_adds / c.seconds / limit.multiply_adds_per_second); });
        line("share of memory bandwidth",
             [&](const Column &c) { return percent(limit.bytes / c.seconds / limit.bytes_per_second); });
        line("time over the limit", [&](const Column &c) { return significant(c.seconds / view.limit_seconds()) + " ×"; });
    }
    return out + "</tbody></table>";
}

std::string limit_words(const View &view) {
    const Limit &limit = view.sweep.limit;
    if (!view.knows_limit()) return "The machine's limit is not known.";
    return fmt::format("Limit of the machine: {}, set by {}. A call needs at least {} and {} of memory traffic; measured "
                       "were {} and {}.",
                       milliseconds(view.limit_seconds()), limit.binding(), scaled(limit.multiply_adds, " multiply-adds"),
                       scaled(limit.bytes, "B"), scaled(limit.multiply_adds_per_second, " multiply-adds/s"),
                       scaled(limit.bytes_per_second, "B/s"));
}

std::string parameters(const View &view) {
    if (view.names.empty()) return "";
    std::string out = "<table class='figures'><thead><tr><th scope='col'>Parameter</th><th scope='col' class='n'>shipped</th>"
                      "<th scope='col' class='n'>best</th><th scope='col'>values tried</th></tr></thead><tbody>\n";
    for (const std::string &name : view.names) {
        const auto text = [&](const Parameters &parameters) {
            const auto found = parameters.find(name);
            return found == parameters.end() ? std::string("–") : std::to_string(found->second);
        };
        const std::string shipped = text(view.shipped_parameters), best = view.best ? text(view.best->parameters) : "–";
        std::string values;
        for (const Axis &axis : view.sweep.axes) {
            if (axis.name != name) continue;
            for (const int value : axis.values) values += (values.empty() ? "" : ", ") + std::to_string(value);
        }
        const bool differs = shipped != best && best != "–" && shipped != "–";
        out += fmt::format("<tr><th scope='row'><code>{}</code></th><td class='n'>{}</td><td class='n'>{}</td><td>{}</td></tr>\n",
                           escape(name), shipped, differs ? "<b>" + best + "</b>" : best, values);
    }
    return out + "</tbody></table>";
}

// Why candidates have no time: the most frequent reasons.
std::string reasons(const View &view) {
    std::map<std::pair<Status, std::string>, size_t> found;
    for (const Result &result : view.sweep.results) {
        if (!is_timed(result)) found[{result.status, result.reason}]++;
    }
    if (found.empty()) return "";
    using Entry = std::pair<std::pair<Status, std::string>, size_t>;
    std::vector<Entry> entries(found.begin(), found.end());
    std::stable_sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.second > b.second; });
    constexpr size_t shown = 8, longest = 240;
    std::string out = "<details class='why'><summary>Why candidates were not timed</summary>\n<ul>\n";
    for (size_t i = 0; i < std::min(shown, entries.size()); i++) {
        const auto &[what, times] = entries[i];
        std::string reason = what.second.empty() ? "no reason given" : what.second;
        if (reason.size() > longest) reason = reason.substr(0, cut_before(reason, longest)) + "…";
        out += fmt::format("<li>{} × {}: {}</li>\n", times, name_of(what.first), escape(reason));
    }
    if (entries.size() > shown) {
        out += fmt::format("<li>{}</li>\n", counted(entries.size() - shown, "other reason", "other reasons"));
    }
    return out + "</ul></details>\n";
}

}  // namespace

std::string summary(const View &view) {
    std::string out = "<section><h2>Best against shipped</h2>\n<p class='verdict'>" + verdict(view) + "</p>\n";
    out += "<div class='tables'>\n";
    if (view.best) out += "<div class='scroll'>" + figures(view) + "</div>\n";
    const std::string table = parameters(view);
    if (!table.empty()) out += "<div class='scroll'>" + table + "</div>\n";
    out += "</div>\n<p>" + counts(view) + "</p>\n" + reasons(view);
    out += "<p class='facts'>" + limit_words(view) + "</p>\n";
    if (view.best) {
        out += "<p class='facts'>Ratios were measured in turn with the shipped schedule, so they can differ a little from the "
               "quotient of two times. The least of many is partly luck: time the best anew before it is adopted.</p>\n";
    }
    return out + "</section>\n";
}

}  // namespace halation::lab::report
