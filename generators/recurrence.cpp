#include "recurrence.h"

namespace halation {

const char *name_of(Form form) {
    switch (form) {
    case Form::recurrent:
        return "recurrent";
    case Form::chunkwise:
        return "chunkwise";
    case Form::parallel:
        return "parallel";
    }
    return "";
}

namespace {

using Otherwise = RowInput::Otherwise;
constexpr int recurrent = static_cast<int>(Form::recurrent), chunkwise = static_cast<int>(Form::chunkwise),
              parallel = static_cast<int>(Form::parallel);

// The heads that an expression differs by: those of the inputs it uses.
std::string heads_of(const Row &row, const TokenExpr &expression) {
    std::string heads;
    expression(Token([&](const std::string &name) {
        const RowInput *input = row.find(name);
        for (const char letter : input ? input->dims : "")
            if (letter == 'G' || (letter == 'H' && heads.empty())) heads = letter;
        return Halide::Internal::Variable::make(Halide::Float(32), name);
    }));
    return heads;
}

Recurrence recurrence_of(const Row &row) {
    Recurrence result;
    result.name = row.name;
    result.formula = row.formula;
    result.generator = "halation_chunk";
    result.inputs = row.inputs;
    result.output_dims = "BTGV";
    result.state_dims = "NGKV";
    result.normalizer_dims = row.normalized ? "NGK" : "";
    result.default_feature_map = row.default_feature_map;
    result.scale_by_key_dim = !row.normalized;
    // The read and the write; and what the write reads of the state before. Decays go into the vectors, chunk by chunk.
    result.state_products = row.write == Write::additive ? 2 : row.write == Write::delta ? 3 : 4;
    const std::pair<const TokenExpr *, const char *> decays[] = {
        {&row.log_decay_per_head, ""}, {&row.log_decay_per_key_channel, "K"}, {&row.log_decay_per_value_channel, "V"}};
    for (const auto &[decay, channels] : decays)
        if (*decay) result.exps.push_back(heads_of(row, *decay) + channels);
    return result;
}

// ---- algorithms of their own

Recurrence ssm() {
    Recurrence r;
    r.name = "ssm";
    r.formula = "S_t = exp(dt A) S_{t-1} + B (dt x)^T, o = (C^T S_t + D x) silu(z), elements decay each by itself";
    r.generator = "halation_ssm";
    r.inputs = {{"x", "BTV", false, Otherwise::required}, {"dt", "BTV", true, Otherwise::required},
                {"A", "VK", true, Otherwise::required},   {"B", "BTK", true, Otherwise::required},
                {"C", "BTK", true, Otherwise::required},  {"D", "V", true, Otherwise::zero},
                {"z", "BTV", false, Otherwise::zero}};
    r.output_dims = "BTV";
    r.state_dims = "NKV";
    r.scale_by_key_dim = false;
    r.exps = {"KV"};
    r.refused[parallel] = "its decays differ by element, so there is no product of a query and a key to mask";
    return r;
}

Recurrence hgrn() {
    Recurrence r;
    r.name = "hgrn";
    r.formula = "S_t = exp(g) S_{t-1} + v, o = S_t, every channel by itself";
    r.generator = "halation_hgrn";
    r.inputs = {{"v", "BTV", false, Otherwise::required}, {"g", "BTV", true, Otherwise::required}};
    r.output_dims = "BTV";
    r.state_dims = "NV";
    r.scale_by_key_dim = false;
    r.state_products = 1;
    r.exps = {"V"};
    r.refused[parallel] = "it has no keys and queries whose products could be masked";
    return r;
}

Recurrence bidirectional() {
    Recurrence r;
    r.name = "bidirectional";
    r.formula = "O = phi(Q) (phi(K)^T V), not causal; divided by phi(Q) (phi(K)^T 1) unless phi is the identity";
    r.generator = "halation_bidirectional";
    r.inputs = {{"q", "BTHK", false, Otherwise::required},
                {"k", "BTHK", false, Otherwise::required},
                {"v", "BTGV", false, Otherwise::required}};
    r.output_dims = "BTGV";
    r.default_feature_map = "identity";
    r.refused[recurrent] = "every token reads all tokens, so there is no order to go through";
    r.refused[chunkwise] = r.refused[recurrent];
    return r;
}

Recurrence softmax() {
    Recurrence r;
    r.name = "softmax";
    r.formula = "o_t = sum_s softmax_s(scale q_t^T k_s) v_s over the S cached tokens, of which the queries are the last T";
    r.generator = "halation_softmax";
    r.inputs = {{"q", "BTGK", false, Otherwise::required},
                {"k", "BSHK", false, Otherwise::required},
                {"v", "BSHV", false, Otherwise::required}};
    r.output_dims = "BTGV";
    r.refused[chunkwise] = "it has no state of fixed size to carry from chunk to chunk";
    return r;
}

}  // namespace

std::vector<Recurrence> recurrences() {
    std::vector<Recurrence> all;
    for (const Row &row : rows()) all.push_back(recurrence_of(row));
    for (const Recurrence &other : {ssm(), hgrn(), bidirectional(), softmax()}) all.push_back(other);
    return all;
}

Recurrence recurrence_named(const std::string &name) {
    std::string known;
    for (const Recurrence &recurrence : recurrences()) {
        if (recurrence.name == name) {
            if (recurrence.generator == "halation_chunk") row_named(name);  // which says so if there are two
            return recurrence;
        }
        known += (known.empty() ? "" : ", ") + recurrence.name;
    }
    throw Halide::CompileError("no recurrence named '" + name + "'; there are: " + known);
}

}  // namespace halation
