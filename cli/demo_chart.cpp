#include "demo_chart.h"
#include "html.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace halation::demo {
namespace {

using cli::escape;

// Lengths in the SVG's own units.
constexpr double bars_width = 720, height = 300;
constexpr double left = 78, right = 22, bottom = 46, legend_height = 24;
constexpr double row_height = 21, row_names = 132, panel_gap = 26, panel_bottom = 34;
constexpr double title_height = 20, note_height = 15;

// A narrow page scrolls a chart rather than make it unreadable: at this share of its size letters are 10 pixels high.
constexpr double least_share = 0.85;

double note_width(const std::string &words) {  // about
    return 6.2 * static_cast<double>(words.size());
}

double place(const Axis &axis, double value) {  // 0 at the low end, 1 at the high
    const auto scale = [&](double x) { return axis.logarithmic ? std::log(x) : x; };
    return (scale(value) - scale(axis.low)) / (scale(axis.high) - scale(axis.low));
}

std::string line(const char *style, double x1, double y1, double x2, double y2) {
    return fmt::format("<line class='{}' x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}'/>\n", style, x1, y1, x2, y2);
}

std::string text(const char *style, double x, double y, const std::string &words) {
    return fmt::format("<text class='{}' x='{:.1f}' y='{:.1f}'>{}</text>\n", style, x, y, escape(words));
}

std::string open(double width, double chart_height, const std::string &title) {
    return fmt::format("<svg viewBox='0 0 {:.0f} {:.0f}' style='min-width:{:.0f}px' role='img' aria-label='{}'>\n", width,
                       chart_height, least_share * width, escape(title));
}

struct Box {
    double left, top, right, bottom;
};

// Whether a curve, given by where its points are drawn, passes through the box.
bool crosses(const std::vector<Point> &curve, const Box &box) {
    for (size_t i = 1; i < curve.size(); i++) {
        const Point &a = curve[i - 1], &b = curve[i];
        const double from = std::max(a.x, box.left), to = std::min(b.x, box.right);
        if (from > to) continue;
        const auto height_at = [&](double x) { return b.x > a.x ? a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x) : a.y; };
        const auto [low, high] = std::minmax({height_at(from), height_at(to)});
        if (low <= box.bottom && high >= box.top) return true;
    }
    return false;
}

// Where the note of a mark at x stands: beside a line down to the floor or up to the top, on the side and at the end where
// no curve runs through it.
struct NotePlace {
    bool at_right, at_floor;
};
NotePlace note_place(double x, double width, const Box &plot, const std::vector<std::vector<Point>> &curves) {
    const bool preferred = x < (plot.left + plot.right) / 2;
    for (bool at_floor : {true, false}) {
        for (bool at_right : {preferred, !preferred}) {
            const double from = at_right ? x + 4 : x - 8 - width, y = at_floor ? plot.bottom - 22 : plot.top;
            const Box box{from, y, from + width + 4, y + 20};
            if (box.left < plot.left || box.right > plot.right) continue;
            if (std::none_of(curves.begin(), curves.end(), [&](const auto &curve) { return crosses(curve, box); }))
                return {at_right, at_floor};
        }
    }
    return {preferred, true};
}

}  // namespace

std::string short_number(double value) {
    if (value >= 1e6 && std::fmod(value, 1e5) == 0) return fmt::format("{:g}M", value / 1e6);
    if (value >= 1e4 && std::fmod(value, 1e2) == 0) return fmt::format("{:g}k", value / 1e3);
    return fmt::format("{:.7g}", value);
}

Axis linear_axis(std::string label, double high, const Format &format) {
    const double rough = high / 4, power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (double round : {5.0, 2.5, 2.0, 1.0}) {
        if (round * power >= rough) step = round * power;
    }
    Axis axis{std::move(label), false, 0, step * std::ceil(high / step - 1e-9)};
    for (double tick = 0; tick < axis.high + step / 2; tick += step) axis.ticks.emplace_back(tick, format(tick));
    return axis;
}

Axis logarithmic_axis(std::string label, double low, double high, double base, const Format &format) {
    const int first = static_cast<int>(std::floor(std::log(low) / std::log(base) + 1e-9));
    const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log(high) / std::log(base) - 1e-9)));
    const int every = 1 + (last - first) / 8;
    Axis axis{std::move(label), true, std::pow(base, first), std::pow(base, last)};
    for (int power = first; power <= last; power += every) {
        const double tick = std::pow(base, power);
        axis.ticks.emplace_back(tick, format(tick));
    }
    return axis;
}

std::string svg(const LineChart &chart) {
    const double width = chart.width, top = legend_height + 12, floor = height - bottom;
    const auto x_of = [&](double x) { return left + (width - left - right) * place(chart.x, x); };
    const auto y_of = [&](double y) { return floor - (floor - top) * place(chart.y, y); };

    std::string out = open(width, height, chart.title);
    for (const auto &[value, label] : chart.y.ticks) {
        out += line("grid", left, y_of(value), width - right, y_of(value));
        out += text("tick end", left - 8, y_of(value) + 4, label);
    }
    for (const auto &[value, label] : chart.x.ticks) {
        out += line("grid", x_of(value), top, x_of(value), floor);
        out += text("tick middle", x_of(value), floor + 16, label);
    }
    out += line("axis", left, floor, width - right, floor);
    out += text("label middle", (left + width - right) / 2, height - 8, chart.x.label);
    out += fmt::format("<text class='label middle' transform='translate(13 {:.1f}) rotate(-90)'>{}</text>\n", (top + floor) / 2,
                       escape(chart.y.label));

    std::vector<std::vector<Point>> curves;  // as they are drawn
    double legend = left;
    for (const Series &series : chart.series) {
        const std::string dashed = series.dashed ? " dashed" : "";
        out += line(fmt::format("line s{}{}", series.colour, dashed).c_str(), legend, 12, legend + 22, 12);
        out += text("key", legend + 28, 16, series.name);
        legend += 28 + 6.6 * static_cast<double>(series.name.size()) + 16;

        std::string path;
        std::vector<Point> &curve = curves.emplace_back();
        for (const Point &point : series.points) {
            curve.push_back({x_of(point.x), y_of(point.y)});
            path += fmt::format("{:.1f},{:.1f} ", curve.back().x, curve.back().y);
        }
        out += fmt::format("<polyline class='line s{}{}' points='{}'/>\n", series.colour, dashed, path);
        if (!series.dots) continue;
        for (const Point &point : series.points) {
            out += fmt::format("<circle class='f{}' cx='{:.1f}' cy='{:.1f}' r='3'><title>{}: {:g}, {:.3g}</title></circle>\n",
                               series.colour, x_of(point.x), y_of(point.y), escape(series.name), point.x, point.y);
        }
    }
    for (const Mark &mark : chart.marks) {
        const double x = x_of(mark.at.x), y = y_of(mark.at.y);
        const NotePlace place = note_place(x, note_width(mark.label), {left, top, width - right, floor}, curves);
        out += line("mark", x, y, x, place.at_floor ? floor : top);
        out += fmt::format("<circle class='ring' cx='{:.1f}' cy='{:.1f}' r='6'/>\n", x, y);
        out += text(place.at_right ? "note" : "note end", x + (place.at_right ? 8 : -8), place.at_floor ? floor - 8 : top + 14,
                    mark.label);
    }
    return out + "</svg>\n";
}

std::string svg(const BarChart &chart) {
    const double rows = static_cast<double>(chart.rows.size()), panels = static_cast<double>(chart.panels.size());
    size_t notes = 0;
    for (const BarPanel &panel : chart.panels) notes = std::max(notes, panel.references.size());
    const double panel_top = title_height + note_height * static_cast<double>(notes) + 4;
    const double floor = panel_top + rows * row_height, total = floor + panel_bottom;
    const double panel_width = (bars_width - row_names - right - (panels - 1) * panel_gap) / panels;

    std::string out = open(bars_width, total, chart.title);
    for (size_t row = 0; row < chart.rows.size(); row++) {
        out += text("row end", row_names - 8, panel_top + (static_cast<double>(row) + 0.7) * row_height, chart.rows[row].first);
    }
    double at = row_names;
    for (const BarPanel &panel : chart.panels) {
        const auto x_of = [&](double x) { return at + panel_width * place(panel.axis, x); };
        out += text("key strong", at, 14, panel.title);
        for (const auto &[value, label] : panel.axis.ticks) {
            out += line("grid", x_of(value), panel_top, x_of(value), floor);
            out += text("tick middle", x_of(value), floor + 14, label);
        }
        out += text("label middle", at + panel_width / 2, floor + 30, panel.axis.label);
        double note = title_height + 11;  // each in a line of its own, so that two of them never meet
        for (const auto &[value, label] : panel.references) {
            const double x = x_of(value);
            const bool fits = x + 4 + note_width(label) <= at + panel_width;
            out += line("mark", x, note - 9, x, floor);
            out += text(fits ? "note" : "note end", x + (fits ? 4 : -4), note, label);
            note += note_height;
        }
        for (size_t row = 0; row < panel.bars.size(); row++) {
            const auto &[value, label] = panel.bars[row];
            const double y = panel_top + static_cast<double>(row) * row_height;
            if (std::isnan(value)) {
                out += text("tick", at + 4, y + 0.7 * row_height, label);
                continue;
            }
            out += fmt::format("<rect class='f{}' x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' rx='2'/>\n",
                               chart.rows[row].second, at, y + 3, std::max(x_of(value) - at, 1.0), row_height - 6);
            const bool inside = x_of(value) - at > 50;  // there, no dashed line runs through it
            out += text(inside ? "value inside end" : "value", x_of(value) + (inside ? -6 : 6), y + 0.7 * row_height, label);
        }
        out += line("axis", at, panel_top, at, floor);
        at += panel_width + panel_gap;
    }
    return out + "</svg>\n";
}

}  // namespace halation::demo
