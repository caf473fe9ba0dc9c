#include "choose.h"
#include "cpu_features.h"
#include "status.h"
#include "types.h"

#include <cstring>

namespace halation::runtime {
namespace {

const char *feature_map_of(const halation_kernel &kernel) {
    return kernel.feature_map ? kernel.feature_map : "identity";
}

bool can_use_isa(const halation_kernel &kernel, const Problem &problem) {
    if (strcmp(kernel.backend, "cpu")) return true;
    const int rank = isa_rank(kernel.isa);
    return (!problem.isa || !strcmp(problem.isa, kernel.isa)) && rank >= 0 && !missing_feature(rank);
}

// "128 and any"
Text<40> dims_text(int64_t key_dim, int64_t value_dim) {
    Text<40> text;
    for (const int64_t dim : {key_dim, value_dim}) {
        if (!text.empty()) text.add(" and ");
        if (dim == 0)
            text.add("any");
        else
            text.add("%lld", static_cast<long long>(dim));
    }
    return text;
}

// What a kernel must agree with a problem in, most telling first: a refusal names the first of these in which
// every kernel that passed the ones before differs.
struct Filter {
    const char *what;
    bool (*pass)(const halation_kernel &, const Problem &, halation_form);
    Text<40> (*describe)(const halation_kernel &);
    Text<40> (*wanted)(const Problem &, halation_form);
};

const Filter filters[] = {
    {"for backend", [](const halation_kernel &k, const Problem &p, halation_form) { return !strcmp(k.backend, p.backend); },
     [](const halation_kernel &k) { return Text<40>().add("%s", k.backend); },
     [](const Problem &p, halation_form) { return Text<40>().add("%s", p.backend); }},
    {"for form", [](const halation_kernel &k, const Problem &, halation_form form) { return k.form == form; },
     [](const halation_kernel &k) { return Text<40>().add("%s", form_name(k.form)); },
     [](const Problem &, halation_form form) { return Text<40>().add("%s", form_name(form)); }},
    {"of type", [](const halation_kernel &k, const Problem &p, halation_form) { return same_type(k.type, p.type); },
     [](const halation_kernel &k) { return type_name(k.type); },
     [](const Problem &p, halation_form) { return type_name(p.type); }},
    {"of gate_type",
     [](const halation_kernel &k, const Problem &p, halation_form) { return same_type(k.gate_type, p.gate_type); },
     [](const halation_kernel &k) { return type_name(k.gate_type); },
     [](const Problem &p, halation_form) { return type_name(p.gate_type); }},
    {"for feature_map",
     [](const halation_kernel &k, const Problem &p, halation_form) {
         return !p.feature_map || !strcmp(feature_map_of(k), p.feature_map);
     },
     [](const halation_kernel &k) { return Text<40>().add("%s", feature_map_of(k)); },
     [](const Problem &p, halation_form) { return Text<40>().add("%s", p.feature_map ? p.feature_map : "none"); }},
    {"for chunk",
     [](const halation_kernel &k, const Problem &p, halation_form form) {
         return p.chunk == 0 || form != HALATION_FORM_CHUNKWISE || k.chunk == p.chunk;
     },
     [](const halation_kernel &k) { return Text<40>().add("%d", k.chunk); },
     [](const Problem &p, halation_form) { return Text<40>().add("%d", p.chunk); }},
    {"for key_dim and value_dim",
     [](const halation_kernel &k, const Problem &p, halation_form) {
         return (k.key_dim == 0 || k.key_dim == p.key_dim) && (k.value_dim == 0 || k.value_dim == p.value_dim);
     },
     [](const halation_kernel &k) { return dims_text(k.key_dim, k.value_dim); },
     [](const Problem &p, halation_form) { return dims_text(p.key_dim, p.value_dim); }},
    {"for isa", [](const halation_kernel &k, const Problem &p, halation_form) { return can_use_isa(k, p); },
     [](const halation_kernel &k) { return Text<40>().add("%s", k.isa); },
     [](const Problem &p, halation_form) { return Text<40>().add("%s", p.isa ? p.isa : "that this machine can run"); }},
};
constexpr int filter_count = sizeof filters / sizeof filters[0];

// Calls visit(kernel) for each kernel of the problem's recurrence that passes the first `passed` filters.
template<typename Visit>
void each_kernel(const Tables &tables, const Problem &problem, halation_form form, int passed, Visit visit) {
    for (const halation_kernel_table *table : tables)
        for (int i = 0; i < table->kernel_count; i++) {
            const halation_kernel &kernel = table->kernels[i];
            bool fits = !strcmp(kernel.recurrence, problem.row->name);
            for (int f = 0; fits && f < passed; f++) fits = filters[f].pass(kernel, problem, form);
            if (fits) visit(kernel);
        }
}

// Whether "a, b, c" has the word.
bool lists(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ',')) return true;
    return false;
}

// Why no kernel serves `form`: the first filter that none passes, and what exists instead.
void explain(const Tables &tables, const Problem &problem, halation_form form, Text<500> *reason) {
    for (int passed = 0; passed <= filter_count; passed++) {
        int left = 0;
        each_kernel(tables, problem, form, passed, [&](const halation_kernel &) { left++; });
        if (left > 0) continue;
        if (passed == 0) {
            reason->add("no kernel of recurrence %s was added", problem.row->name);
            return;
        }
        const Filter &filter = filters[passed - 1];
        Text<300> exist;
        each_kernel(tables, problem, form, passed - 1, [&](const halation_kernel &kernel) {
            const Text<40> value = filter.describe(kernel);
            if (!lists(exist.c_str(), value.c_str())) exist.item(value.c_str());
        });
        reason->add("no kernel %s %s", filter.what, filter.wanted(problem, form).c_str());
        if (passed > 2) reason->add(" for form %s", form_name(form));
        reason->add(" of recurrence %s", problem.row->name);
        if (passed > 1) reason->add(" on backend %s", problem.backend);
        reason->add("; kernels exist for: %s", exist.c_str());
        const int rank = problem.isa ? isa_rank(problem.isa) : -1;
        if (passed == filter_count && rank >= 0 && missing_feature(rank))
            reason->add(" (this machine lacks %s for %s)", missing_feature(rank), problem.isa);
        return;
    }
}

// The best kernel for a form, or NULL with the reason why there is none.
const halation_kernel *best_kernel(const Tables &tables, const Problem &problem, halation_form form, Text<500> *reason) {
    if (const char *refused = problem.row->refused[form]) {
        reason->add("recurrence %s has no form %s: %s", problem.row->name, form_name(form), refused);
        return nullptr;
    }
    const halation_kernel *best = nullptr;
    each_kernel(tables, problem, form, filter_count, [&](const halation_kernel &kernel) {
        // The better ISA, then dims that the compiler knew.
        const auto rank = [](const halation_kernel &k) {
            return 4 * isa_rank(k.isa) + (k.key_dim == 0 ? 2 : 0) + (k.value_dim == 0 ? 1 : 0);
        };
        if (!best || rank(kernel) < rank(*best)) best = &kernel;
    });
    if (!best) explain(tables, problem, form, reason);
    return best;
}

// Why ISAs better than the chosen kernel's were passed over.
void explain_isas(const Problem &problem, const halation_kernel &kernel, Text<500> *reason) {
    if (problem.isa) return;
    for (int rank = 0; rank < isa_rank(kernel.isa); rank++) {
        if (!isa_of_this_architecture(rank)) continue;
        const char *missing = missing_feature(rank);
        Text<120> why;
        why.add("%s %s: ", form_name(kernel.form), known_isas[rank]);
        if (missing)
            why.add("this machine lacks %s", missing);
        else
            why.add("no such kernel was added");
        reason->item(why.c_str(), "; ");
    }
}

int chunk_of(const halation_kernel &kernel) {
    return kernel.form == HALATION_FORM_PARALLEL ? 0 : kernel.form == HALATION_FORM_RECURRENT ? 1 : kernel.chunk;
}

void describe(const Chosen &chosen, const Text<500> &reason, halation_choice *choice) {
    const halation_kernel &one = *chosen.one, &many = *chosen.many;
    Text<sizeof choice->kernel> name;
    name.item(one.name);
    if (&one != &many) name.item(many.name, "+");
    copy_text(choice->kernel, name.c_str());
    Text<sizeof choice->isa> isa;
    isa.item(one.isa);
    if (strcmp(one.isa, many.isa)) isa.item(many.isa, "+");
    copy_text(choice->isa, isa.c_str());
    copy_text(choice->reason, reason.c_str());
    choice->form = &one == &many ? one.form : HALATION_FORM_AUTO;
    choice->chunk = chunk_of(many);
}

}  // namespace

halation_status choose(const Tables &tables, const Problem &problem, Chosen *chosen, halation_choice *choice) {
    Text<500> reason;
    const bool is_auto = problem.form == HALATION_FORM_AUTO;
    chosen->many = best_kernel(tables, problem, is_auto ? HALATION_FORM_CHUNKWISE : problem.form, &reason);
    chosen->one = chosen->many;
    // A chunk that was asked for is not passed over.
    if (is_auto && (chosen->many || problem.chunk == 0)) {
        // A form passed over is worth a word only when its place is taken by another.
        if (!chosen->many) {
            Text<500> parallel;
            chosen->many = best_kernel(tables, problem, HALATION_FORM_PARALLEL, &parallel);
            if (!chosen->many) reason.item(parallel.c_str(), "; ");
        }
        Text<500> recurrent;
        chosen->one = best_kernel(tables, problem, HALATION_FORM_RECURRENT, &recurrent);
        if (!chosen->one) reason.item(recurrent.c_str(), "; ");
        if (!chosen->one) chosen->one = chosen->many;
        if (!chosen->many) chosen->many = chosen->one;
    }
    if (!chosen->one) {
        copy_text(choice->reason, reason.c_str());
        return fail(HALATION_UNSUPPORTED, "%s", reason.c_str());
    }
    explain_isas(problem, *chosen->one, &reason);
    if (chosen->many != chosen->one) explain_isas(problem, *chosen->many, &reason);
    describe(*chosen, reason, choice);
    return HALATION_OK;
}

}  // namespace halation::runtime
