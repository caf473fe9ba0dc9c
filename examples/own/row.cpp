// A recurrence of one's own: gated delta whose decays differ by value channel.
//     S_t = S_{t-1} diag(exp(gv_t)) + k u^T,   u = beta (v - (S_{t-1} diag(exp(gv_t)))^T k),   o = scale q^T S_t
#include <generators/row.h>

using halation::Token;

static halation::Row make() {
    halation::Row row("value_gated_delta", "S_t = S_{t-1} exp(gv) + k u^T, u = beta (v - S'^T k)");
    row.input("q", "BTHK").input("k", "BTHK").input("v", "BTGV");
    row.gate("gv", "BTGV").gate("beta", "BTG");
    row.write = halation::Write::delta;
    row.log_decay_per_value_channel = [](const Token &token) { return token["gv"]; };
    row.beta = [](const Token &token) { return token["beta"]; };
    return row;
}

static const halation::RegisterRow registered(make());
