#include "scan.h"

#include "carry.h"
#include "guard.h"
#include "masks.h"
#include "math.h"

namespace halation {

using namespace Halide;

namespace {

ScanRow ssm() {
    ScanRow row;
    row.decay = [](const Token &token) { return saturated_decay(token["dt"] * token["A"]); };
    row.write = [](const Token &token) { return token["B"] * (token["dt"] * token["x"]); };
    row.read = [](const Token &token, const Expr &element) { return token["C"] * element; };
    row.output = [](const Token &token, const Expr &reads) {
        const Expr through = token["scale"] * reads + token["D"] * token["x"], gate = token["z"];
        return select(token["has_z"] != 0, through * (gate / (1.0f + natural_exp(-gate))), through);
    };
    row.asked_for = {"z"};
    return row;
}

ScanRow hgrn() {
    ScanRow row;
    row.decay = [](const Token &token) { return saturated_decay(token["g"]); };
    row.write = [](const Token &token) { return token["v"]; };
    row.read = [](const Token &token, const Expr &element) { return token["scale"] * element; };
    row.output = [](const Token &, const Expr &reads) { return reads; };
    return row;
}

}  // namespace

const ScanRow &scan_row(const std::string &recurrence) {
    static const std::map<std::string, ScanRow> all = {{"ssm", ssm()}, {"hgrn", hgrn()}};
    const auto found = all.find(recurrence);
    if (found == all.end()) throw CompileError("recurrence " + recurrence + " is no scan; there are: hgrn, ssm");
    return found->second;
}

void resolve_markers(Pipeline pipeline, const Scan &scan) {
    CarryNames names;
    names.state_before = scan.state_before.name();
    names.state_after = scan.state_after.name();
    names.final_state_copy = scan.final_state_copy.name();
    names.copies[scan.final_state_copy.name()] = scan.final_state.name();
    names.chunk_loop = scan.t.name();
    pipeline.add_custom_lowering_pass(make_guard_pass());
    pipeline.add_custom_lowering_pass(make_carry_pass(names));
    pipeline.add_custom_lowering_pass(make_masks_pass());
}

}  // namespace halation
