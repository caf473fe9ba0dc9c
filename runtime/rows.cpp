#include "rows.h"
#include "cpu_features.h"
#include "status.h"
#include "types.h"

#include <cmath>
#include <cstring>

namespace halation::runtime {
namespace {

bool same_text(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

bool same_row(const halation_row &a, const halation_row &b) {
    if (a.input_count != b.input_count) return false;
    for (int i = 0; i < a.input_count; i++) {
        const halation_row_tensor &x = a.inputs[i], &y = b.inputs[i];
        if (!same_text(x.name, y.name) || !same_text(x.dims, y.dims) || x.role != y.role || x.otherwise != y.otherwise ||
            x.last_axis_optional != y.last_axis_optional)
            return false;
    }
    for (int form = 1; form <= 3; form++)
        if (!a.refused[form] != !b.refused[form]) return false;
    const bool same_scale = std::isnan(a.default_scale) ? std::isnan(b.default_scale) : a.default_scale == b.default_scale;
    return same_scale && same_text(a.output_dims, b.output_dims) && same_text(a.state_dims, b.state_dims) &&
           same_text(a.normalizer_dims, b.normalizer_dims) && same_text(a.default_feature_map, b.default_feature_map);
}

// Why `dims` cannot be the shape of an input, output (first letter B) or state (first letter N); NULL if it can.
const char *fault_in_dims(const char *dims, Letter first) {
    if (!dims || !*dims) return "are missing";
    if (strlen(dims) > static_cast<size_t>(most_axes)) return "are too many";
    for (const char *at = dims; *at; at++) {
        const Letter letter = letter_of(*at);
        if (letter == letter_count) return "have a letter that is none of BNTSHGKV";
        if (strchr(at + 1, *at)) return "repeat a letter";
        if ((letter == letter_B || letter == letter_N) && (at != dims || letter != first))
            return first == letter_N ? "must begin with N and have no B" : "may have B only first and no N";
    }
    if (first == letter_N && letter_of(dims[0]) != letter_N) return "must begin with N";
    if (!dims[1] && letter_of(dims[0]) == first) return "leave nothing for a kernel to see";
    return nullptr;
}

bool reserved_name(const char *name) {
    for (const char *taken : {"o", "initial_state", "final_state", "initial_normalizer", "final_normalizer", "snapshot_state",
                              "snapshot_normalizer", "scale", "causal", "sequences", "most_tokens", "key_head_step", "key_heads"})
        if (!strcmp(name, taken)) return true;
    return false;
}

halation_status check_row_tensor(const halation_row &row, int index) {
    const halation_row_tensor &tensor = row.inputs[index];
    if (!tensor.name || !*tensor.name || reserved_name(tensor.name))
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: input %d is named '%s'", row.name, index,
                    tensor.name ? tensor.name : "");
    for (int i = 0; i < index; i++)
        if (!strcmp(row.inputs[i].name, tensor.name))
            return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: two inputs are named '%s'", row.name, tensor.name);
    if (const char *fault = fault_in_dims(tensor.dims, letter_B))
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: dims '%s' of %s %s", row.name, tensor.dims ? tensor.dims : "",
                    tensor.name, fault);
    if (raw(tensor.role) < HALATION_ROLE_DATA || raw(tensor.role) > HALATION_ROLE_STATE)
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: role of %s is %d", row.name, tensor.name, raw(tensor.role));
    if (raw(tensor.otherwise) < HALATION_DEFAULT_REQUIRED || raw(tensor.otherwise) > HALATION_DEFAULT_RETENTION)
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: default of %s is %d", row.name, tensor.name,
                    raw(tensor.otherwise));
    const char innermost = tensor.dims[strlen(tensor.dims) - 1];
    if (tensor.otherwise == HALATION_DEFAULT_RETENTION && innermost != 'G')
        return fail(HALATION_INVALID_ARGUMENT,
                    "recurrence %s: %s has dims '%s'; a retention default needs the value head G innermost", row.name,
                    tensor.name, tensor.dims);
    if (tensor.otherwise != HALATION_DEFAULT_REQUIRED && (innermost == 'T' || innermost == 'S' || innermost == 'B'))
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: %s is optional, so its innermost axis may not be %c", row.name,
                    tensor.name, innermost);
    return HALATION_OK;
}

halation_status check_row(const halation_row &row) {
    if (!row.name || !*row.name) return fail(HALATION_INVALID_ARGUMENT, "kernels: a row has no name");
    if (row.input_count < 1 || row.input_count > most_inputs || !row.inputs)
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: has %d inputs; may have 1 to %d", row.name, row.input_count,
                    most_inputs);
    for (int i = 0; i < row.input_count; i++) HALATION_TRY(check_row_tensor(row, i));
    if (const char *fault = fault_in_dims(row.output_dims, letter_B))
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: dims '%s' of o %s", row.name,
                    row.output_dims ? row.output_dims : "", fault);
    for (const char *dims : {row.state_dims, row.normalizer_dims}) {
        if (!dims) continue;
        if (const char *fault = fault_in_dims(dims, letter_N))
            return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: dims '%s' of its state %s", row.name, dims, fault);
    }
    if (row.normalizer_dims && !row.state_dims)
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: has a normalizer but no state", row.name);
    // Heads are computed apart, so what is written must be apart too.
    if (row_has_letter(row, letter_G) || row_has_letter(row, letter_H))
        for (const char *dims : {row.output_dims, row.state_dims, row.normalizer_dims})
            if (dims && !has_letter(dims, letter_G))
                return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: has heads, but dims '%s' of an output or state lack G",
                            row.name, dims);
    if (!has_letter(row.output_dims, letter_B) || !has_letter(row.output_dims, letter_T))
        return fail(HALATION_INVALID_ARGUMENT, "recurrence %s: dims '%s' of o must have B and T", row.name, row.output_dims);
    return HALATION_OK;
}

halation_status check_kernel(const Tables &tables, const halation_kernel_table &table, int index) {
    const halation_kernel &kernel = table.kernels[index];
    if (!kernel.name || !kernel.recurrence || !kernel.backend || !kernel.isa || !kernel.run || !kernel.metadata)
        return fail(HALATION_INVALID_ARGUMENT, "kernels: kernel %d (%s) lacks a name, recurrence, backend, isa, run or metadata",
                    index, kernel.name ? kernel.name : "unnamed");
    if (!find_row({&table}, kernel.recurrence) && !find_row(tables, kernel.recurrence))
        return fail(HALATION_INVALID_ARGUMENT, "kernel %s: its recurrence %s has no row", kernel.name, kernel.recurrence);
    if (!strcmp(kernel.backend, "cpu") && isa_rank(kernel.isa) < 0)
        return fail(HALATION_INVALID_ARGUMENT, "kernel %s: isa %s is not known", kernel.name, kernel.isa);
    if (strcmp(kernel.backend, "cpu") && strcmp(kernel.isa, gpu_isa))
        return fail(HALATION_INVALID_ARGUMENT, "kernel %s: isa is %s; must be %s with backend %s", kernel.name, kernel.isa,
                    gpu_isa, kernel.backend);
    if (raw(kernel.form) < HALATION_FORM_RECURRENT || raw(kernel.form) > HALATION_FORM_PARALLEL)
        return fail(HALATION_INVALID_ARGUMENT, "kernel %s: form is %d", kernel.name, raw(kernel.form));
    if (kernel.key_dim < 0 || kernel.value_dim < 0)
        return fail(HALATION_INVALID_ARGUMENT, "kernel %s: key_dim is %d and value_dim %d; neither may be negative", kernel.name,
                    kernel.key_dim, kernel.value_dim);
    if (kernel.chunk < 0 || kernel.segment < 0 || kernel.value_tile < 0 ||
        (kernel.chunk > 0 && kernel.segment % kernel.chunk != 0))
        return fail(HALATION_INVALID_ARGUMENT,
                    "kernel %s: chunk %d, segment %d, value_tile %d; none may be negative and a segment is whole chunks",
                    kernel.name, kernel.chunk, kernel.segment, kernel.value_tile);
    return HALATION_OK;
}

}  // namespace

Letter letter_of(char letter) {
    const char *at = letter ? strchr(letters, letter) : nullptr;
    return at ? static_cast<Letter>(at - letters) : letter_count;
}

bool has_letter(const char *dims, Letter letter) {
    return dims && strchr(dims, letters[letter]);
}

bool row_has_letter(const halation_row &row, Letter letter) {
    for (int i = 0; i < row.input_count; i++)
        if (has_letter(row.inputs[i].dims, letter)) return true;
    return has_letter(row.output_dims, letter) || has_letter(row.state_dims, letter) || has_letter(row.normalizer_dims, letter);
}

const halation_row *find_row(const Tables &tables, const char *name) {
    for (const halation_kernel_table *table : tables)
        for (int i = 0; i < table->row_count; i++)
            if (!strcmp(table->rows[i].name, name)) return &table->rows[i];
    return nullptr;
}

halation_status check_table(const Tables &tables, const halation_kernel_table &table) {
    if (table.row_count < 0 || table.kernel_count < 0 || (table.row_count > 0 && !table.rows) ||
        (table.kernel_count > 0 && !table.kernels))
        return fail(HALATION_INVALID_ARGUMENT, "kernels: the table has %d rows and %d kernels, or they are NULL", table.row_count,
                    table.kernel_count);
    for (int i = 0; i < table.row_count; i++) {
        const halation_row &row = table.rows[i];
        HALATION_TRY(check_row(row));
        for (int j = 0; j < i; j++)
            if (!strcmp(table.rows[j].name, row.name))
                return fail(HALATION_INVALID_ARGUMENT, "kernels: recurrence %s has two rows in one table", row.name);
        const halation_row *known = find_row(tables, row.name);
        if (known && !same_row(*known, row))
            return fail(HALATION_INVALID_ARGUMENT,
                        "kernels: table '%s' defines recurrence %s differently from a table added before it",
                        table.name ? table.name : "", row.name);
    }
    for (int i = 0; i < table.kernel_count; i++) HALATION_TRY(check_kernel(tables, table, i));
    return HALATION_OK;
}

}  // namespace halation::runtime
