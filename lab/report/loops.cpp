// Two loop nests side by side: lines that both have stand at one height, those that only one has are marked.
#include "parts.h"

#include <algorithm>

namespace halation::lab::report {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
    Lines lines;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

constexpr size_t none = static_cast<size_t>(-1);

// For each line of a the line of b that it is paired with, or none: a longest common subsequence.
std::vector<size_t> paired(const Lines &a, const Lines &b) {
    std::vector<size_t> pairs(a.size(), none);
    size_t first = 0, a_end = a.size(), b_end = b.size();
    for (; first < a_end && first < b_end && a[first] == b[first]; first++) pairs[first] = first;
    for (; a_end > first && b_end > first && a[a_end - 1] == b[b_end - 1]; a_end--, b_end--) pairs[a_end - 1] = b_end - 1;
    const size_t rows = a_end - first, columns = b_end - first;
    // Beyond this the table would take too long: what is between the equal ends then counts as different altogether.
    if (rows * columns > 16'000'000) return pairs;
    std::vector<uint32_t> longest((rows + 1) * (columns + 1), 0);  // of the lines from here on
    const auto at = [&](size_t i, size_t j) -> uint32_t & { return longest[i * (columns + 1) + j]; };
    for (size_t i = rows; i-- > 0;) {
        for (size_t j = columns; j-- > 0;) {
            at(i, j) = a[first + i] == b[first + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
        }
    }
    for (size_t i = 0, j = 0; i < rows && j < columns;) {
        if (a[first + i] == b[first + j]) {
            pairs[first + i++] = first + j++;
        } else {
            at(i + 1, j) >= at(i, j + 1) ? i++ : j++;
        }
    }
    return pairs;
}

void add_line(std::string &out, const char *tag, std::string_view line) {
    out += std::string("<") + tag + " class='line'>" + escape(std::string(line)) + "\n</" + tag + ">";
}

void add_gap(std::string &out) {
    out += "<span class='line gap'>\n</span>";
}

std::string pane(const char *title, const std::string &lines) {
    return std::string("<div><h3>") + title + "</h3>\n<pre tabindex='0' role='region' aria-label='Loop nest: " + title + "'>" +
           lines + "</pre></div>\n";
}

}  // namespace

std::string loop_nests(const std::string &shipped, const std::string &best) {
    if (shipped.empty() && best.empty()) return "";
    std::string out = "<section><h2>Loop nests</h2>\n";
    if (shipped == best) {
        return out + "<p>The best and the shipped schedule have the same loop nest.</p>\n<div class='nests'>" +
               pane("Shipped and best", escape(best)) + "</div></section>\n";
    }
    if (shipped.empty() || best.empty()) {
        return out + "<div class='nests'>" + pane(shipped.empty() ? "Best" : "Shipped", escape(shipped + best)) +
               "</div></section>\n";
    }
    const Lines a = lines_of(shipped), b = lines_of(best);
    const std::vector<size_t> pairs = paired(a, b);
    std::string left, right;
    size_t different = 0;
    for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
        if (i < a.size() && pairs[i] == j) {
            add_line(left, "span", a[i++]);
            add_line(right, "span", b[j++]);
            continue;
        }
        // A stretch of lines that only one of the two has, the one beside the other.
        size_t i_end = i;
        while (i_end < a.size() && pairs[i_end] == none) i_end++;
        const size_t j_end = i_end < a.size() ? pairs[i_end] : b.size();
        different += i_end - i + j_end - j;
        while (i < i_end || j < j_end) {
            i < i_end ? add_line(left, "del", a[i++]) : add_gap(left);
            j < j_end ? add_line(right, "ins", b[j++]) : add_gap(right);
        }
    }
    return out + "<p>" +
           counted(different, "line differs: only one of the two has it.", "lines differ: only one of the two has them.") +
           " They are marked − (shipped) and + (best).</p>\n<div class='nests'>" + pane("Shipped", left) + pane("Best", right) +
           "</div></section>\n";
}

}  // namespace halation::lab::report
