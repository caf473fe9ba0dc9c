#include "problem.h"
#include "cpu_features.h"
#include "status.h"
#include "types.h"

#include <cmath>
#include <cstring>

namespace halation::runtime {
namespace {

constexpr const char *known_backends[] = {"cpu", "cuda", "metal", "opencl"};
constexpr const char *known_feature_maps[] = {"elu+1", "relu", "softmax", "identity"};

// The member of `known` that equals `name`, or NULL; `list` gets them all.
template<size_t Count> const char *look_up(const char *const (&known)[Count], const char *name, Text<200> *list) {
    const char *found = nullptr;
    for (const char *word : known) {
        list->item(word);
        if (!strcmp(word, name)) found = word;
    }
    return found;
}

halation_status check_recurrence(const Tables &tables, const halation_problem &given, Problem *problem) {
    if (!given.recurrence) return fail(HALATION_INVALID_ARGUMENT, "recurrence: is NULL");
    problem->row = find_row(tables, given.recurrence);
    if (problem->row) return HALATION_OK;
    Text<700> known;
    for (size_t t = 0; t < tables.size(); t++)
        for (int i = 0; i < tables[t]->row_count; i++) {
            const char *name = tables[t]->rows[i].name;
            if (find_row(tables, name) == &tables[t]->rows[i]) known.item(name);  // each name once
        }
    if (known.empty())
        return fail(HALATION_INVALID_ARGUMENT,
                    "recurrence: got '%s', but the context has none: add a table with halation_context_add_kernels",
                    given.recurrence);
    return fail(HALATION_INVALID_ARGUMENT, "recurrence: got '%s'; may be %s", given.recurrence, known.c_str());
}

halation_status check_words(const halation_problem &given, Problem *problem) {
    const halation_row &row = *problem->row;
    Text<200> list;
    problem->backend = look_up(known_backends, given.backend ? given.backend : "cpu", &list);
    if (!problem->backend) return fail(HALATION_INVALID_ARGUMENT, "backend: got '%s'; may be %s", given.backend, list.c_str());
    problem->isa = nullptr;
    if (strcmp(problem->backend, "cpu")) {
        if (given.isa && strcmp(given.isa, gpu_isa))
            return fail(HALATION_INVALID_ARGUMENT, "isa: got '%s'; must be NULL or '%s' with backend %s", given.isa, gpu_isa,
                        problem->backend);
    } else if (given.isa) {
        const int rank = isa_rank(given.isa);
        Text<100> isas;
        for (const char *isa : known_isas) isas.item(isa);
        if (rank < 0) return fail(HALATION_INVALID_ARGUMENT, "isa: got '%s'; may be %s", given.isa, isas.c_str());
        problem->isa = known_isas[rank];
    }
    problem->feature_map = row.default_feature_map;
    if (given.feature_map) {
        if (!row.default_feature_map)
            return fail(HALATION_INVALID_ARGUMENT, "feature_map: got '%s', but recurrence %s has none; must be NULL",
                        given.feature_map, row.name);
        Text<200> maps;
        problem->feature_map = look_up(known_feature_maps, given.feature_map, &maps);
        if (!problem->feature_map)
            return fail(HALATION_INVALID_ARGUMENT, "feature_map: got '%s'; may be %s", given.feature_map, maps.c_str());
    }
    return HALATION_OK;
}

halation_status check_form(const halation_problem &given, Problem *problem) {
    if (raw(given.form) < HALATION_FORM_AUTO || raw(given.form) > HALATION_FORM_PARALLEL)
        return fail(HALATION_INVALID_ARGUMENT, "form: got %d; may be 0 (auto) to 3 (parallel)", raw(given.form));
    if (raw(given.head_mapping) != HALATION_HEADS_GROUPED && raw(given.head_mapping) != HALATION_HEADS_TILED)
        return fail(HALATION_INVALID_ARGUMENT, "head_mapping: got %d; may be 0 (grouped) or 1 (tiled)", raw(given.head_mapping));
    if (given.chunk < 0) return fail(HALATION_INVALID_ARGUMENT, "chunk: got %d; may be 0 or more", given.chunk);
    if (given.form == HALATION_FORM_RECURRENT && given.chunk > 1)
        return fail(HALATION_INVALID_ARGUMENT, "chunk: got %d; may be 0 or 1 with form recurrent", given.chunk);
    if (given.form == HALATION_FORM_PARALLEL && given.chunk > 0)
        return fail(HALATION_INVALID_ARGUMENT, "chunk: got %d; must be 0 with form parallel", given.chunk);
    problem->form = given.form;
    problem->head_mapping = given.head_mapping;
    problem->chunk = given.form == HALATION_FORM_RECURRENT ? 0 : given.chunk;
    problem->causal = true;
    if (row_has_letter(*problem->row, letter_S)) {
        if (given.non_causal != 0 && given.non_causal != 1)
            return fail(HALATION_INVALID_ARGUMENT, "non_causal: got %d; may be 0 or 1", given.non_causal);
        problem->causal = given.non_causal == 0;
    }
    return HALATION_OK;
}

halation_status check_dims(const halation_problem &given, Problem *problem) {
    const struct {
        const char *name;
        int64_t value;
    } dims[] = {
        {"heads", given.heads}, {"value_heads", given.value_heads}, {"key_dim", given.key_dim}, {"value_dim", given.value_dim}};
    for (const auto &dim : dims)
        if (dim.value < 1 || dim.value > INT32_MAX)
            return fail(HALATION_INVALID_ARGUMENT, "%s: got %lld; may be 1 to %d", dim.name, static_cast<long long>(dim.value),
                        INT32_MAX);
    // So that sizes of states can be reckoned with.
    if (given.key_dim * given.value_dim > (int64_t(1) << 40) || given.value_heads > (int64_t(1) << 20))
        return fail(
            HALATION_INVALID_ARGUMENT,
            "key_dim, value_dim, value_heads: got %lld, %lld, %lld; a state may have 2^40 elements per head, and 2^20 heads",
            static_cast<long long>(given.key_dim), static_cast<long long>(given.value_dim),
            static_cast<long long>(given.value_heads));
    const halation_row &row = *problem->row;
    const bool has_heads = row_has_letter(row, letter_G) || row_has_letter(row, letter_H);
    if (!has_heads && (given.heads != 1 || given.value_heads != 1))
        return fail(HALATION_INVALID_ARGUMENT,
                    "heads and value_heads: got %lld and %lld; recurrence %s has no heads, both must be 1",
                    static_cast<long long>(given.heads), static_cast<long long>(given.value_heads), row.name);
    if (given.value_heads % given.heads != 0)
        return fail(HALATION_INVALID_ARGUMENT, "value_heads: got %lld; must be a multiple of heads, which is %lld",
                    static_cast<long long>(given.value_heads), static_cast<long long>(given.heads));
    if (!row_has_letter(row, letter_K) && given.key_dim != 1)
        return fail(HALATION_INVALID_ARGUMENT, "key_dim: got %lld; must be 1, recurrence %s has no key channels",
                    static_cast<long long>(given.key_dim), row.name);
    problem->heads = given.heads;
    problem->value_heads = given.value_heads;
    problem->key_dim = given.key_dim;
    problem->value_dim = given.value_dim;
    return HALATION_OK;
}

bool has_gates(const halation_row &row) {
    for (int i = 0; i < row.input_count; i++)
        if (row.inputs[i].role == HALATION_ROLE_GATE) return true;
    return false;
}

halation_status check_types(const halation_problem &given, Problem *problem) {
    if (!same_type(given.type, float32) && !same_type(given.type, float16) && !same_type(given.type, bfloat16))
        return fail(HALATION_INVALID_ARGUMENT, "type: got %s; may be float32, float16 or bfloat16",
                    type_name(given.type).c_str());
    if (!same_type(given.gate_type, float32) && !same_type(given.gate_type, given.type))
        return fail(HALATION_INVALID_ARGUMENT, "gate_type: got %s; may be float32 or the problem's type, %s",
                    type_name(given.gate_type).c_str(), type_name(given.type).c_str());
    problem->type = given.type;
    const bool none = given.state_type.code == 0 && given.state_type.bits == 0;
    if (!none && !same_type(given.state_type, float32) && !same_type(given.state_type, bfloat16))
        return fail(HALATION_INVALID_ARGUMENT, "state_type: got %s; may be float32 or bfloat16",
                    type_name(given.state_type).c_str());
    problem->gate_type = has_gates(*problem->row) ? given.gate_type : float32;
    problem->state_type = none ? float32 : given.state_type;
    return HALATION_OK;
}

}  // namespace

halation_status check_problem(const Tables &tables, const halation_problem *given, Problem *problem) {
    HALATION_TRY(check_struct(given, "halation_problem"));
    HALATION_TRY(check_recurrence(tables, *given, problem));
    HALATION_TRY(check_words(*given, problem));
    HALATION_TRY(check_form(*given, problem));
    HALATION_TRY(check_dims(*given, problem));
    HALATION_TRY(check_types(*given, problem));
    double scale = given->scale;
    if (std::isnan(scale) || scale == 0) scale = problem->row->default_scale;
    // Features are normalised, not scaled.
    if (std::isnan(scale) && problem->feature_map && strcmp(problem->feature_map, "identity")) scale = 1;
    if (std::isnan(scale)) scale = 1 / std::sqrt(static_cast<double>(given->key_dim));
    if (!std::isfinite(static_cast<float>(scale)))
        return fail(HALATION_INVALID_ARGUMENT, "scale: got %g; must be finite in float32, or 0 or NaN for the default",
                    given->scale);
    problem->scale = static_cast<float>(scale);
    return HALATION_OK;
}

}  // namespace halation::runtime
