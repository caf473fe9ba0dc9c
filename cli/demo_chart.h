// Charts as inline SVG, coloured by the CSS classes of demo_style.cpp.
#ifndef HALATION_CLI_DEMO_CHART_H
#define HALATION_CLI_DEMO_CHART_H

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace halation::demo {

struct Point {
    double x, y;
};

struct Axis {
    std::string label;  // with its unit
    bool logarithmic = false;
    double low = 0, high = 1;
    std::vector<std::pair<double, std::string>> ticks = {};
};

using Format = std::function<std::string(double)>;
std::string short_number(double value);  // 1200 as 1.2k

// From 0 to a round number at or above `high`, some four round ticks.
Axis linear_axis(std::string label, double high, const Format &format = short_number);
// Over powers of `base` that hold [low, high], ticks at some of them.
Axis logarithmic_axis(std::string label, double low, double high, double base, const Format &format = short_number);

// Colours are numbers from 0 to 5: class c0 to c5.
struct Series {
    std::string name;
    int colour;
    std::vector<Point> points;
    bool dots = false;  // at the points, where they are few and measured
    bool dashed = false;
};

struct Mark {
    Point at;
    std::string label;
};

struct LineChart {
    std::string title;
    Axis x, y;
    std::vector<Series> series;
    std::vector<Mark> marks = {};
    double width = 720;  // in units of its letters being 12 high; the page scales it to the space there is
};

std::string svg(const LineChart &chart);

// Horizontal bars, a panel for each quantity, with the names of the rows once.
struct BarPanel {
    std::string title;
    Axis axis;
    std::vector<std::pair<double, std::string>> bars;        // length and label, by row
    std::vector<std::pair<double, std::string>> references;  // dashed lines across all rows
};

struct BarChart {
    std::string title;
    std::vector<std::pair<std::string, int>> rows;  // name and colour
    std::vector<BarPanel> panels;
};

std::string svg(const BarChart &chart);

}  // namespace halation::demo
#endif
