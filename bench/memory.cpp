#include "memory.h"

#include <algorithm>
#include <fstream>
#include <string>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace bench {
namespace {

// A field of /proc/self/status, which are in KiB; -1: there is none.
int64_t status_bytes(const std::string &field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind(field + ":", 0) == 0) return std::stoll(line.substr(field.size() + 1)) * 1024;
    return -1;
}

bool reset_peak() {
    std::ofstream clear("/proc/self/clear_refs");
    return static_cast<bool>(clear << 5 << std::flush);
}

}  // namespace

int64_t memory_taken(const std::function<void()> &call) {
#ifdef __GLIBC__
    malloc_trim(0);  // what earlier calls released would be taken again without a trace
#endif
    const bool known = reset_peak();
    const int64_t before = status_bytes("VmRSS");
    call();
    const int64_t peak = status_bytes("VmHWM");
    if (!known || before < 0 || peak < 0) return -1;
    return std::max<int64_t>(0, peak - before);
}

}  // namespace bench
