// A row: one recurrence, defined as expressions. This header is the public way to define your own.
//
// Per head, the state S is K x V. For every token a row says how S decays, what is written into it and what
// is read from it; generators/chunk.h turns that into kernels of every form. Example, gated delta:
//
//     Row row("gated_delta", "S_t = exp(g) S_{t-1} + k u^T, u = beta (v - exp(g) S_{t-1}^T k)");
//     row.input("q", "BTHK").input("k", "BTHK").input("v", "BTGV");
//     row.gate("g", "BTG").gate("beta", "BTG");
//     row.write = Write::delta;
//     row.log_decay_per_head = [](const Token &token) { return token["g"]; };
//     row.beta = [](const Token &token) { return token["beta"]; };
#ifndef HALATION_GENERATORS_ROW_H
#define HALATION_GENERATORS_ROW_H

#include <Halide.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace halation {

// What enters the state at a token, D being the decay and S' = D S_{t-1} the decayed state.
enum class Write {
    additive,  // S_t = S' + k v^T
    delta,     // S_t = S' + k u^T, u = beta (v - S'^T k)                    DeltaNet, arXiv:2406.06484
    low_rank,  // S_t = S' + k v^T + b (a^T S_{t-1}), S_{t-1} not decayed     RWKV-7, arXiv:2503.14456
};

// Which state a query sees.
enum class Read {
    after_write,   // o_t = scale q^T S_t
    before_write,  // o_t = scale q^T (S_{t-1} + diag(bonus) k v^T)           RWKV-6, arXiv:2404.05892
};

// The inputs of one token and head, as expressions at the channel that is being computed: token["q"] is one
// number, of key channel d if the input's shape ends in K, of value channel v if it ends in V.
class Token {
public:
    using Lookup = std::function<Halide::Expr(const std::string &)>;
    explicit Token(Lookup lookup) : lookup_(std::move(lookup)) {}
    Halide::Expr operator[](const std::string &input) const { return lookup_(input); }

private:
    Lookup lookup_;
};

using TokenExpr = std::function<Halide::Expr(const Token &)>;

// One tensor that a row reads. `dims` is its shape in the letters of halation_kernels.h, outermost first:
// B sequences, T tokens, H key heads, G value heads, K key channels, V value channels. "BTG(V)": the caller may leave
// the last dimension out; it then has one value for all channels.
struct RowInput {
    enum class Otherwise { required, zero, one, retention };  // what it is if the caller leaves it out
    std::string name, dims;
    bool is_gate;
    Otherwise otherwise;
};

// The dims of a kernel's buffer: without B and N, innermost first. "BTG(V)" gives "VGT".
std::string kernel_dims(const std::string &dims);

struct Row {
    Row(std::string name, std::string formula) : name(std::move(name)), formula(std::move(formula)) {}

    Row &input(const std::string &name, const std::string &dims) { return add(name, dims, false, RowInput::Otherwise::required); }
    Row &gate(const std::string &name, const std::string &dims, RowInput::Otherwise otherwise = RowInput::Otherwise::required) {
        return add(name, dims, true, otherwise);
    }

    std::string name, formula;
    std::vector<RowInput> inputs;

    Write write = Write::additive;
    Read read = Read::after_write;
    bool normalized = false;          // o is divided by q^T z, z_t = D z_{t-1} + k; 0/0 = 0; with Read::after_write
    std::string default_feature_map;  // phi is applied to q and k; empty: the row has none

    // The vectors of a token. Defaults: the inputs of those names.
    TokenExpr q = named("q"), k = named("k"), v = named("v");  // K, K, V channels
    TokenExpr a, b;                                            // K channels, for Write::low_rank
    TokenExpr beta;                                            // per head or per value channel, for Write::delta
    TokenExpr bonus;  // K channels, for Read::before_write and Write::additive; none: zero

    // The decay, or its natural logarithm; none: 1. At most one of the first three.
    TokenExpr decay_per_head;               // the decay itself, one number per head
    TokenExpr log_decay_per_head;           // one number per head
    TokenExpr log_decay_per_key_channel;    // K channels
    TokenExpr log_decay_per_value_channel;  // V channels, on top of the others

    const RowInput *find(const std::string &input_name) const;

private:
    static TokenExpr named(std::string name) {
        return [name](const Token &token) { return token[name]; };
    }
    Row &add(const std::string &input_name, const std::string &dims, bool is_gate, RowInput::Otherwise otherwise) {
        inputs.push_back({input_name, dims, is_gate, otherwise});
        return *this;
    }
};

// The rows of this build: Halation's own (rows.cpp) and those that user sources registered.
const std::vector<Row> &rows();
const Row &row_named(const std::string &name);  // throws Halide::CompileError listing the known names

// A user's source file says, at namespace scope: static halation::RegisterRow comba(make_comba());
struct RegisterRow {
    explicit RegisterRow(Row row);
};

}  // namespace halation
#endif
