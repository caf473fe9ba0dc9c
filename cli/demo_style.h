#ifndef HALATION_CLI_DEMO_STYLE_H
#define HALATION_CLI_DEMO_STYLE_H

namespace halation::demo {

extern const char *const report_style;  // the CSS of the report and its charts, light and dark

}  // namespace halation::demo
#endif
