#include "parts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace halation::lab::report {

bool is_positive(double value) {
    return std::isfinite(value) && value > 0;
}

// "</script" ends a script element wherever it stands, and "<!--" changes how the rest of it is read. Within strings, regular
// expressions and comments, where alone they can stand in JavaScript, a backslash after the first character changes nothing.
std::string script_text(std::string_view script) {
    const auto starts = [&](size_t at, std::string_view lower) {
        if (script.size() - at < lower.size()) return false;
        for (size_t i = 0; i < lower.size(); i++) {
            const char c = script[at + i];
            if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != lower[i]) return false;
        }
        return true;
    };
    std::string safe;
    safe.reserve(script.size());
    for (size_t i = 0; i < script.size(); i++) {
        safe += script[i];
        if (script[i] == '<' && (starts(i, "</script") || starts(i, "<!--"))) safe += '\\';
    }
    return safe;
}

std::string fixed(double value, int decimals) {
    return std::isfinite(value) ? fmt::format("{:.{}f}", value, std::max(0, decimals)) : "–";
}

std::string scientific(double value) {
    if (std::isinf(value)) return "infinite";
    return std::isnan(value) ? "–" : fmt::format("{:.1e}", value);
}

std::string significant(double value, int digits) {
    if (!std::isfinite(value)) return "–";
    if (value == 0) return "0";
    const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
    if (magnitude < -4 || magnitude > 6) return fmt::format("{:.{}e}", value, digits - 1);
    return fixed(value, digits - 1 - magnitude);
}

std::string percent(double share) {
    if (!std::isfinite(share)) return "–";
    return fmt::format("{:.{}f} %", 100 * share, share < 0.1 ? 1 : 0);
}

std::string scaled(double value, const std::string &unit) {
    if (!std::isfinite(value)) return "–";
    const std::pair<double, const char *> scales[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (const auto &[scale, prefix] : scales) {
        if (std::abs(value) >= scale) return significant(value / scale) + " " + prefix + unit;
    }
    return significant(value) + (unit.substr(0, 1) == " " ? "" : " ") + unit;
}

size_t cut_before(const std::string &text, size_t end) {
    const size_t space = text.find_last_of(" \n", end);
    if (space != std::string::npos && space > end / 2) return space;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) end--;  // not within a character of UTF-8
    return end;
}

std::string counted(size_t count, const std::string &one, const std::string &many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace halation::lab::report
