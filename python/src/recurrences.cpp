#include "recurrences.h"
#include "fields.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <cstring>

namespace nb = nanobind;

namespace halation::python {
namespace {

struct Input {
    std::string name;
    nb::tuple dims;
    const char *role;
    bool optional, last_axis_optional;
    const char *otherwise;  // what it is then; NULL: it does not enter
};

struct Recurrence {
    std::string name, formula;
    nb::dict inputs;
    nb::tuple output_dims, state_dims, normalizer_dims, forms, kernels;
    nb::dict refused;
    std::optional<std::string> default_feature_map;
    std::optional<double> default_scale;
};

// As messages call them.
nb::tuple dims_of(const char *letters) {
    nb::list dims;
    for (const char *letter = letters; letter && *letter; letter++)
        dims.append(*letter == 'G' ? std::string("HV") : std::string(1, *letter));
    return nb::tuple(dims);
}

std::string text_of(const nb::tuple &dims) {
    std::string text = "[";
    for (nb::handle letter : dims) text += (text.size() > 1 ? "," : "") + std::string(nb::str(letter).c_str());
    return text + "]";
}

const char *text_of(halation_tensor_role role) {
    return role == HALATION_ROLE_DATA ? "data" : role == HALATION_ROLE_GATE ? "gate" : "state";
}

const char *text_of(halation_default otherwise) {
    const char *texts[] = {nullptr, nullptr, "1", "1 - 2^(-5-h)"};
    return texts[otherwise];
}

Recurrence recurrence_of(const halation_row &row) {
    Recurrence recurrence;
    recurrence.name = row.name;
    recurrence.formula = row.formula ? row.formula : "";
    for (int i = 0; i < row.input_count; i++) {
        const halation_row_tensor &input = row.inputs[i];
        recurrence.inputs[input.name] = Input{input.name,
                                              dims_of(input.dims),
                                              text_of(input.role),
                                              input.otherwise != HALATION_DEFAULT_REQUIRED,
                                              input.last_axis_optional != 0,
                                              text_of(input.otherwise)};
    }
    recurrence.output_dims = dims_of(row.output_dims);
    recurrence.state_dims = dims_of(row.state_dims);
    recurrence.normalizer_dims = dims_of(row.normalizer_dims);
    if (row.default_feature_map) recurrence.default_feature_map = row.default_feature_map;
    if (!std::isnan(row.default_scale)) recurrence.default_scale = row.default_scale;
    nb::list forms;
    for (const halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE, HALATION_FORM_PARALLEL}) {
        if (row.refused[form])
            recurrence.refused[name_of(form)] = row.refused[form];
        else
            forms.append(name_of(form));
    }
    recurrence.forms = nb::tuple(forms);
    return recurrence;
}

std::string description_of(const Recurrence &recurrence) {
    std::string text = recurrence.name + ": " + recurrence.formula;
    for (const auto [name, object] : recurrence.inputs) {
        const Input &input = nb::cast<const Input &>(object);
        text += "\n    " + input.name + " " + text_of(input.dims);
        if (input.last_axis_optional) text += ", or without the last axis";
        if (input.optional) text += input.otherwise ? ", default " + std::string(input.otherwise) : ", optional";
    }
    text += "\n    output o " + text_of(recurrence.output_dims);
    if (recurrence.state_dims.size()) text += "\n    state " + text_of(recurrence.state_dims);
    if (recurrence.normalizer_dims.size()) text += "\n    normalizer " + text_of(recurrence.normalizer_dims);
    if (recurrence.default_feature_map) text += "\n    feature map " + *recurrence.default_feature_map + " by default";
    for (nb::handle form : recurrence.forms) text += "\n    form " + std::string(nb::str(form).c_str());
    for (const auto [form, why] : recurrence.refused)
        text += "\n    not " + std::string(nb::str(form).c_str()) + ": " + nb::str(why).c_str();
    return text;
}

}  // namespace

void add_recurrences(nb::module_ &module) {
    nb::class_<Input>(module, "Input", "An input of a recurrence.")
        .def_ro("name", &Input::name)
        .def_ro("dims", &Input::dims, nb::sig("def dims(self) -> tuple[str, ...]"), "Letters of the shape, outermost first.")
        .def_prop_ro(
            "role", [](const Input &input) { return input.role; }, "data: has Plan's type; gate: its gate_type.")
        .def_ro("optional", &Input::optional)
        .def_prop_ro(
            "default",
            [](const Input &input) { return input.otherwise ? std::optional<std::string>(input.otherwise) : std::nullopt; },
            "What an optional one is taken to be if it is left out; None: nothing.")
        .def_ro("last_axis_optional", &Input::last_axis_optional, "Without it one value serves all channels.")
        .def("__repr__", [](const Input &input) { return "<halation.Input " + input.name + " " + text_of(input.dims) + ">"; });
    nb::class_<Recurrence>(
        module, "Recurrence",
        "What a recurrence takes and gives. Letters of shapes: B sequences, N sequences or slots of a state, T tokens,\n"
        "S cached tokens, H key heads, HV value heads, K key channels, V value channels.")
        .def_ro("name", &Recurrence::name)
        .def_ro("formula", &Recurrence::formula)
        .def_ro("inputs", &Recurrence::inputs, nb::sig("def inputs(self) -> dict[str, Input]"))
        .def_ro("output_dims", &Recurrence::output_dims, nb::sig("def output_dims(self) -> tuple[str, ...]"))
        .def_ro("state_dims", &Recurrence::state_dims, nb::sig("def state_dims(self) -> tuple[str, ...]"),
                "Empty: it has no state.")
        .def_ro("normalizer_dims", &Recurrence::normalizer_dims, nb::sig("def normalizer_dims(self) -> tuple[str, ...]"),
                "Empty: it has none.")
        .def_ro("default_feature_map", &Recurrence::default_feature_map, "None: it has no feature map.")
        .def_ro("default_scale", &Recurrence::default_scale, "None: K^-0.5, or 1 with a feature map that is not the identity.")
        .def_ro("forms", &Recurrence::forms, nb::sig("def forms(self) -> tuple[str, ...]"))
        .def_ro("refused", &Recurrence::refused, nb::sig("def refused(self) -> dict[str, str]"),
                "Why it has not the other forms.")
        .def_ro("kernels", &Recurrence::kernels, nb::sig("def kernels(self) -> tuple[str, ...]"),
                "Names of what was compiled: recurrence, form, backend, ISA, type.")
        .def("__str__", &description_of)
        .def("__repr__", [](const Recurrence &recurrence) { return "<halation.Recurrence " + recurrence.name + ">"; });
}

nb::dict recurrences_of(const std::vector<const halation_kernel_table *> &tables) {
    nb::dict all;
    for (const halation_kernel_table *table : tables)
        for (int i = 0; i < table->row_count; i++) {
            const halation_row &row = table->rows[i];
            if (all.contains(row.name)) continue;
            Recurrence recurrence = recurrence_of(row);
            nb::list kernels;
            for (const halation_kernel_table *kernels_of : tables)
                for (int k = 0; k < kernels_of->kernel_count; k++)
                    if (!strcmp(kernels_of->kernels[k].recurrence, row.name)) kernels.append(kernels_of->kernels[k].name);
            recurrence.kernels = nb::tuple(kernels);
            all[row.name] = std::move(recurrence);
        }
    return all;
}

}  // namespace halation::python
