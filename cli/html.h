// Text that goes into a page of HTML.
#ifndef HALATION_CLI_HTML_H
#define HALATION_CLI_HTML_H

#include <string>

namespace halation::cli {

// With the characters that mean something in HTML and in attributes written so that they mean themselves.
std::string escape(const std::string &text);

}  // namespace halation::cli
#endif
