// The figures of the report, as SVG.
#ifndef HALATION_CLI_DEMO_FIGURES_H
#define HALATION_CLI_DEMO_FIGURES_H

#include "demo_results.h"

namespace halation::demo {

// What the colours of recurrences mean; numbers of CSS classes.
enum Colour { additive_colour, delta_colour, softmax_colour, retention_colour, gated_colour };

std::string bytes_text(double bytes);

std::string prediction_figure(const Results &results);
std::string memory_figure(const Results &results, const Entry &entry);
std::string cost_figure(const std::string &name, const Cost &cost);
std::string norm_figure(const Results &results);  // empty if there is nothing to show

}  // namespace halation::demo
#endif
