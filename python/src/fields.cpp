#include "fields.h"
#include "errors.h"

#include <cmath>
#include <cstring>

namespace nb = nanobind;

namespace halation::python {
namespace {

const struct {
    const char *name;
    DLDataType type;
} types[] = {{"float32", {kDLFloat, 32, 1}}, {"float16", {kDLFloat, 16, 1}}, {"bfloat16", {kDLBfloat, 16, 1}}};

// Where `value` stands among `words`.
template<size_t Count> int word_field(const char *name, nb::handle value, const char *const (&words)[Count]) {
    const char *given = text_field(name, value);
    std::string known;
    for (size_t i = 0; i < Count; i++) {
        if (!strcmp(given, words[i])) return static_cast<int>(i);
        known += (i == 0 ? "" : i + 1 < Count ? ", " : " or ") + std::string(words[i]);
    }
    raise(HALATION_INVALID_ARGUMENT, std::string(name) + ": got '" + given + "'; may be " + known);
}

const char *const form_words[] = {"auto", "recurrent", "chunkwise", "parallel"};
const char *const mapping_words[] = {"grouped", "tiled"};
const char *const type_words[] = {"float32", "float16", "bfloat16"};

// Each keyword of a problem. None stands for the default of all that have one.
const struct Field {
    const char *name;
    void (*set)(halation_problem &problem, const char *name, nb::handle value);
} fields[] = {
    {"heads", [](halation_problem &p, const char *n, nb::handle v) { p.heads = integer_field(n, v, INT64_MIN, INT64_MAX); }},
    {"value_heads",
     [](halation_problem &p, const char *n, nb::handle v) { p.value_heads = integer_field(n, v, INT64_MIN, INT64_MAX); }},
    {"key_dim", [](halation_problem &p, const char *n, nb::handle v) { p.key_dim = integer_field(n, v, INT64_MIN, INT64_MAX); }},
    {"value_dim",
     [](halation_problem &p, const char *n, nb::handle v) { p.value_dim = integer_field(n, v, INT64_MIN, INT64_MAX); }},
    {"type", [](halation_problem &p, const char *n, nb::handle v) { p.type = type_field(n, v); }},
    {"gate_type", [](halation_problem &p, const char *n, nb::handle v) { p.gate_type = type_field(n, v); }},
    {"state_type", [](halation_problem &p, const char *n, nb::handle v) { p.state_type = type_field(n, v); }},
    {"form",
     [](halation_problem &p, const char *n, nb::handle v) { p.form = static_cast<halation_form>(word_field(n, v, form_words)); }},
    {"head_mapping", [](halation_problem &p, const char *n,
                        nb::handle v) { p.head_mapping = static_cast<halation_head_mapping>(word_field(n, v, mapping_words)); }},
    {"isa", [](halation_problem &p, const char *n, nb::handle v) { p.isa = text_field(n, v); }},
    {"backend", [](halation_problem &p, const char *n, nb::handle v) { p.backend = text_field(n, v); }},
    {"feature_map", [](halation_problem &p, const char *n, nb::handle v) { p.feature_map = text_field(n, v); }},
    {"chunk", [](halation_problem &p, const char *n,
                 nb::handle v) { p.chunk = static_cast<int32_t>(integer_field(n, v, INT32_MIN, INT32_MAX)); }},
    {"scale", [](halation_problem &p, const char *n, nb::handle v) { p.scale = number_field(n, v); }},
    {"non_causal", [](halation_problem &p, const char *n, nb::handle v) { p.non_causal = flag_field(n, v); }},
};

const Field &field_named(const char *name) {
    std::string known;
    for (const Field &field : fields) {
        if (!strcmp(field.name, name)) return field;
        known += (known.empty() ? "" : ", ") + std::string(field.name);
    }
    raise_type_error("Plan: there is no keyword '" + std::string(name) + "'; may be " + known);
}

}  // namespace

int64_t integer_field(const char *name, nb::handle value, int64_t least, int64_t most) {
    const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        raise_type_error(std::string(name) + ": got " + shown(value) + "; must be an int");
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow || number < least || number > most)
        raise(HALATION_INVALID_ARGUMENT, std::string(name) + ": got " + shown(value) + "; must fit an int of " +
                                             (most == INT32_MAX ? "32" : "64") + " bits");
    return number;
}

double number_field(const char *name, nb::handle value) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        raise_type_error(std::string(name) + ": got " + shown(value) + "; must be a float");
    }
    return number;
}

bool flag_field(const char *name, nb::handle value) {
    if (!PyBool_Check(value.ptr())) raise_type_error(std::string(name) + ": got " + shown(value) + "; must be a bool");
    return value.is(Py_True);
}

const char *text_field(const char *name, nb::handle value) {
    if (!PyUnicode_Check(value.ptr())) raise_type_error(std::string(name) + ": got " + shown(value) + "; must be a str");
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
    if (!text) throw nb::python_error();
    // C would read another word.
    if (strlen(text) != static_cast<size_t>(length))
        raise(HALATION_INVALID_ARGUMENT, std::string(name) + ": has a NUL character in it");
    return text;
}

DLDataType type_field(const char *name, nb::handle value) {
    return types[word_field(name, value, type_words)].type;
}

const char *type_name(DLDataType type) {
    for (const auto &known : types)
        if (known.type.code == type.code && known.type.bits == type.bits) return known.name;
    return "unknown";
}

const char *name_of(halation_form form) {
    return form_words[form];
}

halation_problem problem_of(nb::handle recurrence, const nb::kwargs &keywords) {
    auto problem = HALATION_INIT(halation_problem);
    problem.recurrence = text_field("recurrence", recurrence);
    problem.type = problem.gate_type = problem.state_type = types[0].type;
    for (const auto [key, value] : keywords) {
        const Field &field = field_named(text_field("keyword", key));
        if (!value.is_none()) field.set(problem, field.name, value);
    }
    return problem;
}

}  // namespace halation::python
