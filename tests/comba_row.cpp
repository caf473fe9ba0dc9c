// A recurrence that is not in the table, as a user would define it: Comba (arXiv:2506.02475),
//     S_t = exp(g) S_{t-1} - beta_feedback k (k^T S_{t-1}) + beta k v^T,   o = scale (q - d k)^T S_t.
// Linked with Halation's generators, this file is all that its kernels need.
#include "generators/row.h"

namespace {

using halation::Token;

halation::Row comba() {
    halation::Row row("comba", "S_t = exp(g) S_{t-1} - beta_feedback k (k^T S_{t-1}) + beta k v^T, o = (q - d k)^T S_t");
    row.input("q", "BTHK").input("k", "BTHK").input("v", "BTGV");
    row.gate("g", "BTG").gate("beta", "BTG").gate("beta_feedback", "BTG").gate("d", "G");
    row.write = halation::Write::low_rank;
    row.log_decay_per_head = [](const Token &token) { return token["g"]; };
    row.q = [](const Token &token) { return token["q"] - token["d"] * token["k"]; };
    row.v = [](const Token &token) { return token["beta"] * token["v"]; };
    row.a = [](const Token &token) { return token["k"]; };
    row.b = [](const Token &token) { return -token["beta_feedback"] * token["k"]; };
    return row;
}

const halation::RegisterRow registered(comba());

}  // namespace
