#include "chunk_builder.h"

#include "carry.h"
#include "feature_map.h"
#include "guard.h"
#include "math.h"

namespace halation {

using namespace Halide;

namespace {

Expr round_up(Expr x, int multiple) {
    return ((x + multiple - 1) / multiple) * multiple;
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
    const auto require = [&](bool holds, const char *what) {
        if (!holds) throw CompileError("recurrence " + row.name + ": " + what);
    };
    require(!row.bonus || row.read == Read::before_write, "a bonus needs Read::before_write");
    require(!row.bonus || row.write == Write::additive, "a bonus needs Write::additive");
    require(!row.normalized || row.read == Read::after_write, "a normalizer needs Read::after_write");
    require(row.write != Write::delta || row.beta, "Write::delta needs beta");
    require(row.write != Write::low_rank || (row.a && row.b), "Write::low_rank needs a and b");
    require(bool(row.decay_per_head) + bool(row.log_decay_per_head) + bool(row.log_decay_per_key_channel) <= 1,
            "at most one of the decays per head and per key channel");
    m_.chunk = in.chunk;
    m_.readers = row.write == Write::additive ? 1 : 2;
    m_.writers = row.write == Write::low_rank ? 2 : 1;
    m_.key_decay = bool(row.log_decay_per_key_channel);
    m_.value_decay = bool(row.log_decay_per_value_channel);
    m_.padded_key_dim = round_up(in.key_dim, in.key_unroll);
    m_.one_beta_per_head = in.one_beta_per_head;
    m_.chunks = ((in.most_tokens.defined() ? in.most_tokens : in.tokens) + in.chunk - 1) / in.chunk;
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
    return select(exclusive(r), head_factor(m_.decays.before, i) * value_factor(m_.value_decays.before, v, i),
                  head_factor(m_.decays.through, i) * value_factor(m_.value_decays.through, v, i));
}

Expr ChunkBuilder::value_between(Expr v, Expr r, Expr j, Expr i, Expr c) const {
    if (!m_.value_decay) return 1.0f;
    return select(exclusive(r), m_.value_decays.between(v, j, max(i - 1, 0), c, m_.h), m_.value_decays.between(v, j, i, c, m_.h));
}

std::vector<Expr> ChunkBuilder::final_place(std::vector<Expr> channels) const {
    if (in_.final_place.empty()) channels.push_back(m_.h);
    channels.insert(channels.end(), in_.final_place.begin(), in_.final_place.end());
    return channels;
}

Expr ChunkBuilder::wanted(Expr inside) const {
    return in_.wants_final_state.defined() ? inside && in_.wants_final_state : inside;
}

// Without tokens there is none, and the state goes from the initial to the final one as it is: in a chunk, an infinite one would
// be NaN after 0 was multiplied with it.
Expr ChunkBuilder::last_chunk() const {
    return last_chunk_of(in_.tokens, m_.chunk);
}

Expr ChunkBuilder::initial_state(Expr v, Expr d) const {
    const Expr load = in_.initial_state(within(v, in_.value_dim), within(d, in_.key_dim), m_.h);
    Expr inside = likely(v < in_.value_dim) && likely(d < in_.key_dim);
    if (in_.has_initial_state.defined()) inside = inside && in_.has_initial_state;
    return guarded(inside, load);
}

Expr ChunkBuilder::initial_normalizer(Expr d) const {
    Expr inside = likely(d < in_.key_dim);
    if (in_.has_initial_state.defined()) inside = inside && in_.has_initial_state;
    return guarded(inside, in_.initial_normalizer(within(d, in_.key_dim), m_.h));
}

Expr ChunkBuilder::at_token(const TokenExpr &expr, Expr d, Expr v, Expr i, float padding) const {
    const Expr t = m_.c * m_.chunk + i, last = in_.tokens - 1;
    const Expr real_key = d.defined() ? likely(d < in_.key_dim) : Expr(),
               real_value = v.defined() ? likely(v < in_.value_dim) : Expr();
    const Token token([&](const std::string &name) -> Expr {
        const RowInput *input = row_.find(name);
        if (!input) throw CompileError("recurrence " + row_.name + " uses '" + name + "', which is none of its inputs");
        std::vector<Expr> point;
        Expr real = Internal::const_true();
        for (const char letter : kernel_dims(input->dims)) {
            if ((letter == 'K' && !d.defined()) || (letter == 'V' && !v.defined()))
                throw CompileError("recurrence " + row_.name + ": an expression per head, or per channel of one kind, uses '" +
                                   name + "', which is per channel of another kind");
            if (letter == 'K') real = real && real_key;
            if (letter == 'V') real = real && real_value;
            switch (letter) {
            case 'K':
                point.push_back(within(d, in_.key_dim));
                break;
            case 'V':
                point.push_back(within(v, in_.value_dim));
                break;
            case 'H':
            case 'G':
                point.push_back(m_.h);
                break;
            case 'T':
                point.push_back(min(t, last));
                break;
            default:
                throw CompileError("input '" + name + "' of recurrence " + row_.name + " has dims " + input->dims +
                                   "; the letters are B, T, H, G, K, V");
            }
        }
        const Expr load = in_.tensors.at(name)(point);
        const auto type = in_.types.find(name);
        return float_of_bits(type == in_.types.end() ? Float(32) : type->second,
                             Internal::is_const_one(Internal::simplify(real)) ? load : guarded(real, load));
    });
    Expr real = t <= last;
    if (d.defined()) real = real && real_key;
    if (v.defined()) real = real && real_value;
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

// The Funcs of one kind of decay; they have the leading dimensions `lead` (none, d or v). `decay` is defined where the row
// gives the decay itself.
DecayFuncs ChunkBuilder::decay_chain(const std::string &prefix, const std::vector<Expr> &lead, Expr log_decay, Expr decay) {
    const int C = m_.chunk;
    const Var &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    const auto at = [&](const std::vector<Expr> &point) { return lead + point; };
    DecayFuncs f;
    f.log_step = Func(prefix + "log_step");
    f.log_step(at({i, c, h})) = decay.defined() ? natural_log(decay) : saturated(log_decay);
    f.step = Func(prefix + "step");
    f.step(at({i, c, h})) = decay.defined() ? decay : decay_of(f.log_step(at({i, c, h})));
    f.through = Func(prefix + "through");
    f.through(at({i, c, h})) = f.step(at({0, c, h}));
    f.after = Func(prefix + "after");
    f.after(at({i, c, h})) = 1.0f;
    f.between = Func(prefix + "between");
    f.between(at({j, i, c, h})) = 1.0f;
    if (C > 1) {
        const RDom k(1, C - 1, prefix + "token");
        f.through(at({k, c, h})) = f.through(at({k - 1, c, h})) * f.step(at({k, c, h}));
        f.after(at({C - 1 - k, c, h})) = f.after(at({C - k, c, h})) * f.step(at({C - k, c, h}));
        f.between(at({j, k, c, h})) = select(k > j, f.between(at({j, k - 1, c, h})) * f.step(at({k, c, h})), 1.0f);
    }
    f.before = Func(prefix + "before");
    f.before(at({i, c, h})) = select(i == 0, 1.0f, f.through(at({max(i - 1, 0), c, h})));
    const RDom all(0, C, prefix + "chunk_token");
    f.whole_log = Func(prefix + "whole_log");
    f.whole_log(at({c, h})) += f.log_step(at({all, c, h}));
    f.whole = Func(prefix + "whole");
    f.whole(at({c, h})) = C == 1 ? Expr(f.step(at({0, c, h}))) : decay_of(f.whole_log(at({c, h})));
    if (decay.defined() && C > 1) {
        f.whole_complement = Func(prefix + "whole_complement");
        f.whole_complement(at({c, h})) += (1.0f - f.step(at({all, c, h}))) * f.before(at({all, c, h}));
    }
    return f;
}

void ChunkBuilder::decays() {
    if (m_.key_decay) {
        m_.decays = decay_chain("", {m_.d}, at_token(row_.log_decay_per_key_channel, m_.d, Expr(), m_.i), Expr());
    } else if (row_.decay_per_head) {
        m_.decays = decay_chain("", {}, Expr(), at_token(row_.decay_per_head, Expr(), Expr(), m_.i, 1.0f));
    } else if (head_decay()) {
        m_.decays = decay_chain("", {}, at_token(row_.log_decay_per_head, Expr(), Expr(), m_.i), Expr());
    }
    if (m_.value_decay)
        m_.value_decays = decay_chain("value_", {m_.v}, at_token(row_.log_decay_per_value_channel, Expr(), m_.v, m_.i), Expr());
}

Expr ChunkBuilder::decayed_by_chunk(Expr state, Expr v, Expr d, Expr c) const {
    const DecayFuncs &f = m_.decays;
    // One after the other: the product of the two decays may be more than a float.
    if (m_.key_decay) state = strict_float(state * f.whole(d, c, m_.h));
    if (f.whole_complement.defined()) {
        // A constant decay near 1 would lose the same share to rounding in every chunk.
        state = strict_float(state - f.whole_complement(c, m_.h) * state);
    } else if (head_decay()) {
        state *= f.whole(c, m_.h);
    }
    if (m_.value_decay) state *= m_.value_decays.whole(v, c, m_.h);
    return state;
}

// Near-parallel keys with beta near 2 make a solve whose errors do not die out, and a rounding of k^T k that is the same in
// every chunk adds up: in float, 2e-5 to 7e-5 after 1000 tokens of the same key, where the plain loop has 5e-6. So either the
// solve is in double, or k^T k is the sum of two floats.
Type ChunkBuilder::solve_type() const {
    return solves() ? in_.solve_type : Float(32);
}

Expr ChunkBuilder::product(int reader, Expr w, Expr j, Expr i, Expr c) const {
    const FuncRef both = m_.products(w, j, i, c, m_.h);
    return solves() ? Expr(both[reader]) : Expr(both);
}

Expr ChunkBuilder::solve_term(Expr w, Expr j, Expr i, Expr c, Expr x) const {
    if (!solves_in_pairs()) return product(1, w, j, i, c) * x;
    const FuncRef all = m_.products(w, j, i, c, m_.h);
    return strict_float(all[1] * x + all[2] * x);
}

std::vector<Expr> ChunkBuilder::masked_product(int r, Func &sums, RDom &keys) {
    const Var &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    const Expr before_i = max(i - 1, 0);
    const Type type = r == 1 ? solve_type() : Float(32);
    const std::string name = r == 1 ? "solve" : "query";
    keys = RDom(0, round_up(in_.key_dim, in_.key_lanes), name + "_key");
    const RDom &k = keys;
    Expr writer = m_.writes(k, w, j, c, h);
    if (m_.key_decay) writer = select(exclusive(r), m_.carried(k, w, j, before_i, c, h), m_.carried(k, w, j, i, c, h));
    if (row_.bonus && r == 0) {
        m_.bonus = Func("bonus_at");
        m_.bonus(m_.d, i, c, h) = at_token(row_.bonus, m_.d, Expr(), i);
        writer = select(i == j, m_.writes(k, w, j, c, h) * m_.bonus(k, i, c, h), writer);
    }
    sums = Func(name + "_sums");
    const Expr term = cast(type, m_.reads(k, r, i, c, h)) * cast(type, writer);
    if (r == 1 && solves_in_pairs()) {
        // Multiples of 2^-12, of which float holds the sum of keys up to a length of 64 as it is, and what they leave.
        const Expr coarse = strict_float(round(term * 4096.0f) / 4096.0f);
        sums(w, j, i, c, h) = Tuple(0.0f, 0.0f);
        sums(w, j, i, c, h) = Tuple(sums(w, j, i, c, h)[0] + coarse, sums(w, j, i, c, h)[1] + strict_float(term - coarse));
    } else {
        sums(w, j, i, c, h) += term;
    }

    const bool own_write_seen = row_.read == Read::after_write || bool(row_.bonus);
    const Expr is_seen = r == 0 && own_write_seen ? j <= i : j < i;
    std::vector<Expr> values;
    for (int part = 0; part < sums.outputs(); part++) {
        const FuncRef all = sums(w, j, i, c, h);
        Expr sum = sums.outputs() > 1 ? Expr(all[part]) : Expr(all);
        if (head_decay())
            sum *= cast(type, select(exclusive(r), m_.decays.between(j, before_i, c, h), m_.decays.between(j, i, c, h)));
        values.push_back(select(is_seen, sum, Internal::make_zero(type)));
    }
    return values;
}

void ChunkBuilder::products() {
    const Var &d = m_.d, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    if (m_.key_decay) {
        m_.carried = Func("carried");
        m_.carried(d, w, j, i, c, h) = m_.writes(d, w, j, c, h);
        if (m_.chunk > 1) {
            const RDom token(1, m_.chunk - 1, "carried_token");
            const Expr now = m_.carried(d, w, j, token, c, h), earlier = m_.carried(d, w, j, token - 1, c, h);
            m_.carried(d, w, j, token, c, h) = select(token > j, earlier * m_.decays.step(d, token, c, h), now);
        }
    }
    m_.products = Func("products");
    std::vector<Expr> values = masked_product(0, m_.query_sums, m_.query_keys);
    if (solves())
        for (const Expr &value : masked_product(1, m_.solve_sums, m_.solve_keys)) values.push_back(value);
    if (values.size() > 1)
        m_.products(w, j, i, c, h) = Tuple(values);
    else
        m_.products(w, j, i, c, h) = values[0];
}

void ChunkBuilder::vectors_at_the_ends() {
    const Var &d = m_.d, &r = m_.r, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &h = m_.h;
    Expr read = m_.reads(d, r, i, c, h), write = m_.writes(d, w, j, c, h);
    if (m_.key_decay) {
        read *= select(exclusive(r), m_.decays.before(d, i, c, h), m_.decays.through(d, i, c, h));
        write *= m_.decays.after(d, j, c, h);
    }
    m_.reads_from_start = Func("reads_from_start");
    m_.reads_from_start(d, r, i, c, h) = read;
    m_.writes_to_end = Func("writes_to_end");
    m_.writes_to_end(d, w, j, c, h) = write;
}

void ChunkBuilder::values_written() {
    const Var &v = m_.v, &w = m_.w, &j = m_.j, &c = m_.c, &h = m_.h;
    Expr value = m_.values(v, j, c, h);
    if (row_.write == Write::delta) value = cast<float>(m_.solved(v, j, c, h));
    if (row_.write == Write::low_rank) value = select(w == 0, value, cast<float>(m_.solved(v, j, c, h)));
    m_.written = Func("written");
    m_.written(v, w, j, c, h) = value;
    m_.written_to_end = Func("written_to_end");
    m_.written_to_end(v, w, j, c, h) =
        m_.written(v, w, j, c, h) * head_factor(m_.decays.after, j) * value_factor(m_.value_decays.after, v, j);
}

}  // namespace halation
