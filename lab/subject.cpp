#include "subject.h"

#include "generators/kernel_table.h"

#include <fmt/format.h>

namespace halation::lab {
namespace {

Variant variant_with(const Subject &s, const std::string &schedule, const std::string &parameters) {
    std::vector<std::string> words = {
        "name=candidate", "recurrence=" + s.recurrence, "form=" + s.form,       "backend=" + s.backend,    "isa=" + s.isa,
        "type=" + s.type, "gates=" + s.gates,           "schedule=" + schedule, "parameters=" + parameters};
    std::string map = s.feature_map;
    if (map.empty()) map = recurrence_named(s.recurrence).default_feature_map;
    if (!map.empty()) words.push_back("feature_map=" + map);
    if (s.known_key_dim) words.push_back("key_dim=" + std::to_string(s.key_dim));
    if (s.known_value_dim) words.push_back("value_dim=" + std::to_string(s.value_dim));
    return Variant::parse(words);
}

}  // namespace

Variant variant_of(const Subject &subject, const Parameters &parameters) {
    return variant_with(subject, subject.schedule, text_of(parameters));
}

Variant shipped_variant_of(const Subject &subject) {
    return variant_with(subject, "", "");
}

std::vector<ScheduleParameter> parameters_of(const Subject &subject) {
    const Variant variant = variant_of(subject, {});
    return schedule_parameters(variant.scheduled(), cpu_machine(variant.isa), subject.schedule);
}

Problem problem_of(const Subject &s) {
    Problem problem(s.recurrence.c_str(), s.heads, s.value_heads, s.key_dim, s.value_dim);
    problem.form = static_cast<halation_form>(variant_of(s, {}).form_value());
    problem.backend = s.backend.c_str();
    problem.isa = s.isa.c_str();
    problem.type = bench::type_named(s.type);
    problem.gate_type = bench::type_named(s.gates);
    if (!s.feature_map.empty()) problem.feature_map = s.feature_map.c_str();
    return problem;
}

bench::Work work_of(const Subject &s) {
    const KernelTable table({shipped_variant_of(s)});
    return bench::work_of(table.rows().front(), problem_of(s), {s.batch, s.tokens, s.cached});
}

std::string text_of(const Subject &s) {
    std::string kind = fmt::format("{} {}, {} {} {}", s.recurrence, s.form, s.backend, s.isa, s.type);
    if (s.gates != "f32") kind += ", gates " + s.gates;
    if (!s.feature_map.empty()) kind += ", " + s.feature_map;
    if (!s.schedule.empty()) kind += ", schedule " + s.schedule;
    std::string heads =
        s.value_heads == s.heads ? fmt::format("H {}", s.heads) : fmt::format("H {}  HV {}", s.heads, s.value_heads);
    if (s.cached) heads = fmt::format("after {} cached  ", s.cached) + heads;
    return fmt::format("{}, B {}  T {}  {}  K {}  V {}, {}", kind, s.batch, s.tokens, heads, s.key_dim, s.value_dim,
                       s.threads == 1   ? "1 thread"
                       : s.threads == 0 ? "all threads"
                                        : fmt::format("{} threads", s.threads));
}

}  // namespace halation::lab
