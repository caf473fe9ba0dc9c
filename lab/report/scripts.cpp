// The scripts of the page, as bytes of the program: the assembler copies them in, so that no compiler has to read 200 kB of
// numbers and the program needs no file beside it. The paths are given by CMake.
#include "parts.h"

#define HALATION_EMBED(name, path)                   \
    __asm__(".pushsection .rodata\n"                 \
            ".global halation_lab_" #name "_begin\n" \
            ".hidden halation_lab_" #name "_begin\n" \
            "halation_lab_" #name "_begin:\n"        \
            ".incbin \"" path "\"\n"                 \
            ".global halation_lab_" #name "_end\n"   \
            ".hidden halation_lab_" #name "_end\n"   \
            "halation_lab_" #name "_end:\n"          \
            ".byte 0\n"                              \
            ".popsection\n");                        \
    extern "C" __attribute__((visibility("hidden"))) const char halation_lab_##name##_begin[], halation_lab_##name##_end[]

HALATION_EMBED(chart_js, HALATION_LAB_CHART_JS);
HALATION_EMBED(page_js, HALATION_LAB_PAGE_JS);
HALATION_EMBED(page_charts_js, HALATION_LAB_PAGE_CHARTS_JS);

#define HALATION_EMBEDDED(name) \
    std::string_view(halation_lab_##name##_begin, static_cast<size_t>(halation_lab_##name##_end - halation_lab_##name##_begin))

namespace halation::lab::report {

std::string_view chart_js() {
    return HALATION_EMBEDDED(chart_js);
}
std::string_view page_js() {
    return HALATION_EMBEDDED(page_js);
}
std::string_view page_charts_js() {
    return HALATION_EMBEDDED(page_charts_js);
}

}  // namespace halation::lab::report
