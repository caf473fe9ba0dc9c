#include "chunk_builder.h"
#include "math.h"

namespace halation {

using namespace Halide;

namespace {

// The parallel form: one chunk over all tokens, worked in blocks of C. Inside a block everything is as in chunk.cpp;
// what earlier blocks wrote reaches a token through masked products
//
//     product(x, y)_ij = sum_d (x_id P_i) M(e,c)_d (y_jd R_j)       token i of block c, token j of block e < c
//
// with P from the start of i's block, R to the end of j's and M the decays of the blocks in between.
class ParallelChunk : ChunkBuilder {
public:
    ParallelChunk(const Row &row, const ChunkInputs &in) : ChunkBuilder(row, in) {}

    Chunk build() {
        token_vectors();
        decays();
        products();
        vectors_at_the_ends();
        normalizer();
        decays_of_chunks();
        products_across();
        state_reads();
        solve();
        values_written();
        outputs();
        state();
        return m_;
    }

private:
    using Point = std::vector<Expr>;

    // Adds the leading channel of a Func that has one.
    static Point at(const Var *channel, Point point) {
        if (channel) point.insert(point.begin(), *channel);
        return point;
    }
    // Products of whole chunks' decays before chunk c and after it.
    void chunks_around(DecayFuncs &f, const std::string &prefix, const Var *channel) {
        const Var &c = m_.c, &h = m_.h;
        const Expr last = m_.chunks - 1;
        const RDom k(1, max(last, 0), prefix + "chunk");
        f.before_log = Func(prefix + "before_log");
        f.before_log(at(channel, {c, h})) = 0.0f;
        f.before_log(at(channel, {k, h})) = f.before_log(at(channel, {k - 1, h})) + f.whole_log(at(channel, {k - 1, h}));
        f.after_log = Func(prefix + "after_log");
        f.after_log(at(channel, {c, h})) = 0.0f;
        f.after_log(at(channel, {last - k, h})) =
            f.after_log(at(channel, {last - k + 1, h})) + f.whole_log(at(channel, {last - k + 1, h}));
        f.chunks_before = Func(prefix + "chunks_before");
        f.chunks_before(at(channel, {c, h})) = decay_of(f.before_log(at(channel, {c, h})));
        f.chunks_after = Func(prefix + "chunks_after");
        f.chunks_after(at(channel, {c, h})) = decay_of(f.after_log(at(channel, {c, h})));
    }

    // Decays of the chunks between e and c, from e = c - 1 with nothing in between back to the first: sums of logarithms of
    // just those chunks.
    void chunks_between(Func &logs, Func &decays, const std::string &name, const Var *channel, const DecayFuncs &f) {
        const Var &c = m_.c, &e = m_.e, &h = m_.h;
        const Expr last = m_.chunks - 1;
        const RDom back(0, max(last, 0), name + "_chunk");
        const Expr to = last - 1 - back;
        logs = Func(name + "_log");
        logs(at(channel, {e, c, h})) = 0.0f;
        const Expr longer = logs(at(channel, {to + 1, c, h})) + f.whole_log(at(channel, {min(to + 1, last), h}));
        logs(at(channel, {to, c, h})) = select(to + 1 < c, longer, 0.0f);
        decays = Func(name);
        decays(at(channel, {e, c, h})) = decay_of(logs(at(channel, {e, c, h})));
    }

    void decays_of_chunks() {
        if (m_.key_decay || head_decay()) chunks_around(m_.decays, "", m_.key_decay ? &m_.d : nullptr);
        if (m_.value_decay) chunks_around(m_.value_decays, "value_", &m_.v);
    }

    ProductsAcross products_of(const std::string &name, int r) {
        const Var &d = m_.d, &w = m_.w, &i = m_.i, &j = m_.j, &c = m_.c, &e = m_.e, &h = m_.h;
        ProductsAcross p;
        if (m_.key_decay || head_decay())
            chunks_between(p.between_log, p.chunks_between, name + "_chunks_between", m_.key_decay ? &m_.d : nullptr, m_.decays);
        if (m_.value_decay)
            chunks_between(p.value_between_log, p.value_chunks_between, name + "_value_chunks_between", &m_.v, m_.value_decays);
        Expr write = m_.writes_to_end(d, w, j, e, h);
        if (m_.key_decay) write *= p.chunks_between(d, e, c, h);
        p.weighted_writes = Func(name + "_weighted_writes");
        p.weighted_writes(j, d, w, e, c, h) = write;

        p.keys = RDom(0, m_.padded_key_dim, name + "_key");
        p.sums = Func(name + "_sums");
        const Type type = r == 1 ? solve_type() : Float(32);
        const Expr read = cast(type, m_.reads_from_start(p.keys, r, i, c, h));
        p.sums(j, i, w, e, c, h) += read * cast(type, p.weighted_writes(j, p.keys, w, e, c, h));
        Expr across = p.sums(j, i, w, e, c, h);
        if (head_decay()) {
            const Expr from_start = select(exclusive(r), m_.decays.before(i, c, h), m_.decays.through(i, c, h));
            across *= cast(type, from_start * p.chunks_between(e, c, h) * m_.decays.after(j, e, h));
        }
        p.products = Func(name + "_products");
        p.products(j, i, w, e, c, h) = select(e < c, across, product(r, w, j, i, c));
        return p;
    }

    void products_across() {
        m_.query = products_of("query", 0);
        if (m_.readers == 2) m_.second = products_of("second", 1);
    }

    // Decays per value channel between token j of chunk e and token i of chunk c.
    Expr value_decay_across(const ProductsAcross &p, int r, Expr j, Expr e, Expr i, Expr c) const {
        if (!m_.value_decay) return 1.0f;
        const Var &v = m_.v, &h = m_.h;
        const Expr from_start = select(exclusive(r), m_.value_decays.before(v, i, c, h), m_.value_decays.through(v, i, c, h));
        return select(e < c, from_start * p.value_chunks_between(v, e, c, h) * m_.value_decays.after(v, j, e, h),
                      value_between(v, r, j, i, c));
    }

    void state_reads() {
        const Var &d = m_.d, &v = m_.v, &r = m_.r, &i = m_.i, &c = m_.c, &h = m_.h;
        m_.state_before = Func("initial_state_padded");
        m_.state_before(v, d, h) = initial_state(v, d);
        m_.over_keys = RDom(0, m_.padded_key_dim, "key");
        const Expr k = m_.over_keys;
        Expr read = m_.reads_from_start(k, r, i, c, h);
        if (m_.key_decay) read *= m_.decays.chunks_before(k, c, h);
        m_.state_reads = Func("state_reads");
        m_.state_reads(v, r, i, c, h) += read * m_.state_before(v, k, h);
    }

    Expr from_initial_state(Expr r) const {
        const Var &v = m_.v, &i = m_.i, &c = m_.c, &h = m_.h;
        Expr sum = strict_float(reader_factor(v, r, i) * m_.state_reads(v, r, i, c, h));
        if (head_decay()) sum = strict_float(sum * m_.decays.chunks_before(c, h));
        if (m_.value_decay) sum = strict_float(sum * m_.value_decays.chunks_before(v, c, h));
        return sum;
    }

    void solve() {
        const Var &v = m_.v, &i = m_.i, &c = m_.c, &h = m_.h;
        const int C = m_.chunk;
        if (row_.write != Write::additive) {
            m_.earlier = RDom({{0, C}, {0, m_.chunks}, {0, C}, {0, m_.chunks}}, "earlier");
            const RVar ej = m_.earlier[0], ee = m_.earlier[1], ei = m_.earlier[2], ec = m_.earlier[3];
            m_.earlier.where(ee <= ec);
            m_.earlier.where(ee < ec || ej < ei);
            const Type type = solve_type();
            const auto exact = [&](Expr x) { return cast(type, x); };
            const Expr decay = exact(value_decay_across(m_.second, 1, ej, ee, ei, ec));
            m_.solved = Func("solved");
            if (row_.write == Write::delta) {
                m_.solved(v, i, c, h) =
                    exact(m_.beta(v, i, c, h)) * (exact(m_.values(v, i, c, h)) - exact(from_initial_state(1)));
                m_.solved(v, ei, ec, h) -=
                    exact(m_.beta(v, ei, ec, h)) * m_.second.products(ej, ei, 0, ee, ec, h) * decay * m_.solved(v, ej, ee, h);
            } else {
                m_.solved(v, i, c, h) = exact(from_initial_state(1));
                m_.solved(v, ei, ec, h) += decay * (m_.second.products(ej, ei, 0, ee, ec, h) * exact(m_.values(v, ej, ee, h)) +
                                                    m_.second.products(ej, ei, 1, ee, ec, h) * m_.solved(v, ej, ee, h));
            }
        }
    }

    void outputs() {
        const Var &v = m_.v, &i = m_.i, &c = m_.c, &h = m_.h, &t = m_.t;
        const int C = m_.chunk;
        m_.output_terms = RDom({{0, C}, {0, m_.writers}, {0, m_.chunks}}, "output_term");
        const RVar j = m_.output_terms[0], w = m_.output_terms[1], e = m_.output_terms[2];
        m_.output_terms.where(e <= c);
        m_.output_sums = Func("output_sums");
        m_.output_sums(v, i, c, h) = from_initial_state(0);
        // What a later token of the same block holds, NaN even, is nothing to this one.
        const Expr written = select(e < c || j <= i, m_.written(v, w, j, e, h), 0.0f);
        m_.output_sums(v, i, c, h) += m_.query.products(j, i, w, e, c, h) * value_decay_across(m_.query, 0, j, e, i, c) * written;
        m_.output = Func("output");
        m_.output(v, h, t) = narrowed(in_.output_type, normalized(m_.output_sums(v, t % C, t / C, h), t % C, t / C));
    }

    void state() {
        const Var &v = m_.v, &d = m_.d, &h = m_.h;
        const Expr last = m_.chunks - 1;
        m_.state_terms = RDom({{0, m_.chunk}, {0, m_.writers}, {0, m_.chunks}}, "state_term");
        const RVar j = m_.state_terms[0], w = m_.state_terms[1], e = m_.state_terms[2];
        Expr decayed = m_.state_before(v, d, h);
        Expr write = m_.writes_to_end(d, w, j, e, h) * m_.written_to_end(v, w, j, e, h);
        // One after the other: the product of two decays may be more than a float.
        const auto decay = [&](Expr by) { decayed = strict_float(decayed * by); };
        if (m_.key_decay) {
            decay(m_.decays.chunks_before(d, last, h));
            decay(m_.decays.whole(d, last, h));
            write *= m_.decays.chunks_after(d, e, h);
        } else if (head_decay()) {
            decay(m_.decays.chunks_before(last, h));
            decay(m_.decays.whole(last, h));
            write *= m_.decays.chunks_after(e, h);
        }
        if (m_.value_decay) {
            decay(m_.value_decays.chunks_before(v, last, h));
            decay(m_.value_decays.whole(v, last, h));
            write *= m_.value_decays.chunks_after(v, e, h);
        }
        m_.state_sums = Func("state_sums");
        m_.state_sums(v, d, h) = decayed;
        m_.state_sums(v, d, h) += write;
        m_.final_state = Func("final_state");
        m_.final_state(v, d, h) = m_.state_sums(v, d, h);
        if (row_.normalized) {
            m_.final_normalizer = Func("final_normalizer");
            m_.final_normalizer(d, h) = last_normalizer(d);
        }
    }
};

}  // namespace

Chunk make_parallel(const Row &row, const ChunkInputs &inputs) {
    return ParallelChunk(row, inputs).build();
}

}  // namespace halation
