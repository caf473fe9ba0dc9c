// halation list: what this build can compute, and what of it on this machine.
#include "commands.h"
#include "halation.hpp"
#include "halation_kernels.h"
#include "options.h"
#include "shapes.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>

namespace halation::cli {
namespace {

std::string type_text(DLDataType type) {
    if (type.bits == 32) return "F32";
    return type.code == kDLBfloat ? "BF16" : "F16";
}

void add_word(std::string &list, const std::string &word) {
    // Between spaces, so that F16 is not found in BF16.
    if ((" " + list + " ").find(" " + word + " ") == std::string::npos) list += (list.empty() ? "" : " ") + word;
}

std::string default_text(halation_default otherwise) {
    switch (otherwise) {
    case HALATION_DEFAULT_ZERO:
        return " (optional)";  // what 0 means for it, or absent, is in the formula
    case HALATION_DEFAULT_ONE:
        return " (default 1)";
    case HALATION_DEFAULT_RETENTION:
        return " (default 1 - 2^(-5-h))";
    default:
        return "";
    }
}

void print_row(const halation_row &row) {
    fmt::print("{}\n    {}\n", row.name, row.formula);
    std::string inputs, gates;
    for (int i = 0; i < row.input_count; i++) {
        const halation_row_tensor &input = row.inputs[i];
        std::string &list = input.role == HALATION_ROLE_GATE ? gates : inputs;
        list +=
            fmt::format("{}{} {}{}", list.empty() ? "" : ", ", input.name, dims_text(row, input), default_text(input.otherwise));
    }
    fmt::print("    inputs   {}\n", inputs);
    if (!gates.empty()) fmt::print("    gates    {}\n", gates);
    fmt::print("    output   o {}, scale {}\n", dims_text(row, row.output_dims),
               row.default_scale == row.default_scale ? fmt::format("{:g}", row.default_scale) : "K^-0.5");
    if (row.state_dims) fmt::print("    state    {}", dims_text(row, row.state_dims));
    if (row.normalizer_dims) fmt::print(", normalizer {}", dims_text(row, row.normalizer_dims));
    if (row.state_dims) fmt::print("\n");
    if (row.default_feature_map) fmt::print("    feature map {} unless the file says another\n", row.default_feature_map);
}

// Kernels that differ only in ISA and types, on one line.
void print_kernels(const halation_kernel_table &table, const halation_row &row) {
    for (int form = HALATION_FORM_RECURRENT; form <= HALATION_FORM_PARALLEL; form++) {
        const char *title = name_of(static_cast<halation_form>(form));
        if (row.refused[form]) {
            fmt::print("    {:<10} refused: {}\n", title, row.refused[form]);
            continue;
        }
        struct Group {
            std::string types, isas;
        };
        std::map<std::string, Group> by_isa;  // what one ISA has
        for (int i = 0; i < table.kernel_count; i++) {
            const halation_kernel &kernel = table.kernels[i];
            if (std::strcmp(kernel.recurrence, row.name) || kernel.form != form) continue;
            std::string what = kernel.backend;
            if (kernel.form == HALATION_FORM_CHUNKWISE) what += fmt::format(", chunk {}", kernel.chunk);
            if (kernel.feature_map) what += fmt::format(", feature map {}", kernel.feature_map);
            Group &group = by_isa[what + "\n" + kernel.isa];
            group.isas = kernel.isa;
            std::string type = type_text(kernel.type);
            if (type_text(kernel.gate_type) != type) type += fmt::format("(gates {})", type_text(kernel.gate_type));
            add_word(group.types, type);
        }
        std::map<std::string, Group> groups;
        for (const auto &[key, group] : by_isa) {
            Group &merged = groups[key.substr(0, key.find('\n')) + group.types];
            merged.types = key.substr(0, key.find('\n')) + ": " + group.types;
            add_word(merged.isas, group.isas);
        }
        if (groups.empty()) fmt::print("    {:<10} not in this build\n", title);
        for (const auto &[key, group] : groups) fmt::print("    {:<10} {} on {}\n", title, group.types, group.isas);
    }
    fmt::print("\n");
}

// Whether this machine can run what was compiled for an ISA, asked of one of its kernels.
void print_machine(const Context &context, const halation_kernel_table &table) {
    std::vector<std::string> seen;
    fmt::print("This machine\n");
    for (int i = 0; i < table.kernel_count; i++) {
        const halation_kernel &kernel = table.kernels[i];
        if (std::find(seen.begin(), seen.end(), kernel.isa) != seen.end()) continue;
        seen.push_back(kernel.isa);
        bool key_channels = false;  // a row without them has key_dim 1
        for (int r = 0; r < table.row_count; r++) {
            const halation_row &row = table.rows[r];
            if (std::strcmp(row.name, kernel.recurrence)) continue;
            for (int t = 0; t < row.input_count; t++) key_channels = key_channels || std::strchr(row.inputs[t].dims, 'K');
        }
        Problem problem(kernel.recurrence, 1, 1, key_channels ? 64 : 1, 64);
        problem.backend = kernel.backend;
        problem.isa = kernel.isa;
        problem.feature_map = kernel.feature_map;
        problem.form = kernel.form;
        problem.chunk = kernel.form == HALATION_FORM_CHUNKWISE ? kernel.chunk : 0;
        problem.type = kernel.type;
        problem.gate_type = kernel.gate_type;
        const bool runs = halation_can_run(context.get(), &problem, nullptr) == HALATION_OK;
        fmt::print("    {:<10} {}\n", kernel.isa, runs ? "yes" : fmt::format("no: {}", halation_last_message()));
    }
    if (seen.empty()) fmt::print("    this build has no kernels\n");
}

void list() {
    const halation_kernel_table &table = *halation_kernels();
    Context context(1);
    context.add_kernels(table);
    fmt::print("{} recurrences, {} kernels\n\n", table.row_count, table.kernel_count);
    for (int i = 0; i < table.row_count; i++) {
        print_row(table.rows[i]);
        print_kernels(table, table.rows[i]);
    }
    print_machine(context, table);
}

}  // namespace

void add_list(CLI::App &app) {
    CLI::App *command = app.add_subcommand("list", "show the recurrences and kernels of this build");
    command->footer(
        "For each recurrence: its formula, the names and shapes of its tensors, and its forms with the kernels that "
        "exist "
        "for\neach (tokens in a chunk, types, instruction sets), or why it has no such form. At the end: which "
        "instruction "
        "sets this\nmachine can run.\n\n"
        "Shapes: B sequences, T tokens, S cached tokens, H heads of q and k, HV heads of v (a multiple of H), K and V "
        "channels.\nGates are natural logarithms of decays; states are always F32.");
    command->callback([] { list(); });
}

}  // namespace halation::cli
