#include "html.h"

namespace halation::cli {

std::string escape(const std::string &text) {
    std::string escaped;
    escaped.reserve(text.size());
    for (const char c : text) {
        switch (c) {
        case '&':
            escaped += "&amp;";
            break;
        case '<':
            escaped += "&lt;";
            break;
        case '>':
            escaped += "&gt;";
            break;
        case '\'':
            escaped += "&#39;";
            break;
        case '"':
            escaped += "&quot;";
            break;
        default:
            // Control characters may not stand in HTML, not even escaped.
            escaped +=
                static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? std::string("\xef\xbf\xbd") : std::string(1, c);
        }
    }
    return escaped;
}

}  // namespace halation::cli
