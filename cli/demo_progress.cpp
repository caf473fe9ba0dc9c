#include "demo_progress.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace halation::demo {

using namespace std::chrono_literals;

Progress::Progress(int steps) : terminal_(isatty(STDERR_FILENO)), steps_(steps) {}

Progress::~Progress() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::step(const std::string &what) {
    step_++;
    what_ = what;
    if (terminal_ || Clock::now() - shown_ > 10s) show(-1);
}

void Progress::at(int64_t done, int64_t of) {
    if (Clock::now() - shown_ > (terminal_ ? 200ms : 10000ms)) show(static_cast<int>(100 * done / of));
}

void Progress::show(int percent) {
    shown_ = Clock::now();
    const std::string within = percent < 0 ? "" : fmt::format(", {} %", percent);
    fmt::print(stderr, "{}demo: step {} of {}, {}{}{}", terminal_ ? "\r\033[K" : "", step_, steps_, what_, within,
               terminal_ ? "" : "\n");
    std::fflush(stderr);
}

}  // namespace halation::demo
