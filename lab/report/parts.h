// What the parts of the page (report.h) share.
#ifndef HALATION_LAB_REPORT_PARTS_H
#define HALATION_LAB_REPORT_PARTS_H

#include "cli/html.h"
#include "lab/results.h"

#include <string>
#include <string_view>
#include <vector>

namespace halation::lab::report {

// ---- text (text.cpp)
using cli::escape;
std::string script_text(std::string_view script);       // for a script element: cannot end it
std::string significant(double value, int digits = 3);  // no exponent where it can be read without; "–" if not a number
std::string fixed(double value, int decimals);          // "–" if not a number
std::string scientific(double value);                   // "–" if not a number
std::string percent(double share);
std::string scaled(double value, const std::string &unit);  // 4.12e11 as "412 GB/s"; " words" stay apart
size_t cut_before(const std::string &text, size_t end);     // where to cut a text that is longer: between words, if there are any
std::string counted(size_t count, const std::string &one, const std::string &many);
bool is_positive(double value);  // and a number, and finite

// ---- a sweep, looked at (report.cpp)
struct View {
    explicit View(const Sweep &sweep);

    const Sweep &sweep;
    std::vector<std::string> names;  // of parameters: those of the axes, then others that candidates have
    Parameters shipped_parameters;   // of the axes
    const Result *best;              // null if none was timed
    const Result *shipped;           // null if it is not among the candidates
    double shipped_seconds;          // reckoned from the best and its ratio if it was not timed; NaN if that is not possible
    bool shipped_timed;
    double token_heads;  // tokens times value heads of a call
    const char *head;    // what these heads are called

    size_t count(Status status) const;
    bool knows_limit() const;
    double limit_seconds() const;  // NaN if not known
};
bool is_timed(const Result &result);

// ---- the sections
std::string summary(const View &view);                                        // summary.cpp
std::string charts(const View &view);                                         // charts.cpp
std::string chart_data(const View &view);                                     // charts.cpp: JSON for page.js
std::string candidates(const View &view);                                     // table.cpp
std::string loop_nests(const std::string &shipped, const std::string &best);  // loops.cpp

extern const char *const style;           // style.cpp
extern const char *const chart_js_terms;  // style.cpp: the licence of Chart.js, for an HTML comment
std::string_view chart_js();              // scripts.cpp
std::string_view page_js();               // scripts.cpp: page.js
std::string_view page_charts_js();        // scripts.cpp: page_charts.js

}  // namespace halation::lab::report
#endif
