// halation-lab list: what there is to experiment with.
#include "commands.h"
#include "generators/recurrence.h"
#include "options.h"
#include "schedules/schedules.h"

#include <fmt/format.h>

namespace halation::lab {
namespace {

std::string joined(const std::vector<int> &values) {
    std::string text;
    for (const int value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
    return text;
}

void list(const std::string &isa_or_best) {
    const CpuMachine &machine = isa_or_best.empty() ? cpu_machine(Halide::get_host_target()) : cpu_machine(isa_or_best);
    fmt::print("Recurrences\n");
    for (const Recurrence &recurrence : recurrences()) fmt::print("  {:<18} {}\n", recurrence.name, recurrence.formula);
    fmt::print("\nParameters of Halation's schedules for {}: what they are, what they may be, what a sweep tries\n", machine.isa);
    const std::pair<const char *, Scheduled> kinds[] = {
        {"recurrent", Scheduled::recurrent}, {"chunkwise", Scheduled::chunkwise}, {"parallel", Scheduled::parallel},
        {"ssm, hgrn", Scheduled::scan},      {"softmax", Scheduled::softmax},     {"bidirectional", Scheduled::bidirectional}};
    const auto print = [](const std::string &kind, const ScheduleParameter &p) {
        fmt::print("  {:<14} {:<22} {:>5}   {} to {}; {}\n", kind, p.name, p.value, p.least, p.most, joined(p.worthwhile));
    };
    for (const auto &[kind, scheduled] : kinds)
        for (const ScheduleParameter &parameter : schedule_parameters(scheduled, machine, "")) print(kind, parameter);
    const std::vector<std::string> own = schedule_names();
    if (own.empty()) return;
    fmt::print("\nSchedules of your own, and the parameters that they have besides\n");
    for (const std::string &name : own) {
        try {
            const std::vector<ScheduleParameter> &parameters = schedule_named(name).parameters;
            fmt::print("  {}\n", name);
            for (const ScheduleParameter &parameter : parameters) print("", parameter);
        } catch (const Halide::CompileError &error) {
            fmt::print("  {}\n", error.what());
        }
    }
}

}  // namespace

void add_list(CLI::App &app) {
    CLI::App *command = app.add_subcommand("list", "recurrences, schedules, and their parameters");
    auto isa = std::make_shared<std::string>();
    cli::add_words(*command, "--isa", *isa, {"x86_64", "avx2", "avx512", "neon"}, "(default: the best that\nthis machine has)");
    command->callback(guarded([isa] { list(*isa); }));
}

}  // namespace halation::lab
