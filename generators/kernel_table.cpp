#include "kernel_table.h"

#include <cmath>
#include <ostream>
#include <set>

namespace halation {
namespace {

halation_default default_of(RowInput::Otherwise otherwise) {
    switch (otherwise) {
    case RowInput::Otherwise::required:
        return HALATION_DEFAULT_REQUIRED;
    case RowInput::Otherwise::zero:
        return HALATION_DEFAULT_ZERO;
    case RowInput::Otherwise::one:
        return HALATION_DEFAULT_ONE;
    case RowInput::Otherwise::retention:
        return HALATION_DEFAULT_RETENTION;
    }
    return HALATION_DEFAULT_REQUIRED;
}

DLDataType type_named(const std::string &type) {
    if (type == "f32") return {kDLFloat, 32, 1};
    if (type == "f16") return {kDLFloat, 16, 1};
    return {kDLBfloat, 16, 1};
}

// How the runtime may cut its calls of a kernel; see halation_kernel.
struct CallShape {
    int chunk, segment, value_tile;
};

CallShape call_shape(const Variant &v) {
    const Recurrence recurrence = recurrence_named(v.recurrence);
    if (v.on_gpu()) {
        const GpuMachine &machine = gpu_machine(v.backend);
        const int chunk = recurrence.generator == "halation_ssm"    ? machine.ssm(false, v.key_dim != 0).chunk
                          : recurrence.generator == "halation_hgrn" ? machine.hgrn(false).chunk
                          : v.form_value() == Form::parallel        ? 0
                                                                    : machine.chunk;
        return {v.form_value() == Form::recurrent ? 1 : chunk, 0, 0};
    }
    const CpuMachine machine = v.machine();
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

// ---- as C++ source

std::string quoted(const char *text) {
    return text ? "\"" + std::string(text) + "\"" : "nullptr";
}

// An enumerator, by its number.
template<typename Enum> std::string cast(const char *type, Enum value) {
    return std::string(type) + "(" + std::to_string(static_cast<int>(value)) + ")";
}

std::string type_text(DLDataType type) {
    return "{" + std::to_string(type.code) + ", " + std::to_string(type.bits) + ", 1}";
}

void write_row(std::ostream &out, const halation_row &row) {
    out << "    {" << quoted(row.name) << ", " << quoted(row.formula) << ", inputs_" << row.name << ", " << row.input_count
        << ", " << quoted(row.output_dims) << ", " << quoted(row.state_dims) << ", " << quoted(row.normalizer_dims) << ", "
        << quoted(row.default_feature_map) << ", ";
    if (std::isnan(row.default_scale))
        out << "std::numeric_limits<double>::quiet_NaN()";
    else
        out << row.default_scale;
    out << ", {" << quoted(row.refused[0]);
    for (int form = 1; form < 4; form++) out << ", " << quoted(row.refused[form]);
    out << "}, " << row.state_products << ", " << quoted(row.exps) << "},\n";
}

void write_inputs(std::ostream &out, const halation_row &row) {
    out << "const halation_row_tensor inputs_" << row.name << "[] = {\n";
    for (int i = 0; i < row.input_count; i++) {
        const halation_row_tensor &input = row.inputs[i];
        out << "    {" << quoted(input.name) << ", " << quoted(input.dims) << ", " << cast("halation_tensor_role", input.role)
            << ", " << cast("halation_default", input.otherwise) << ", " << input.last_axis_optional << "},\n";
    }
    out << "};\n";
}

void write_kernel(std::ostream &out, const halation_kernel &k) {
    out << "    {" << quoted(k.name) << ", " << quoted(k.recurrence) << ", " << quoted(k.backend) << ", " << quoted(k.isa) << ", "
        << quoted(k.feature_map) << ", " << cast("halation_form", k.form) << ", " << type_text(k.type) << ", "
        << type_text(k.gate_type) << ", " << k.key_dim << ", " << k.value_dim << ", " << k.chunk << ", " << k.segment << ", "
        << k.value_tile << ", " << k.name << "_argv, " << k.name << "_metadata},\n";
}

}  // namespace

KernelTable::KernelTable(std::vector<Variant> variants) : variants_(std::move(variants)) {
    std::set<std::string> names, used;
    for (const Variant &v : variants_) {
        if (!names.insert(v.name).second) throw Halide::CompileError("the variant " + v.name + " occurs twice");
        used.insert(v.recurrence);
    }
    for (const Recurrence &r : recurrences()) {
        if (used.count(r.name)) add_row(r);
    }
    for (const Variant &v : variants_) add_kernel(v);
}

const char *KernelTable::kept(const std::string &text) {
    if (text.empty()) return nullptr;
    texts_.push_back(text);
    return texts_.back().c_str();
}

void KernelTable::add_row(const Recurrence &r) {
    std::vector<halation_row_tensor> &inputs = inputs_.emplace_back();
    for (const RowInput &input : r.inputs) {
        std::string dims;
        for (char letter : input.dims) {
            if (letter != '(' && letter != ')') dims += letter;
        }
        const int last_axis_optional = dims != input.dims;
        inputs.push_back({kept(input.name), kept(dims), input.is_gate ? HALATION_ROLE_GATE : HALATION_ROLE_DATA,
                          default_of(input.otherwise), last_axis_optional});
    }
    halation_row row{};
    row.name = kept(r.name);
    row.formula = kept(r.formula);
    row.inputs = inputs.data();
    row.input_count = static_cast<int32_t>(inputs.size());
    row.output_dims = kept(r.output_dims);
    row.state_dims = kept(r.state_dims);
    row.normalizer_dims = kept(r.normalizer_dims);
    row.default_feature_map = kept(r.default_feature_map);
    row.default_scale = r.scale_by_key_dim ? std::nan("") : 1.0;
    for (size_t form = 1; form < 4; form++) row.refused[form] = kept(r.refused[form]);
    row.state_products = r.state_products;
    std::string exps;
    for (const std::string &dims : r.exps) exps += (exps.empty() ? "" : ",") + dims;
    row.exps = kept(exps);
    rows_.push_back(row);
}

void KernelTable::add_kernel(const Variant &v) {
    const CallShape call = call_shape(v);
    halation_kernel kernel{};
    kernel.name = v.name.c_str();
    kernel.recurrence = v.recurrence.c_str();
    kernel.backend = v.backend.c_str();
    kernel.isa = v.isa.c_str();
    kernel.feature_map = v.feature_map.empty() ? nullptr : v.feature_map.c_str();
    kernel.form = static_cast<halation_form>(v.form_value());
    kernel.type = type_named(v.type);
    kernel.gate_type = type_named(v.gate_type);
    kernel.key_dim = v.key_dim;
    kernel.value_dim = v.value_dim;
    kernel.chunk = call.chunk;
    kernel.segment = call.segment;
    kernel.value_tile = call.value_tile;
    kernels_.push_back(kernel);
}

void write_kernel_table(std::ostream &out, const std::string &function, const std::vector<Variant> &variants) {
    const KernelTable table(variants);
    out << "// Written by halation_generate. The kernels of one generated library.\n"
           "#include \"halation_kernels.h\"\n\n#include <limits>\n\nextern \"C\" {\n";
    for (const halation_kernel &kernel : table.kernels())
        out << "int " << kernel.name << "_argv(void **);\nconst struct halide_filter_metadata_t *" << kernel.name
            << "_metadata(void);\n";
    out << "}\n\nnamespace {\n\n";
    for (const halation_row &row : table.rows()) write_inputs(out, row);
    out << "\nconst halation_row rows[] = {\n";
    for (const halation_row &row : table.rows()) write_row(out, row);
    out << "};\n\nconst halation_kernel kernels[] = {\n";
    for (const halation_kernel &kernel : table.kernels()) write_kernel(out, kernel);
    out << "};\n\nconst halation_kernel_table table = {sizeof(halation_kernel_table), HALATION_VERSION, \"" << function
        << "\", rows, " << table.rows().size() << ", kernels, " << table.kernels().size() << "};\n\n}  // namespace\n\n"
        << "extern \"C\" HALATION_API const halation_kernel_table *" << function << "(void) {\n    return &table;\n}\n";
}

}  // namespace halation
