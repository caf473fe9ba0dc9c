// halation list: what this build can compute, and what of it on this machine.
#include "commands.h"
#include "halation.hpp"
#include "halation_kernels.h"
#include "options.h"
#include "shapes.h"

#include <algorithm>
#include <cmath>
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

// What the inputs besides q, k, v and x are, in all rows that have one of the name.
const std::pair<const char *, const char *> meanings[] = {
    {"g", "natural logarithm of the decay, 0 or less"},
    {"gv", "the same, of the decay of value channels"},
    {"gamma", "the decay itself, from 0 to 1"},
    {"beta", "strength of a write: the share of the error that it mends"},
    {"a", "vector that the state before the token is read with"},
    {"b", "vector that what was read is written with"},
    {"bonus", "weight of the token's own k v^T in its output"},
    {"dt", "time step, positive"},
    {"A", "rate of decay, negative: the decay is exp(dt A)"},
    {"B", "vector that dt x is written with"},
    {"C", "vector that the state is read with"},
    {"D", "weight of x in the output"},
    {"z", "gate of the output, before silu"},
};

const char *meaning_of(const halation_row_tensor &input) {
    for (const auto &[name, meaning] : meanings)
        if (!std::strcmp(name, input.name)) return meaning;
    return input.role == HALATION_ROLE_GATE ? "see the formula" : nullptr;
}

std::string default_text(halation_default otherwise) {
    switch (otherwise) {
    case HALATION_DEFAULT_ZERO:
        return " (optional)";
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
    std::string inputs, explained;
    bool cache = false;
    for (int i = 0; i < row.input_count; i++) {
        const halation_row_tensor &input = row.inputs[i];
        cache = cache || std::strchr(input.dims, 'S');
        if (const char *meaning = meaning_of(input))
            explained +=
                fmt::format("    {:<8} {}: {}{}\n", input.name, dims_text(row, input), meaning, default_text(input.otherwise));
        else
            inputs += fmt::format("{}{} {}", inputs.empty() ? "" : ", ", input.name, dims_text(row, input));
    }
    fmt::print("    inputs   {}\n{}", inputs, explained);
    if (cache)
        fmt::print(
            "    causal   the T queries are the last of the S cached tokens, and see none that comes after them; if the file\n"
            "             says causal false, every query sees all S, and T may be larger\n");
    std::string scale = "K^-0.5";
    if (!std::isnan(row.default_scale))
        scale = fmt::format("{:g}", row.default_scale);
    else if (row.default_feature_map)
        scale += ", or 1 with a feature map that is not the identity";
    fmt::print("    output   o {}, scale {}\n", dims_text(row, row.output_dims), scale);
    if (row.state_dims) fmt::print("    state    {}", dims_text(row, row.state_dims));
    if (row.normalizer_dims) fmt::print(", normalizer {}", dims_text(row, row.normalizer_dims));
    if (row.state_dims) fmt::print("\n");
    if (row.default_feature_map) fmt::print("    feature map {} unless the file says another\n", row.default_feature_map);
}

bool has_gates(const halation_row &row) {
    return std::any_of(row.inputs, row.inputs + row.input_count,
                       [](const halation_row_tensor &input) { return input.role == HALATION_ROLE_GATE; });
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
            if (kernel.key_dim) what += fmt::format(", {} {}", std::strcmp(row.name, "ssm") ? "K" : "N", kernel.key_dim);
            if (kernel.feature_map) what += fmt::format(", feature map {}", kernel.feature_map);
            Group &group = by_isa[what + "\n" + kernel.isa];
            if (!std::strcmp(kernel.backend, "cpu")) group.isas = kernel.isa;  // others have but one
            std::string type = type_text(kernel.type);
            if (has_gates(row) && type_text(kernel.gate_type) != type)
                type += fmt::format("(gates {})", type_text(kernel.gate_type));
            add_word(group.types, type);
        }
        std::map<std::string, Group> groups;
        for (const auto &[key, group] : by_isa) {
            Group &merged = groups[key.substr(0, key.find('\n')) + group.types];
            merged.types = key.substr(0, key.find('\n')) + ": " + group.types;
            if (!group.isas.empty()) add_word(merged.isas, group.isas);
        }
        if (groups.empty()) fmt::print("    {:<10} not in this build\n", title);
        for (const auto &[key, group] : groups)
            fmt::print("    {:<10} {}{}{}\n", title, group.types, group.isas.empty() ? "" : " on ", group.isas);
    }
    fmt::print("\n");
}

// Whether this machine can run what was compiled for an ISA, asked of one of its kernels.
void print_machine(const Context &context, const halation_kernel_table &table) {
    std::vector<std::string> seen;
    fmt::print("This machine\n");
    for (int i = 0; i < table.kernel_count; i++) {
        const halation_kernel &kernel = table.kernels[i];
        if (std::strcmp(kernel.backend, "cpu") || std::find(seen.begin(), seen.end(), kernel.isa) != seen.end()) continue;
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
    if (table.kernel_count == 0) fmt::print("    this build has no kernels\n");
}

// The devices of each backend that is not the CPU, or why there is none, and whether this build has anything for them.
void print_devices(const halation_kernel_table &table) {
    for (const char *backend : {"cuda", "opencl", "metal"}) {
        const bool kernels = std::any_of(table.kernels, table.kernels + table.kernel_count,
                                         [&](const halation_kernel &kernel) { return !std::strcmp(kernel.backend, backend); });
        const char *lacking = kernels ? "" : "; no kernels for it in this build";
        int32_t count = 0;
        if (halation_backend_devices(backend, &count) != HALATION_OK) {
            const std::string reason = halation_last_message(), known = fmt::format("{} is not there: ", backend);
            fmt::print("    {:<10} no: {}{}\n", backend, reason.substr(reason.find(known) == 0 ? known.size() : 0), lacking);
            continue;
        }
        for (int32_t ordinal = 0; ordinal < count; ordinal++) {
            auto info = HALATION_INIT(halation_device_info);
            check(halation_backend_device(backend, ordinal, &info));
            fmt::print("    {:<10} {}, {:.1f} GiB{}\n", fmt::format("{}:{}", backend, ordinal), info.name,
                       static_cast<double>(info.memory_bytes) / (1 << 30), lacking);
        }
    }
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
    print_devices(table);
}

}  // namespace

void add_list(CLI::App &app) {
    CLI::App *command = app.add_subcommand("list", "show the recurrences and kernels of this build");
    command->footer(
        "For each recurrence: its formula, the names and shapes of its tensors, and its forms with the kernels that exist for\n"
        "each (tokens in a chunk, the one K, or N of ssm, that they are for, types, instruction sets), or why it has no such\n"
        "form. At the end: which instruction sets this machine can run, and the devices of other backends.\n\n"
        "Shapes: B sequences, T tokens, S cached tokens, K and V channels, HV heads of v, H heads of q and k, HV being a\n"
        "multiple of H. For softmax the cache has the fewer heads: q has HV, k and v have H.\n"
        "Types: q, k, v, x, z and o have the type listed, all other inputs that of 'gates' if one is listed, else the same;\n"
        "states are F32 or, if the file has initial_state so, BF16.");
    command->callback([] { list(); });
}

}  // namespace halation::cli
