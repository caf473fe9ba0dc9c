// The recurrences of Halation that fit the one chunk algorithm. A new one is a function here and a test.
#include "row.h"

#include <set>

namespace halation {
namespace {

using Otherwise = RowInput::Otherwise;

TokenExpr input(const char *name) {
    return [name](const Token &token) { return token[name]; };
}

Row with_qkv(const char *name, const char *formula) {
    Row row(name, formula);
    row.input("q", "BTHK").input("k", "BTHK").input("v", "BTGV");
    return row;
}

// Katharopoulos et al. 2020, arXiv:2006.16236, without feature map and normaliser.
Row linear() {
    return with_qkv("linear", "S_t = S_{t-1} + k v^T");
}

// Katharopoulos et al. 2020, arXiv:2006.16236.
Row linear_normalized() {
    Row row = with_qkv("linear_normalized", "S_t = S_{t-1} + phi(k) v^T, z_t = z_{t-1} + phi(k), o = phi(q)^T S / phi(q)^T z");
    row.normalized = true;
    row.default_feature_map = "elu+1";
    return row;
}

// RetNet, arXiv:2307.08621: gamma_h = 1 - 2^(-5-h) unless it is given.
Row retention() {
    Row row = with_qkv("retention", "S_t = gamma_h S_{t-1} + k v^T");
    row.gate("gamma", "G", Otherwise::retention);
    row.decay_per_head = input("gamma");
    return row;
}

// Mamba-2 / SSD, arXiv:2405.21060; lightning attention.
Row gated() {
    Row row = with_qkv("gated", "S_t = exp(g) S_{t-1} + k v^T, g per head");
    row.gate("g", "BTG");
    row.log_decay_per_head = input("g");
    return row;
}

// Gated linear attention, arXiv:2312.06635.
Row gla() {
    Row row = with_qkv("gla", "S_t = diag(exp(g)) S_{t-1} + k v^T, g per key channel");
    row.gate("g", "BTGK");
    row.log_decay_per_key_channel = input("g");
    return row;
}

// The outer-product gate of gated linear attention, arXiv:2312.06635, section 4.
Row gla_outer() {
    Row row = with_qkv("gla_outer", "S_t = (exp(g) exp(gv)^T) * S_{t-1} + k v^T, g per key channel, gv per value channel");
    row.gate("g", "BTGK").gate("gv", "BTGV");
    row.log_decay_per_key_channel = input("g");
    row.log_decay_per_value_channel = input("gv");
    return row;
}

// RWKV-6 (Finch), arXiv:2404.05892.
Row rwkv6() {
    Row row = with_qkv("rwkv6", "S_t = diag(exp(g)) S_{t-1} + k v^T, o = q^T (S_{t-1} + diag(bonus) k v^T)");
    row.gate("g", "BTGK").gate("bonus", "HK");
    row.read = Read::before_write;
    row.log_decay_per_key_channel = input("g");
    row.bonus = input("bonus");
    return row;
}

// DeltaNet, arXiv:2406.06484.
Row delta() {
    Row row = with_qkv("delta", "S_t = S_{t-1} + k u^T, u = beta (v - S_{t-1}^T k)");
    row.gate("beta", "BTG(V)");
    row.write = Write::delta;
    row.beta = input("beta");
    return row;
}

// Gated DeltaNet, arXiv:2412.06464.
Row gated_delta() {
    Row row = with_qkv("gated_delta", "S_t = S' + k u^T, u = beta (v - S'^T k), S' = exp(g) S_{t-1}, g per head");
    row.gate("g", "BTG").gate("beta", "BTG(V)");
    row.write = Write::delta;
    row.log_decay_per_head = input("g");
    row.beta = input("beta");
    return row;
}

// Kimi Delta Attention, arXiv:2510.26692.
Row kda() {
    Row row = with_qkv("kda", "S_t = S' + k u^T, u = beta (v - S'^T k), S' = diag(exp(g)) S_{t-1}, g per key channel");
    row.gate("g", "BTGK").gate("beta", "BTG(V)");
    row.write = Write::delta;
    row.log_decay_per_key_channel = input("g");
    row.beta = input("beta");
    return row;
}

// RWKV-7 (Goose), arXiv:2503.14456: diagonal plus low rank.
Row rwkv7() {
    Row row = with_qkv("rwkv7", "S_t = diag(exp(g)) S_{t-1} + k v^T + b (a^T S_{t-1}), g per key channel");
    row.gate("g", "BTHK").gate("a", "BTHK").gate("b", "BTHK");
    row.write = Write::low_rank;
    row.log_decay_per_key_channel = input("g");
    row.a = input("a");
    row.b = input("b");
    return row;
}

std::vector<Row> &all_rows() {
    static std::vector<Row> all = {linear(), linear_normalized(), retention(), gated(), gla(), gla_outer(), rwkv6(),
                                   delta(),  gated_delta(),       kda(),       rwkv7()};
    return all;
}

// Names that more than one row was registered under.
std::set<std::string> &taken_twice() {
    static std::set<std::string> names;
    return names;
}

}  // namespace

std::string kernel_dims(const std::string &dims) {
    std::string result;
    for (auto letter = dims.rbegin(); letter != dims.rend(); ++letter) {
        if (std::string("BN()").find(*letter) == std::string::npos) result += *letter;
    }
    return result;
}

const RowInput *Row::find(const std::string &input_name) const {
    for (const RowInput &candidate : inputs) {
        if (candidate.name == input_name) return &candidate;
    }
    return nullptr;
}

const std::vector<Row> &rows() {
    return all_rows();
}

const Row &row_named(const std::string &name) {
    std::string known;
    if (taken_twice().count(name)) throw Halide::CompileError("two recurrences are named '" + name + "'");
    for (const Row &row : all_rows()) {
        if (row.name == name) return row;
        known += (known.empty() ? "" : ", ") + row.name;
    }
    throw Halide::CompileError("no recurrence named '" + name + "'; there are: " + known);
}

RegisterRow::RegisterRow(Row row) {
    for (const Row &known : all_rows()) {
        // Said when it is asked for: at namespace scope nobody could catch it.
        if (known.name == row.name) taken_twice().insert(row.name);
    }
    all_rows().push_back(std::move(row));
}

}  // namespace halation
