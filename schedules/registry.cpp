#include "schedules.h"

#include <map>
#include <set>

namespace halation {
namespace {

// Made when first asked for, so that sources may register in any order.
std::map<std::string, RegisteredSchedule> &registered() {
    static std::map<std::string, RegisteredSchedule> all;
    return all;
}

// Why a schedule cannot be had under that name and with those parameters; empty: it can.
std::string fault_of(const std::string &name, const std::vector<ScheduleParameter> &parameters) {
    if (!is_identifier(name)) return "its name is no word of letters, digits and _";
    if (name == "shipped") return "the name means Halation's own";
    std::set<std::string> used;
    for (const std::string &fact : names_of_facts()) used.insert(fact);
    for (const ScheduleParameter &p : parameters) {
        const std::string parameter = "parameter '" + p.name + "' ";
        if (!is_identifier(p.name)) return parameter + "is no word of letters, digits and _";
        if (!used.insert(p.name).second) return parameter + "is there already, or Halation's";
        if (p.least < 0 || p.least > p.most || p.value < p.least || p.value > p.most)
            return parameter + "is not from its least to its most, or these are not in order";
        for (const int value : p.worthwhile)
            if (value < p.least || value > p.most) return parameter + "has values worth trying that it may not be";
    }
    return "";
}

}  // namespace

RegisterSchedule::RegisterSchedule(const std::string &name, ChunkSchedule schedule, std::vector<ScheduleParameter> parameters) {
    const bool first = registered().count(name) == 0;
    RegisteredSchedule &entry = registered()[name];
    entry = {schedule, std::move(parameters), ""};
    // Said when it is asked for: at namespace scope nobody could catch it.
    entry.fault = first ? fault_of(name, entry.parameters) : "two schedules have that name";
}

std::vector<std::string> schedule_names() {
    std::vector<std::string> names;
    for (const auto &[name, schedule] : registered()) names.push_back(name);
    return names;
}

const RegisteredSchedule &schedule_named(const std::string &name) {
    const auto found = registered().find(name);
    if (found != registered().end()) {
        if (!found->second.fault.empty()) throw Halide::CompileError("schedule '" + name + "': " + found->second.fault);
        return found->second;
    }
    std::string known;
    for (const auto &[other, schedule] : registered()) known += (known.empty() ? "" : ", ") + other;
    throw Halide::CompileError("no schedule '" + name + "' was registered; there are: " + (known.empty() ? "none" : known));
}

}  // namespace halation
