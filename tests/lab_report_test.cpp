// The page of a sweep: nothing from data becomes markup, nothing is loaded, its figures are right, whatever a sweep lacks.
#include "lab/report/report.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

using namespace halation::lab;
using Catch::Matchers::Contains;

namespace {

Result timed(Parameters parameters, double seconds, double ratio) {
    Result result;
    result.parameters = std::move(parameters);
    result.status = Status::timed;
    result.seconds = seconds;
    result.least = 0.98 * seconds;
    result.ratio = ratio;
    result.ratio_low = ratio - 0.01;
    result.ratio_high = ratio + 0.01;
    result.error = 1e-6;
    result.allowed = 5e-6;
    result.compile_seconds = 2.5;
    return result;
}

Result not_timed(Parameters parameters, Status status, std::string reason) {
    Result result;
    result.parameters = std::move(parameters);
    result.status = status;
    result.reason = std::move(reason);
    return result;
}

// 2000 tokens, 5 heads: 10 ms are 1000 ns a token and head. The limit is 4 ms, of multiply-adds.
Sweep small_sweep() {
    Sweep sweep;
    sweep.subject = {"gated_delta", "chunkwise", "cpu", "avx2", "f32", "f32", "-", "", 1, 2000, 5, 5, 64, 64, true, false, 2};
    sweep.limit = {"A processor", 4e8, 1e7, 1e11, 1e10};
    sweep.axes = {{"chunk", {2, 4, 8}, 4}, {"segment", {32, 64}, 64}, {"fixed", {7}, 7}};
    sweep.date = "2026-01-02";
    sweep.results = {
        timed({{"chunk", 4}, {"segment", 64}, {"fixed", 7}}, 10e-3, 1),
        timed({{"chunk", 8}, {"segment", 64}, {"fixed", 7}}, 8e-3, 0.8),
        timed({{"chunk", 2}, {"segment", 64}, {"fixed", 7}}, 15e-3, 1.5),
        not_timed({{"chunk", 8}, {"segment", 32}, {"fixed", 7}}, Status::refused, "not a multiple"),
        not_timed({{"chunk", 2}, {"segment", 32}, {"fixed", 7}}, Status::wrong, "o differs"),
        not_timed({{"chunk", 4}, {"segment", 32}, {"fixed", 7}}, Status::failed, "took too long"),
    };
    return sweep;
}

// Without what is in script and style elements and comments: text that a browser does not read as markup.
std::string markup(const std::string &page) {
    std::string out;
    for (size_t at = 0; at < page.size();) {
        bool skipped = false;
        for (const auto &[open, close] :
             {std::pair{"<script", "</script"}, std::pair{"<style", "</style"}, std::pair{"<!--", "-->"}}) {
            if (page.compare(at, std::string(open).size(), open) != 0) continue;
            const bool comment = open[1] == '!';
            const size_t from = comment ? at : page.find('>', at) + 1, end = page.find(close, from);
            REQUIRE(end != std::string::npos);
            if (!comment) out += page.substr(at, from - at);
            at = comment ? end + 3 : end;
            skipped = true;
            break;
        }
        if (!skipped) out += page[at++];
    }
    return out;
}

std::string between(const std::string &text, const std::string &open, const std::string &close) {
    const size_t from = text.find(open);
    REQUIRE(from != std::string::npos);
    const size_t end = text.find(close, from + open.size());
    REQUIRE(end != std::string::npos);
    return text.substr(from + open.size(), end - from - open.size());
}

nlohmann::json data_of(const std::string &page) {
    return nlohmann::json::parse(between(page, "<script type='application/json' id='sweep'>", "</script>"));
}

size_t occurrences(const std::string &text, const std::string &word) {
    size_t count = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) count++;
    return count;
}

// Every element is closed where it was opened, identifiers are unique, and nothing is named that a browser would load.
void check_page(const std::string &page) {
    static const std::regex loads(R"(\b(src|srcset|action|data|poster|on[a-z]+)\s*=)"), link(R"(\bhref='([^']*)')"),
        identifier(R"(\bid='([^']*)')");
    const std::set<std::string> empty = {"meta", "link", "br", "input", "wbr"};
    const std::string text = markup(page);
    std::vector<std::string> open;
    std::set<std::string> identifiers;
    for (size_t at = text.find('<', text.find('>')); at != std::string::npos; at = text.find('<', at + 1)) {
        size_t end = at;
        for (char quote = 0; quote || text[end] != '>'; end++) {
            REQUIRE(end + 1 < text.size());
            const char c = text[end];
            if (quote ? c == quote : c == '\'' || c == '"') quote = quote ? 0 : c;
        }
        const std::string tag = text.substr(at + 1, end - at - 1);
        INFO(tag);
        const std::string name = tag.substr(0, tag.find_first_of(" \n"));
        if (name[0] == '/') {
            REQUIRE(!open.empty());
            REQUIRE(open.back() == name.substr(1));
            open.pop_back();
        } else if (!empty.count(name)) {
            REQUIRE(std::isalpha(static_cast<unsigned char>(name[0])));
            open.push_back(name);
        }
        std::smatch found;
        if (std::regex_search(tag, found, identifier)) REQUIRE(identifiers.insert(found[1]).second);
        REQUIRE_FALSE(std::regex_search(tag, loads));
        if (std::regex_search(tag, found, link)) REQUIRE(found[1] == "data:,");
    }
    CHECK(open.empty());
    const std::string style = between(page, "<style>", "</style>");
    CHECK_THAT(style, !Contains("url(") && !Contains("@import"));
    CHECK_THAT(page, Contains("default-src 'none'"));
    CHECK(occurrences(page, "<script") == 4);
    CHECK(occurrences(page, "</script") == 4);
    CHECK(data_of(page).is_object());
    CHECK_THAT(page, Contains("Released under the MIT License") && Contains("Permission is hereby granted"));
}

std::string row_of(const std::string &page, const std::string &name) {
    return between(page, "<tr><th scope='row'>" + name + "</th>", "</tr>");
}

}  // namespace

TEST_CASE("the summary of a sweep has its figures") {
    const std::string page = report_page(small_sweep(), "", "");
    check_page(page);
    CHECK_THAT(page,
               Contains("<b>0.800 of the shipped schedule's time (quartiles 0.790 to 0.810)</b>: 8.000 ms against 10.00 ms."));
    CHECK(row_of(page, "time of a call, median") == "<td class='n'>10.00 ms</td><td class='n'>8.000 ms</td>");
    CHECK(row_of(page, "time of a call, least") == "<td class='n'>9.800 ms</td><td class='n'>7.840 ms</td>");
    CHECK(row_of(page, "per token and head") == "<td class='n'>1000 ns</td><td class='n'>800 ns</td>");
    CHECK(row_of(page, "share of multiply-add peak") == "<td class='n'>40 %</td><td class='n'>50 %</td>");
    CHECK(row_of(page, "share of memory bandwidth") == "<td class='n'>10 %</td><td class='n'>12 %</td>");
    CHECK(row_of(page, "time over the limit") == "<td class='n'>2.50 ×</td><td class='n'>2.00 ×</td>");
    CHECK(row_of(page, "<code>chunk</code>") == "<td class='n'>4</td><td class='n'><b>8</b></td><td>2, 4, 8</td>");
    CHECK(row_of(page, "<code>segment</code>") == "<td class='n'>64</td><td class='n'>64</td><td>32, 64</td>");
    CHECK_THAT(
        page,
        Contains("6 candidates: 3 timed, 1 refused by the schedule, 1 wrong in their results, 1 failed to compile or run."));
    CHECK_THAT(page, Contains("4.000 ms, set by multiply-adds"));
    CHECK_THAT(page, Contains("<h1>Sweep: gated_delta, chunkwise, avx2, f32</h1>"));
    CHECK_THAT(page, Contains("1 × refused: not a multiple"));
}

TEST_CASE("heads that share keys are counted as value heads") {
    Sweep sweep = small_sweep();
    sweep.subject.value_heads = 10;
    CHECK(row_of(report_page(sweep, "", ""), "per token and value head") == "<td class='n'>500 ns</td><td class='n'>400 ns</td>");
}

TEST_CASE("the page says when the best is not clearly better") {
    Sweep sweep = small_sweep();
    sweep.results[1].ratio_high = 1.01;
    CHECK_THAT(report_page(sweep, "", ""), Contains("The quartiles reach 1"));
    sweep.results[1].ratio = 1.1;
    CHECK_THAT(report_page(sweep, "", ""), Contains("No candidate is faster than the shipped schedule, 10.00 ms."));
    sweep.results.erase(sweep.results.begin());  // the shipped one was not timed
    CHECK_THAT(report_page(sweep, "", ""), Contains("The nearest takes 1.100 of the shipped schedule's time") &&
                                               Contains("8.000 ms against 7.273 ms (reckoned from the ratio)"));
}

TEST_CASE("all candidates are in the table, the fastest first") {
    const std::string table = between(report_page(small_sweep(), "", ""), "<table id='table'>", "</table>");
    std::vector<std::string> order;
    const std::regex row("data-candidate='([0-9]+)'");
    for (std::sregex_iterator at(table.begin(), table.end(), row), end; at != end; ++at) order.push_back((*at)[1]);
    CHECK(order == std::vector<std::string>{"1", "0", "2", "3", "4", "5"});
    CHECK_THAT(table, Contains("<td class='n'>8.000</td><td class='n'>7.840</td><td class='n'>0.800</td>"
                               "<td class='n'>0.790–0.810</td><td class='n'>1.0e-06</td><td class='n'>5.0e-06</td>"
                               "<td class='n'>2.5</td><td class='status'>timed <b class='tag'>best</b></td>"));
    CHECK_THAT(table, Contains("<td class='status'>wrong</td><td class='reason'>o differs</td>"));
}

TEST_CASE("charts are for parameters that vary") {
    const std::string page = report_page(small_sweep(), "", "");
    CHECK(occurrences(page, "<canvas data-axis=") == 2);
    CHECK_THAT(markup(page), Contains("id='roofline'") && Contains("id='grid'") && Contains("id='progress'"));
    const nlohmann::json data = data_of(page);
    CHECK(data["best"] == 1);
    CHECK(data["shipped"] == 0);
    CHECK(data["columns"]["ratio"] == nlohmann::json::parse("[1.0, 0.8, 1.5, null, null, null]"));
    CHECK(data["parameters"][0] == nlohmann::json::parse(R"(["chunk", [4, 8, 2, 8, 2, 4]])"));
}

TEST_CASE("nothing from data becomes markup or script") {
    const std::string evil = "</script><!-- <script>alert('x')</script> \"&'\xff\x01";
    Sweep sweep = small_sweep();
    sweep.subject.recurrence = sweep.subject.isa = sweep.subject.schedule = sweep.limit.cpu = sweep.date = evil;
    sweep.axes[0].name = evil;
    for (Result &result : sweep.results) {
        result.parameters[evil] = result.parameters["chunk"];
        result.parameters.erase("chunk");
        if (!result.reason.empty()) result.reason = evil;
    }
    const std::string page = report_page(sweep, "for <b>" + evil, "while " + evil);
    check_page(page);
    CHECK_THAT(markup(page), !Contains("alert('x')") && !Contains("<b>&lt;"));
    CHECK_THAT(page, Contains("&lt;script&gt;alert(&#39;x&#39;)"));
    CHECK(data_of(page)["axes"][0]["name"].get<std::string>().substr(0, 24) == evil.substr(0, 24));
}

TEST_CASE("a sweep may lack almost everything") {
    Sweep sweep = small_sweep();
    SECTION("nothing at all") {
        sweep = Sweep();
        sweep.subject = {};
        sweep.limit = {};
    }
    SECTION("no candidate") {
        sweep.results.clear();
        CHECK_THAT(report_page(sweep, "", ""), Contains("No candidate was tried."));
    }
    SECTION("none timed") {
        sweep.results.erase(sweep.results.begin(), sweep.results.begin() + 3);
        const std::string page = report_page(sweep, "", "");
        CHECK_THAT(page, Contains("No candidate was timed.") && Contains("3 candidates: 0 timed"));
        CHECK_THAT(markup(page), !Contains("<canvas"));
    }
    SECTION("one candidate, the shipped one") {
        sweep.results.resize(1);
        CHECK_THAT(report_page(sweep, "", ""), Contains("No candidate is faster") && Contains("1 candidate: 1 timed"));
    }
    SECTION("no axis") {
        sweep.axes.clear();
        sweep.results = {timed({}, 1e-3, 1)};
        CHECK_THAT(report_page(sweep, "", ""), !Contains("Time against each parameter") && !Contains("id='grid'"));
    }
    SECTION("one axis") {
        sweep.axes.resize(1);
        CHECK_THAT(report_page(sweep, "", ""), Contains("Time against each parameter") && !Contains("id='grid'"));
    }
    SECTION("a limit that is not known") {
        double Limit::*field =
            GENERATE(&Limit::multiply_adds, &Limit::bytes, &Limit::multiply_adds_per_second, &Limit::bytes_per_second);
        sweep.limit.*field = GENERATE(0., double(NAN), double(INFINITY));
        const std::string page = report_page(sweep, "", "");
        CHECK_THAT(page, Contains("The machine's limit is not known."));
        CHECK_THAT(markup(page), !Contains("roofline") && !Contains("nan") && !Contains("share of"));
    }
    SECTION("figures that are no numbers") {
        for (Result &result : sweep.results) result.ratio = result.seconds = result.error = NAN;
    }
    SECTION("an error without end") {
        sweep.results[4].error = INFINITY;
        CHECK_THAT(report_page(sweep, "", ""), Contains("<td class='n'>infinite</td>"));
    }
    SECTION("no sizes") {
        sweep.subject.tokens = 0;
        CHECK_THAT(markup(report_page(sweep, "", "")), !Contains("per token"));
    }
    SECTION("parameters that are not said") {
        for (Result &result : sweep.results) result.parameters.erase("segment");
    }
    check_page(report_page(sweep, "", ""));
}

TEST_CASE("a sweep of a thousand candidates with long reasons") {
    Sweep sweep = small_sweep();
    for (int i = 0; i < 1000; i++) {
        sweep.results.push_back(not_timed({{"chunk", i}, {"segment", 32}, {"fixed", 7}}, Status::refused, std::string(400, 'x')));
    }
    const std::string page = report_page(sweep, "", "");
    check_page(page);
    CHECK_THAT(page, Contains("1006 candidates") && Contains("1001 refused") &&
                         Contains("<summary>" + std::string(120, 'x') + "<span"));
}

TEST_CASE("a reason is never cut within a character") {
    Sweep sweep = small_sweep();
    std::string umlauts = "x";
    for (int i = 0; i < 300; i++) umlauts += "ä";
    sweep.results[3].reason = umlauts;
    const std::string page = report_page(sweep, "", "");
    CHECK_THAT(page, Contains("ä<span class='more'>") && Contains("ä…"));
}

TEST_CASE("lines of the loop nests that differ are marked") {
    const std::string best = "produce o:\n  for c:\n    for i:\n      o = <q>\n",
                      shipped = "produce o:\n  for c:\n    unrolled i:\n    new:\n      o = <q>\n";
    const std::string page = report_page(small_sweep(), best, shipped);
    check_page(page);
    CHECK_THAT(page, Contains("3 lines differ"));
    CHECK_THAT(page, Contains("<del class='line'>    unrolled i:\n</del><del class='line'>    new:\n</del>"));
    CHECK_THAT(page, Contains("<ins class='line'>    for i:\n</ins><span class='line gap'>\n</span>"));
    CHECK(occurrences(page, "<span class='line'>      o = &lt;q&gt;\n</span>") == 2);
    CHECK(occurrences(page, "<span class='line'>produce o:\n</span>") == 2);

    CHECK_THAT(report_page(small_sweep(), best, best), Contains("have the same loop nest") && !Contains("<ins"));
    CHECK_THAT(report_page(small_sweep(), best, ""), Contains("<h3>Best</h3>") && !Contains("<h3>Shipped</h3>"));
    CHECK_THAT(markup(report_page(small_sweep(), "", "")), !Contains("Loop nest"));
}
