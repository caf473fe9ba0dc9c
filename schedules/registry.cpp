#include "schedules.h"

#include <map>

namespace halation {
namespace {

// Made when first asked for, so that sources may register in any order.
std::map<std::string, RegisteredSchedule> &registered() {
    static std::map<std::string, RegisteredSchedule> all;
    return all;
}

}  // namespace

RegisterSchedule::RegisterSchedule(const std::string &name, ChunkSchedule schedule, std::vector<ScheduleParameter> parameters) {
    registered()[name] = {schedule, std::move(parameters)};
}

std::vector<std::string> schedule_names() {
    std::vector<std::string> names;
    for (const auto &[name, schedule] : registered()) names.push_back(name);
    return names;
}

const RegisteredSchedule &schedule_named(const std::string &name) {
    const auto found = registered().find(name);
    if (found != registered().end()) return found->second;
    std::string known;
    for (const auto &[other, schedule] : registered()) known += (known.empty() ? "" : ", ") + other;
    throw Halide::CompileError("no schedule '" + name + "' was registered; there are: " + (known.empty() ? "none" : known));
}

}  // namespace halation
