#include "chunk.h"

#include "carry.h"

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

// Builds the Funcs of one Chunk step by step, in the order of the formulas.
class ChunkBuilder {
public:
    ChunkBuilder(const Row &row, const ChunkInputs &in) : row_(row), in_(in) {
        m_.chunk = in.chunk;
        m_.readers = row.write == Write::additive ? 1 : 2;
        m_.writers = row.write == Write::low_rank ? 2 : 1;
        m_.key_decay = bool(row.log_decay_per_key_channel);
        m_.value_decay = bool(row.log_decay_per_value_channel);
        m_.padded_key_dim = round_up(in.key_dim, in.key_unroll);
    }

    Chunk build() {
        token_vectors();
        decays();
        products();
        state_reads();
        values_written();
        output();
        state();
        return m_;
    }

private:
    const Row &row_;
    const ChunkInputs &in_;
    Chunk m_;

    bool head_decay() const { return bool(row_.log_decay_per_head); }
    bool any_decay() const { return head_decay() || m_.key_decay; }
    // Whether reader r sees the state before its own token's decay, and only earlier tokens.
    Expr exclusive(Expr r) const {
        const bool query = row_.read == Read::before_write, second = row_.write == Write::low_rank;
        if (query == second || m_.readers == 1) return cast<bool>(Expr(query));
        return query ? r == 0 : r == 1;
    }

    // The value of a row's expression at token i of chunk c, zero beyond the last token and the last key channel.
    Expr at_token(const TokenExpr &expr, Expr channel_d, Expr channel_v, Expr i) const {
        const Expr t = m_.c * m_.chunk + i, last = in_.tokens - 1;
        Token token([&](const std::string &name) -> Expr {
            const RowInput *input = row_.find(name);
            if (!input) throw CompileError("recurrence " + row_.name + " uses '" + name + "' which is none of its inputs");
            std::vector<Expr> point;
            for (auto letter = input->dims.rbegin(); letter != input->dims.rend(); ++letter) {
                switch (*letter) {
                case 'K': point.push_back(clamp_channel(channel_d, in_.key_dim)); break;
                case 'V': point.push_back(clamp_channel(channel_v, in_.value_dim)); break;
                case 'H':
                case 'G': point.push_back(m_.h); break;
                case 'T': point.push_back(min(t, last)); break;
                case 'B': break;
                default: throw CompileError("input " + name + " of recurrence " + row_.name + " has an unknown dimension '" + std::string(1, *letter) + "'");
                }
            }
            return cast<float>(in_.tensors.at(name)(point));
        });
        Expr inside = t <= last;
        if (channel_d.defined()) inside = inside && likely(channel_d < in_.key_dim);
        if (channel_v.defined()) inside = inside && likely(channel_v < in_.value_dim);
        return select(inside, cast<float>(expr(token)), 0.0f);
    }

    // Reads never go past the end of a buffer. `likely` lets Halide peel the last, partial vector off.
    static Expr clamp_channel(Expr channel, Expr extent) {
        if (!channel.defined()) throw CompileError("an expression per head or per channel uses an input of the other channel");
        return min(likely(channel), extent - 1);
    }

    static Expr by(Expr index, Expr at_zero, Expr at_one) { return at_one.defined() ? select(index == 0, at_zero, at_one) : at_zero; }

    void token_vectors() {
        const Var &d = m_.d, &v = m_.v, &r = m_.r, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
        Expr second_reader, second_writer;
        if (row_.write == Write::delta) second_reader = at_token(row_.k, d, Expr(), i);
        if (row_.write == Write::low_rank) second_reader = at_token(row_.a, d, Expr(), i), second_writer = at_token(row_.b, d, Expr(), j);
        m_.reads = Func("reads");
        m_.reads(d, r, i, c, h) = by(r, at_token(row_.q, d, Expr(), i) * in_.scale, second_reader);
        m_.writes = Func("writes");
        m_.writes(d, w, j, c, h) = by(w, at_token(row_.k, d, Expr(), j), second_writer);
        m_.values = Func("values");
        m_.values(v, i, c, h) = at_token(row_.v, Expr(), v, i);
        if (row_.write == Write::delta) {
            m_.beta = Func("beta_of");
            m_.beta(i, c, h) = at_token(row_.beta, Expr(), Expr(), i);
        }
    }

    // Products of the decays of the tokens in between, never quotients: decay_chain fills `through` and so on for one
    // kind of decay, whose Funcs have the leading dimensions `lead` (none, d or v).
    struct Chain {
        Func step, through, before, after;
    };
    Chain decay_chain(const std::string &prefix, const std::vector<Expr> &lead, Expr log_decay) {
        const int C = m_.chunk;
        auto at = [&](Expr i) {
            std::vector<Expr> args = lead;
            args.insert(args.end(), {i, m_.c, m_.h});
            return args;
        };
        Chain f{Func(prefix + "step"), Func(prefix + "through"), Func(prefix + "before"), Func(prefix + "after")};
        const Var &i = m_.i;
        f.step(at(i)) = decay_of(log_decay);
        f.through(at(i)) = f.step(at(0));
        f.after(at(i)) = 1.0f;
        if (C > 1) {
            RDom k(1, C - 1, prefix + "token");
            f.through(at(k)) = f.through(at(k - 1)) * f.step(at(k));
            f.after(at(C - 1 - k)) = f.after(at(C - k)) * f.step(at(C - k));
        }
        f.before(at(i)) = select(i == 0, 1.0f, f.through(at(max(i - 1, 0))));
        return f;
    }

    // L(j,i) for one kind of decay: 1 for j >= i.
    Func between(const std::string &name, const std::vector<Expr> &lead, const Func &step) {
        auto at = [&](Expr j, Expr i) {
            std::vector<Expr> args = lead;
            args.insert(args.end(), {j, i, m_.c, m_.h});
            return args;
        };
        auto step_at = [&](Expr i) {
            std::vector<Expr> args = lead;
            args.insert(args.end(), {i, m_.c, m_.h});
            return step(args);
        };
        Func f(name);
        f(at(m_.j, m_.i)) = 1.0f;
        if (m_.chunk > 1) {
            RDom k(1, m_.chunk - 1, name + "_token");
            f(at(m_.j, k)) = select(k > m_.j, f(at(m_.j, k - 1)) * step_at(k), 1.0f);
        }
        return f;
    }

    void decays() {
        if (m_.key_decay) {
            const Chain f = decay_chain("", {m_.d}, at_token(row_.log_decay_per_key_channel, m_.d, Expr(), m_.i));
            m_.step = f.step, m_.through = f.through, m_.before = f.before, m_.after = f.after;
        } else if (head_decay()) {
            const Chain f = decay_chain("", {}, at_token(row_.log_decay_per_head, Expr(), Expr(), m_.i));
            m_.step = f.step, m_.through = f.through, m_.before = f.before, m_.after = f.after;
            m_.between = between("between", {}, m_.step);
        }
        if (m_.value_decay) {
            const Chain f = decay_chain("value_", {m_.v}, at_token(row_.log_decay_per_value_channel, Expr(), m_.v, m_.i));
            m_.value_step = f.step, m_.value_through = f.through, m_.value_before = f.before, m_.value_after = f.after;
            m_.value_between = between("value_between", {m_.v}, m_.value_step);
        }
    }

    // Per head, decays are factors of the finished sums; per key channel they go into the vectors that are summed.
    Expr head_factor(const Func &decay, Expr i) const { return head_decay() ? decay(i, m_.c, m_.h) : Expr(1.0f); }
    Expr value_factor(const Func &decay, Expr v, Expr i) const { return m_.value_decay ? decay(v, i, m_.c, m_.h) : Expr(1.0f); }
    Expr reader_factor(Expr v, Expr r, Expr i) const {
        return select(exclusive(r), head_factor(m_.before, i) * value_factor(m_.value_before, v, i),
                      head_factor(m_.through, i) * value_factor(m_.value_through, v, i));
    }
    // L(j,i) or L(j,i-1) of the decays per value channel.
    Expr value_between(Expr v, Expr r, Expr j, Expr i) const {
        if (!m_.value_decay) return 1.0f;
        return select(exclusive(r), m_.value_between(v, j, max(i - 1, 0), m_.c, m_.h), m_.value_between(v, j, i, m_.c, m_.h));
    }

    void products() {
        const Var &d = m_.d, &r = m_.r, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
        m_.product_keys = RDom(0, in_.key_dim, "product_key");
        const RDom &k = m_.product_keys;
        const Expr before_i = max(i - 1, 0);
        m_.product_sums = Func("product_sums");
        m_.products = Func("products");
        Expr writer = m_.writes(k, w, j, c, h);
        if (m_.key_decay) {
            m_.carried = Func("carried");
            m_.carried(d, w, j, i, c, h) = m_.writes(d, w, j, c, h);
            if (m_.chunk > 1) {
                RDom token(1, m_.chunk - 1, "carried_token");
                const Expr now = m_.carried(d, w, j, token, c, h), earlier = m_.carried(d, w, j, token - 1, c, h);
                m_.carried(d, w, j, token, c, h) = select(token > j, earlier * m_.step(d, token, c, h), now);
            }
            writer = select(exclusive(r), m_.carried(k, w, j, before_i, c, h), m_.carried(k, w, j, i, c, h));
        }
        if (row_.bonus) {
            // Written by the token itself, seen by its own query only.
            writer = select(i == j, m_.writes(k, w, j, c, h) * at_token(row_.bonus, k, Expr(), i), writer);
        }
        m_.product_sums(r, w, j, i, c, h) += m_.reads(k, r, i, c, h) * writer;

        Expr sum = m_.product_sums(r, w, j, i, c, h);
        if (head_decay()) sum *= select(exclusive(r), m_.between(j, before_i, c, h), m_.between(j, i, c, h));
        // The query sees its own token's write, unless it reads before it; a bonus is that write's share.
        const bool own = row_.read == Read::after_write || bool(row_.bonus);
        const Expr seen = own ? select(r == 0, j <= i, j < i) : j < i;
        m_.products(r, w, j, i, c, h) = select(seen, sum, 0.0f);
    }

    void state_reads() {
        const Var &d = m_.d, &v = m_.v, &r = m_.r, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
        m_.reads_from_start = Func("reads_from_start");
        m_.writes_to_end = Func("writes_to_end");
        m_.reads_from_start(d, r, i, c, h) =
            m_.key_decay ? m_.reads(d, r, i, c, h) * select(exclusive(r), m_.before(d, i, c, h), m_.through(d, i, c, h)) : m_.reads(d, r, i, c, h);
        m_.writes_to_end(d, w, j, c, h) = m_.key_decay ? m_.writes(d, w, j, c, h) * m_.after(d, j, c, h) : m_.writes(d, w, j, c, h);

        m_.state_before = Func("state_before");
        const Expr inside = likely(v < in_.value_dim) && likely(d < in_.key_dim);
        const Expr loaded = in_.initial_state(clamp_channel(v, in_.value_dim), clamp_channel(d, in_.key_dim), h);
        m_.state_before(v, d, c, h) = mark_state_before(select(inside, loaded, 0.0f), v, d);

        m_.over_keys = RDom(0, m_.padded_key_dim, "key");
        m_.state_reads = Func("state_reads");
        m_.state_reads(v, r, i, c, h) += m_.reads_from_start(m_.over_keys, r, i, c, h) * m_.state_before(v, m_.over_keys, c, h);
    }

    void values_written() {
        const Var &v = m_.v, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
        const int C = m_.chunk;
        Expr values = m_.values(v, j, c, h);
        if (row_.write != Write::additive) {
            m_.solved = Func("solved");
            m_.earlier = RDom(0, C, 0, C, "earlier");
            m_.earlier.where(m_.earlier.x < m_.earlier.y);
            const RVar ej = m_.earlier.x, ei = m_.earlier.y;
            const Expr from_state = reader_factor(v, 1, i) * m_.state_reads(v, 1, i, c, h);
            if (row_.write == Write::delta) {
                m_.solved(v, i, c, h) = m_.beta(i, c, h) * (m_.values(v, i, c, h) - from_state);
                if (C > 1) {
                    m_.solved(v, ei, c, h) -= m_.beta(ei, c, h) * m_.products(1, 0, ej, ei, c, h) * value_between(v, 1, ej, ei) * m_.solved(v, ej, c, h);
                }
            } else {
                m_.solved(v, i, c, h) = from_state;
                if (C > 1) {
                    m_.solved(v, ei, c, h) += value_between(v, 1, ej, ei) * (m_.products(1, 0, ej, ei, c, h) * m_.values(v, ej, c, h) +
                                                                             m_.products(1, 1, ej, ei, c, h) * m_.solved(v, ej, c, h));
                }
            }
            values = row_.write == Write::delta ? m_.solved(v, j, c, h) : select(w == 0, values, m_.solved(v, j, c, h));
        }
        m_.written = Func("written");
        m_.written(v, w, j, c, h) = values;
        m_.written_to_end = Func("written_to_end");
        m_.written_to_end(v, w, j, c, h) = m_.written(v, w, j, c, h) * head_factor(m_.after, j) * value_factor(m_.value_after, v, j);
    }

    void output() {
        const Var &v = m_.v, &i = m_.i, &c = m_.c, &h = m_.h;
        m_.output_terms = RDom(0, m_.writers, 0, m_.chunk, "output_term");
        const RVar w = m_.output_terms.x, j = m_.output_terms.y;
        m_.output_sums = Func("output_sums");
        m_.output_sums(v, i, c, h) = reader_factor(v, 0, i) * m_.state_reads(v, 0, i, c, h);
        m_.output_sums(v, i, c, h) += m_.products(0, w, j, i, c, h) * value_between(v, 0, j, i) * m_.written(v, w, j, c, h);
    }

    void state() {
        const Var &v = m_.v, &d = m_.d, &c = m_.c, &h = m_.h, &t = m_.t;
        const int C = m_.chunk;
        m_.state_terms = RDom(0, m_.writers, 0, C, "state_term");
        const RVar w = m_.state_terms.x, j = m_.state_terms.y;
        Expr decayed = m_.state_before(v, d, c, h) * head_factor(m_.through, C - 1) * value_factor(m_.value_through, v, C - 1);
        if (m_.key_decay) decayed *= m_.through(d, C - 1, c, h);
        m_.state_sums = Func("state_sums");
        m_.state_sums(v, d, c, h) = decayed;
        m_.state_sums(v, d, c, h) += m_.writes_to_end(d, w, j, c, h) * m_.written_to_end(v, w, j, c, h);

        m_.state_after = Func("state_after");
        m_.state_after(v, d, c, h) = mark_state_after(m_.state_sums(v, d, c, h), v, d, {m_.state_reads(v, 0, 0, c, h)});
        m_.final_state_copy = Func("final_state_copy");
        m_.final_state_copy(v, d, c, h) = mark_final_state(m_.state_after(v, d, c, h), v, d, h, in_.value_dim, in_.key_dim);

        m_.output = Func("output");
        const Expr chunk = t / C;
        m_.output(v, h, t) = in_order(cast(in_.output_type, m_.output_sums(v, t % C, chunk, h)),
                                      {m_.final_state_copy(v, 0, chunk, h), m_.final_state_copy(v, in_.key_dim - 1, chunk, h)});
        m_.final_state = Func("final_state");
        m_.final_state(v, d, h) = undef<float>();
    }
};

}  // namespace

Chunk make_chunk(const Row &row, const ChunkInputs &inputs) {
    return ChunkBuilder(row, inputs).build();
}

}  // namespace halation
