#include "chunk_builder.h"

#include "feature_map.h"

#include <limits>

namespace halation {

using namespace Halide;

namespace {

Expr round_up(Expr x, int multiple) {
    return ((x + multiple - 1) / multiple) * multiple;
}

// A decay is exp of its logarithm; beyond the range of a float it saturates, so that it leaves an empty state zero.
Expr decay_of(Expr log_decay) {
    return min(exp(log_decay), std::numeric_limits<float>::max());
}

Expr by(Expr index, Expr at_zero, Expr at_one) {
    return at_one.defined() ? select(index == 0, at_zero, at_one) : at_zero;
}

std::vector<Expr> operator+(std::vector<Expr> lead, const std::vector<Expr> &rest) {
    lead.insert(lead.end(), rest.begin(), rest.end());
    return lead;
}

}  // namespace

ChunkBuilder::ChunkBuilder(const Row &row, const ChunkInputs &in) : row_(row), in_(in) {
    m_.chunk = in.chunk;
    m_.readers = row.write == Write::additive ? 1 : 2;
    m_.writers = row.write == Write::low_rank ? 2 : 1;
    m_.key_decay = bool(row.log_decay_per_key_channel);
    m_.value_decay = bool(row.log_decay_per_value_channel);
    m_.padded_key_dim = round_up(in.key_dim, in.key_unroll);
    m_.one_beta_per_head = in.one_beta_per_head;
    m_.chunks = (in.tokens + in.chunk - 1) / in.chunk;
}

Expr ChunkBuilder::exclusive(Expr r) const {
    const bool query = row_.read == Read::before_write, second = row_.write == Write::low_rank;
    if (m_.readers == 1 || query == second) return Internal::make_bool(query);
    return query ? r == 0 : r == 1;
}

Expr ChunkBuilder::head_factor(const Func &decay, Expr i) const {
    return head_decay() ? Expr(decay(i, m_.c, m_.h)) : Expr(1.0f);
}

Expr ChunkBuilder::value_factor(const Func &decay, Expr v, Expr i) const {
    return m_.value_decay ? Expr(decay(v, i, m_.c, m_.h)) : Expr(1.0f);
}

Expr ChunkBuilder::reader_factor(Expr v, Expr r, Expr i) const {
    return select(exclusive(r), head_factor(m_.before, i) * value_factor(m_.value_before, v, i),
                  head_factor(m_.through, i) * value_factor(m_.value_through, v, i));
}

Expr ChunkBuilder::value_between(Expr v, Expr r, Expr j, Expr i, Expr c) const {
    if (!m_.value_decay) return 1.0f;
    return select(exclusive(r), m_.value_between(v, j, max(i - 1, 0), c, m_.h), m_.value_between(v, j, i, c, m_.h));
}

Expr ChunkBuilder::inside(Expr channel, Expr extent) {
    if (!channel.defined())
        throw CompileError("an expression per head, or per channel of one kind, uses an input per channel of another kind");
    return min(likely(channel), extent - 1);
}

Expr ChunkBuilder::at_token(const TokenExpr &expr, Expr d, Expr v, Expr i, float padding) const {
    const Expr t = m_.c * m_.chunk + i, last = in_.tokens - 1;
    const Token token([&](const std::string &name) -> Expr {
        const RowInput *input = row_.find(name);
        if (!input) throw CompileError("recurrence " + row_.name + " uses '" + name + "', which is none of its inputs");
        std::vector<Expr> point;
        for (auto letter = input->dims.rbegin(); letter != input->dims.rend(); ++letter) {
            switch (*letter) {
            case 'K':
                point.push_back(inside(d, in_.key_dim));
                break;
            case 'V':
                point.push_back(inside(v, in_.value_dim));
                break;
            case 'H':
            case 'G':
                point.push_back(m_.h);
                break;
            case 'T':
                point.push_back(min(t, last));
                break;
            case 'B':
            case '(':
            case ')':
                break;
            default:
                throw CompileError("input '" + name + "' of recurrence " + row_.name + " has dims " + input->dims +
                                   "; the letters are B, T, H, G, K, V");
            }
        }
        return cast<float>(in_.tensors.at(name)(point));
    });
    Expr real = t <= last;
    if (d.defined()) real = real && likely(d < in_.key_dim);
    if (v.defined()) real = real && likely(v < in_.value_dim);
    return select(real, cast<float>(expr(token)), padding);
}

Expr ChunkBuilder::feature_at_token(const std::string &name, const TokenExpr &expr, Var d, Var i) {
    const auto channel = [&](Expr at) { return at_token(expr, at, Expr(), i); };
    const Expr real = m_.c * m_.chunk + i < in_.tokens && likely(d < in_.key_dim);
    return feature_map(in_.feature_map, name, channel, d, in_.key_dim, real, {i, m_.c, m_.h}, &m_.features);
}

void ChunkBuilder::token_vectors() {
    const Var &d = m_.d, &v = m_.v, &r = m_.r, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    Expr second_reader, second_writer;
    if (row_.write == Write::delta) second_reader = feature_at_token("k_reader_feature", row_.k, d, i);
    if (row_.write == Write::low_rank) {
        second_reader = at_token(row_.a, d, Expr(), i);
        second_writer = at_token(row_.b, d, Expr(), j);
    }
    m_.reads = Func("reads");
    m_.reads(d, r, i, c, h) =
        by(r, feature_at_token("q_feature", row_.q, d, i) * (row_.normalized ? Expr(1.0f) : in_.scale), second_reader);
    m_.writes = Func("writes");
    m_.writes(d, w, j, c, h) = by(w, feature_at_token("k_feature", row_.k, d, j), second_writer);
    m_.values = Func("values");
    m_.values(v, i, c, h) = at_token(row_.v, Expr(), v, i);
    if (row_.write == Write::delta) {
        m_.beta = Func("beta_at");
        m_.beta(v, i, c, h) = at_token(row_.beta, Expr(), v, i);
    }
}

// P, E and R of one kind of decay; its Funcs have the leading dimensions `lead` (none, d or v).
ChunkBuilder::Chain ChunkBuilder::decay_chain(const std::string &prefix, const std::vector<Expr> &lead, Expr decay) {
    const int C = m_.chunk;
    const Var &i = m_.i, &c = m_.c, &h = m_.h;
    Chain f{Func(prefix + "step"), Func(prefix + "through"), Func(prefix + "before"), Func(prefix + "after")};
    f.step(lead + std::vector<Expr>{i, c, h}) = decay;
    f.through(lead + std::vector<Expr>{i, c, h}) = f.step(lead + std::vector<Expr>{0, c, h});
    f.after(lead + std::vector<Expr>{i, c, h}) = 1.0f;
    if (C > 1) {
        const RDom k(1, C - 1, prefix + "token");
        auto at = [&](Expr token) { return lead + std::vector<Expr>{token, c, h}; };
        f.through(at(k)) = f.through(at(k - 1)) * f.step(at(k));
        f.after(at(C - 1 - k)) = f.after(at(C - k)) * f.step(at(C - k));
    }
    f.before(lead + std::vector<Expr>{i, c, h}) = select(i == 0, 1.0f, f.through(lead + std::vector<Expr>{max(i - 1, 0), c, h}));
    return f;
}

// L(j,i) of one kind of decay: 1 for j >= i.
Func ChunkBuilder::decay_between(const std::string &name, const std::vector<Expr> &lead, const Func &step) {
    const Var &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    Func f(name);
    f(lead + std::vector<Expr>{j, i, c, h}) = 1.0f;
    if (m_.chunk > 1) {
        const RDom k(1, m_.chunk - 1, name + "_token");
        const Expr longer = f(lead + std::vector<Expr>{j, k - 1, c, h}) * step(lead + std::vector<Expr>{k, c, h});
        f(lead + std::vector<Expr>{j, k, c, h}) = select(k > j, longer, 1.0f);
    }
    return f;
}

void ChunkBuilder::decays() {
    const auto keep = [&](const Chain &f) { m_.step = f.step, m_.through = f.through, m_.before = f.before, m_.after = f.after; };
    if (m_.key_decay) {
        keep(decay_chain("", {m_.d}, decay_of(at_token(row_.log_decay_per_key_channel, m_.d, Expr(), m_.i))));
    } else if (head_decay()) {
        keep(decay_chain("", {},
                         row_.decay_per_head ? at_token(row_.decay_per_head, Expr(), Expr(), m_.i, 1.0f)
                                             : decay_of(at_token(row_.log_decay_per_head, Expr(), Expr(), m_.i))));
        m_.between = decay_between("between", {}, m_.step);
    }
    if (m_.value_decay) {
        const Chain f = decay_chain("value_", {m_.v}, decay_of(at_token(row_.log_decay_per_value_channel, Expr(), m_.v, m_.i)));
        m_.value_step = f.step, m_.value_through = f.through, m_.value_before = f.before, m_.value_after = f.after;
        m_.value_between = decay_between("value_between", {m_.v}, m_.value_step);
    }
}

void ChunkBuilder::products() {
    const Var &d = m_.d, &r = m_.r, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    const Expr before_i = max(i - 1, 0);
    m_.product_keys = RDom(0, in_.key_dim, "product_key");
    const RDom &k = m_.product_keys;
    Expr writer = m_.writes(k, w, j, c, h);
    if (m_.key_decay) {
        m_.carried = Func("carried");
        m_.carried(d, w, j, i, c, h) = m_.writes(d, w, j, c, h);
        if (m_.chunk > 1) {
            const RDom token(1, m_.chunk - 1, "carried_token");
            const Expr now = m_.carried(d, w, j, token, c, h), earlier = m_.carried(d, w, j, token - 1, c, h);
            m_.carried(d, w, j, token, c, h) = select(token > j, earlier * m_.step(d, token, c, h), now);
        }
        writer = select(exclusive(r), m_.carried(k, w, j, before_i, c, h), m_.carried(k, w, j, i, c, h));
    }
    if (row_.bonus) {
        // A bonus is the weight of the token's own write, which only its own query sees.
        writer = select(i == j, m_.writes(k, w, j, c, h) * at_token(row_.bonus, k, Expr(), i), writer);
    }
    m_.product_sums = Func("product_sums");
    m_.product_sums(r, w, j, i, c, h) += m_.reads(k, r, i, c, h) * writer;

    Expr sum = m_.product_sums(r, w, j, i, c, h);
    if (head_decay()) sum *= select(exclusive(r), m_.between(j, before_i, c, h), m_.between(j, i, c, h));
    const bool own_write_seen = row_.read == Read::after_write || bool(row_.bonus);
    const Expr seen = own_write_seen ? select(r == 0, j <= i, j < i) : j < i;
    m_.products = Func("products");
    m_.products(r, w, j, i, c, h) = select(seen, sum, 0.0f);
}

void ChunkBuilder::vectors_at_the_ends() {
    const Var &d = m_.d, &r = m_.r, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    Expr read = m_.reads(d, r, i, c, h), write = m_.writes(d, w, j, c, h);
    if (m_.key_decay) {
        read *= select(exclusive(r), m_.before(d, i, c, h), m_.through(d, i, c, h));
        write *= m_.after(d, j, c, h);
    }
    m_.reads_from_start = Func("reads_from_start");
    m_.reads_from_start(d, r, i, c, h) = read;
    m_.writes_to_end = Func("writes_to_end");
    m_.writes_to_end(d, w, j, c, h) = write;
}

}  // namespace halation
