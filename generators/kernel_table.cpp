// Writes the kernel table of a generated library as C++ source.
#include "variant.h"

#include <ostream>
#include <set>

namespace halation {
namespace {

std::string quoted(const std::string &text) {
    return text.empty() ? "nullptr" : "\"" + text + "\"";
}

const char *otherwise_name(RowInput::Otherwise otherwise) {
    switch (otherwise) {
    case RowInput::Otherwise::required:
        return "HALATION_DEFAULT_REQUIRED";
    case RowInput::Otherwise::zero:
        return "HALATION_DEFAULT_ZERO";
    case RowInput::Otherwise::one:
        return "HALATION_DEFAULT_ONE";
    case RowInput::Otherwise::retention:
        return "HALATION_DEFAULT_RETENTION";
    }
    return "";
}

std::string type_name(const std::string &type) {
    return type == "f32" ? "{kDLFloat, 32, 1}" : type == "f16" ? "{kDLFloat, 16, 1}" : "{kDLBfloat, 16, 1}";
}

void write_inputs(std::ostream &out, const Recurrence &r) {
    out << "const halation_row_tensor inputs_" << r.name << "[] = {\n";
    for (const RowInput &input : r.inputs) {
        std::string dims;
        for (char letter : input.dims) {
            if (letter != '(' && letter != ')') dims += letter;
        }
        const bool optional_axis = dims != input.dims;
        out << "    {" << quoted(input.name) << ", " << quoted(dims) << ", "
            << (input.is_gate ? "HALATION_ROLE_GATE" : "HALATION_ROLE_DATA") << ", " << otherwise_name(input.otherwise) << ", "
            << optional_axis << "},\n";
    }
    out << "};\n";
}

void write_row(std::ostream &out, const Recurrence &r) {
    out << "    {" << quoted(r.name) << ", " << quoted(r.formula) << ", inputs_" << r.name << ", " << r.inputs.size() << ", "
        << quoted(r.output_dims) << ", " << quoted(r.state_dims) << ", " << quoted(r.normalizer_dims) << ", "
        << quoted(r.default_feature_map) << ", " << (r.scale_by_key_dim ? "std::numeric_limits<double>::quiet_NaN()" : "1.0")
        << ", {nullptr";
    for (int form = 1; form < 4; form++) out << ", " << quoted(r.refused[form]);
    out << "}},\n";
}

// How the runtime may cut its calls of a kernel; see halation_kernel.
struct CallShape {
    int chunk, segment, value_tile;
};

CallShape call_shape(const Variant &v) {
    const CpuMachine machine = v.machine();
    const Recurrence recurrence = recurrence_named(v.recurrence);
    const Form form = v.form_value();
    const bool recurrent = form == Form::recurrent;
    // A cache: every query stands alone, and in a call of few no query is computed with much that it does not see.
    if (recurrence.generator == "halation_softmax") return {recurrent ? 1 : 0, recurrent ? 1 : 64, 0};
    if (recurrence.state_dims.empty()) return {0, 0, 0};
    if (recurrence.generator != "halation_chunk")
        return {1, recurrent ? 1 : machine.scan_segment, machine.lanes * machine.scan_value_vectors};
    // Every value channel needs the normaliser, and one call must write it.
    const bool whole = !recurrence.normalizer_dims.empty();
    const int tile = whole ? 0 : machine.value_tile(recurrent);
    switch (form) {
    case Form::recurrent:
        return {1, 1, tile};
    case Form::chunkwise:
        return {machine.chunk, machine.segment, tile};
    case Form::parallel:
        break;
    }
    return {0, 0, tile};
}

void write_kernel(std::ostream &out, const Variant &v) {
    const CallShape call = call_shape(v);
    out << "    {\"" << v.name << "\", \"" << v.recurrence << "\", \"" << v.backend << "\", \"" << v.isa << "\", "
        << quoted(v.feature_map) << ", HALATION_FORM_"
        << (v.form == "recurrent"   ? "RECURRENT"
            : v.form == "chunkwise" ? "CHUNKWISE"
                                    : "PARALLEL")
        << ", " << type_name(v.type) << ", " << type_name(v.gate_type) << ", " << v.key_dim << ", " << v.value_dim << ", "
        << call.chunk << ", " << call.segment << ", " << call.value_tile << ", " << v.name << "_argv, " << v.name
        << "_metadata},\n";
}

}  // namespace

void write_kernel_table(std::ostream &out, const std::string &function, const std::vector<Variant> &variants) {
    out << "// Written by halation_generate. The kernels of one generated library.\n"
           "#include \"halation_kernels.h\"\n\n#include <limits>\n\nextern \"C\" {\n";
    std::set<std::string> used;
    for (const Variant &v : variants) {
        if (!used.insert(v.name).second) throw Halide::CompileError("the variant " + v.name + " occurs twice");
        out << "int " << v.name << "_argv(void **);\nconst struct halide_filter_metadata_t *" << v.name << "_metadata(void);\n";
    }
    out << "}\n\nnamespace {\n\n";
    std::set<std::string> names;
    for (const Variant &v : variants) names.insert(v.recurrence);
    std::vector<Recurrence> all;
    for (const Recurrence &r : recurrences()) {
        if (names.count(r.name)) all.push_back(r);
    }
    for (const Recurrence &r : all) write_inputs(out, r);
    out << "\nconst halation_row rows[] = {\n";
    for (const Recurrence &r : all) write_row(out, r);
    out << "};\n\nconst halation_kernel kernels[] = {\n";
    for (const Variant &v : variants) write_kernel(out, v);
    out << "};\n\nconst halation_kernel_table table = {sizeof(halation_kernel_table), HALATION_VERSION, \"" << function
        << "\", rows, " << all.size() << ", kernels, " << variants.size() << "};\n\n}  // namespace\n\n"
        << "extern \"C\" HALATION_API const halation_kernel_table *" << function << "(void) {\n    return &table;\n}\n";
}

}  // namespace halation
