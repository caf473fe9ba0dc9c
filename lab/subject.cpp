#include "subject.h"

#include "bench/inputs.h"
#include "generators/kernel_table.h"

#include <fmt/format.h>

namespace halation::lab {
namespace {

DLDataType type_named(const std::string &type) {
    return type == "f16" ? float16 : type == "bf16" ? bfloat16 : float32;
}

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

// Of one token and one head of v, in units of K V: the read q^T S and the write k v^T, and where it has one, the product with
// the state that the write needs. Decays go into the vectors, chunk by chunk, and cost nothing in the limit.
double products_with_state(const Recurrence &recurrence) {
    if (recurrence.generator != "halation_chunk") return 2;
    switch (row_named(recurrence.name).write) {
    case Write::additive:
        return 2;
    case Write::delta:
        return 3;
    case Write::low_rank:
        return 4;
    }
    return 2;
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
    problem.type = type_named(s.type);
    problem.gate_type = type_named(s.gates);
    if (!s.feature_map.empty()) problem.feature_map = s.feature_map.c_str();
    return problem;
}

LeastWork work_of(const Subject &s) {
    const Recurrence recurrence = recurrence_named(s.recurrence);
    const KernelTable table({shipped_variant_of(s)});
    const double tokens = static_cast<double>(s.batch * s.tokens * s.value_heads);
    const double state = static_cast<double>(s.key_dim * s.value_dim);
    LeastWork work{};
    // Every query meets the whole cache and, on average, half of the keys of its own call.
    const bool softmax = recurrence.generator == "halation_softmax";
    const double pairs = static_cast<double>(s.cached) + 0.5 * static_cast<double>(s.tokens + 1);
    const bool channels = recurrence.state_dims == "NV";
    work.multiply_adds = channels  ? tokens * static_cast<double>(s.value_dim)
                         : softmax ? tokens * pairs * static_cast<double>(s.key_dim + s.value_dim)
                                   : tokens * state * products_with_state(recurrence);
    const Problem problem = problem_of(s);
    const bench::Inputs inputs(table.rows().front(), problem, {s.batch, s.tokens, s.cached});
    for (const auto &[name, tensor] : inputs.tensors()) {
        double elements = 1;
        for (const int64_t extent : tensor.shape()) elements *= static_cast<double>(extent);
        work.bytes += elements * tensor.type().bits / 8;  // a state is among them twice: read and written
    }
    return work;
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
