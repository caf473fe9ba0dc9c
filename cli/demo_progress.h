// One line on stderr that says what long work is at.
#ifndef HALATION_CLI_DEMO_PROGRESS_H
#define HALATION_CLI_DEMO_PROGRESS_H

#include <chrono>
#include <string>

namespace halation::demo {

// On a terminal the line is rewritten in place and wiped at the end; elsewhere a line comes every ten seconds at
// most, and none for short work.
class Progress {
public:
    explicit Progress(int steps);
    ~Progress();
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    void step(const std::string &what);  // the next of `steps`
    void at(int64_t done, int64_t of);   // within a step

private:
    void show(int percent);

    using Clock = std::chrono::steady_clock;
    bool terminal_;
    int steps_, step_ = 0;
    std::string what_;
    Clock::time_point shown_ = Clock::now();
};

}  // namespace halation::demo
#endif
