#include "chunk.h"

#include "carry.h"
#include "chunk_builder.h"
#include "math.h"

namespace halation {

using namespace Halide;

namespace {

// Chunk after chunk, the state carried: recurrent and chunkwise forms.
class CarriedChunk : ChunkBuilder {
public:
    CarriedChunk(const Row &row, const ChunkInputs &in) : ChunkBuilder(row, in) {}

    Chunk build() {
        m_.one_pass = in_.one_pass && m_.chunk == 1 && row_.write == Write::additive;
        token_vectors();
        decays();
        products();
        vectors_at_the_ends();
        normalizer();
        m_.state_before = Func("state_before");
        m_.state_before(m_.v, m_.d, m_.c, m_.h) = mark_state_before(initial_state(m_.v, m_.d), m_.v, m_.d);
        m_.state_reads = Func("state_reads");
        if (m_.one_pass) {
            values_written();
            new_state();
            state_reads();
        } else {
            state_reads();
            solve();
            values_written();
            if (in_.token_in_registers) outputs();
            new_state();
        }
        if (!in_.token_in_registers) outputs();
        results();
        return m_;
    }

private:
    void state_reads() {
        const Var &v = m_.v, &r = m_.r, &i = m_.i, &c = m_.c, &h = m_.h;
        m_.over_keys = RDom(0, m_.padded_key_dim, "key");
        const Expr key = m_.over_keys;
        Expr state = m_.state_before(v, key, c, h);
        if (m_.one_pass) state = in_order(m_.state_taken(v, key, c, h), {m_.final_state_copy(v, key, c, h)});
        m_.state_reads(v, r, i, c, h) += m_.reads_from_start(key, r, i, c, h) * state;
    }

    void solve() {
        const Var &v = m_.v, &i = m_.i, &c = m_.c, &h = m_.h;
        if (row_.write != Write::additive) {
            m_.earlier = RDom(0, m_.chunk, 0, m_.chunk, "earlier");
            m_.earlier.where(m_.earlier.x < m_.earlier.y);
            const RVar ej = m_.earlier.x, ei = m_.earlier.y;
            const Expr from_state = reader_factor(v, 1, i) * m_.state_reads(v, 1, i, c, h);
            const Type type = solve_type();
            const auto exact = [&](Expr x) { return cast(type, x); };
            m_.solved = Func("solved");
            if (row_.write == Write::delta) {
                m_.solved(v, i, c, h) = exact(m_.beta(v, i, c, h)) * (exact(m_.values(v, i, c, h)) - exact(from_state));
                if (m_.chunk > 1 && solves_in_pairs()) {
                    // beta last: its product with that of two keys would be rounded alike in every chunk.
                    m_.solved(v, ei, c, h) -=
                        m_.beta(v, ei, c, h) *
                        strict_float(value_between(v, 1, ej, ei, c) * solve_term(0, ej, ei, c, m_.solved(v, ej, c, h)));
                } else if (m_.chunk > 1) {
                    m_.solved(v, ei, c, h) -= exact(m_.beta(v, ei, c, h)) * product(1, 0, ej, ei, c) *
                                              exact(value_between(v, 1, ej, ei, c)) * m_.solved(v, ej, c, h);
                }
            } else {
                m_.solved(v, i, c, h) = exact(from_state);
                if (m_.chunk > 1) {
                    m_.solved(v, ei, c, h) +=
                        exact(value_between(v, 1, ej, ei, c)) * (solve_term(0, ej, ei, c, exact(m_.values(v, ej, c, h))) +
                                                                 solve_term(1, ej, ei, c, m_.solved(v, ej, c, h)));
                }
            }
        }
    }

    void outputs() {
        const Var &v = m_.v, &i = m_.i, &c = m_.c, &h = m_.h;
        m_.output_terms = RDom(0, m_.writers, 0, m_.chunk, "output_term");
        const RVar w = m_.output_terms.x, j = m_.output_terms.y;
        m_.output_terms.where(j <= i);  // what a later token holds, NaN even, is nothing to this one
        m_.output_sums = Func("output_sums");
        m_.output_sums(v, i, c, h) = reader_factor(v, 0, i) * m_.state_reads(v, 0, i, c, h);
        m_.output_sums(v, i, c, h) += product(0, w, j, i, c) * value_between(v, 0, j, i, c) * m_.written(v, w, j, c, h);
        m_.output_values = Func("output_values");
        m_.output_values(v, i, c, h) = normalized(m_.output_sums(v, i, c, h), i, c);
    }

    void new_state() {
        const Var &v = m_.v, &d = m_.d, &c = m_.c, &h = m_.h;
        m_.state_terms = RDom(0, m_.writers, 0, m_.chunk, "state_term");
        const RVar w = m_.state_terms.x, j = m_.state_terms.y;
        m_.state_sums = Func("state_sums");
        Expr before = m_.state_before(v, d, c, h);
        if (m_.one_pass) {
            // Held back, since the new state may go where the old one is.
            m_.state_taken = Func("state_taken");
            m_.state_taken(v, d, c, h) = before;
            before = m_.state_taken(v, d, c, h);
        }
        m_.state_sums(v, d, c, h) = decayed_by_chunk(before, v, d, c);
        m_.state_sums(v, d, c, h) += m_.writes_to_end(d, w, j, c, h) * m_.written_to_end(v, w, j, c, h);

        std::vector<Expr> reads;
        if (!m_.one_pass) reads.push_back(m_.state_reads(v, 0, 0, c, h));
        if (in_.token_in_registers) reads.push_back(m_.output_values(v, 0, c, h));
        m_.state_after = Func("state_after");
        m_.state_after(v, d, c, h) = mark_state_after(m_.state_sums(v, d, c, h), v, d, reads);
        m_.final_state_copy = Func("final_state_copy");
        Expr inside = wanted(v < in_.value_dim && d < in_.key_dim);
        if (in_.wants_final_state.defined()) inside = inside && mark_last_chunk(c, last_chunk());
        m_.final_state_copy(v, d, c, h) = mark_copy_out(m_.state_after(v, d, c, h), final_place({v, d}), inside);
    }

    void results() {
        const Var &v = m_.v, &d = m_.d, &h = m_.h, &t = m_.t;
        const Expr token = t % m_.chunk, chunk = t / m_.chunk,
                   last_key = (in_.copies_padding ? m_.padded_key_dim : in_.key_dim) - 1;
        std::vector<Expr> copies;
        if (!m_.one_pass) copies = {m_.final_state_copy(v, 0, chunk, h), m_.final_state_copy(v, last_key, chunk, h)};
        if (row_.normalized && !in_.token_in_registers) {
            m_.final_normalizer = Func("final_normalizer");
            m_.final_normalizer(d, h) = undef<float>();
            m_.final_normalizer_copy = Func("final_normalizer_copy");
            m_.final_normalizer_copy(d, h) = mark_copy_out(last_normalizer(d), final_place({d}), wanted(d < in_.key_dim));
            copies.push_back(m_.final_normalizer_copy(0, h));
            copies.push_back(m_.final_normalizer_copy(last_key, h));
        }
        const Expr o = narrowed(in_.output_type, m_.output_values(v, token, chunk, h));
        m_.output = Func("output");
        m_.output(v, h, t) = copies.empty() ? o : in_order(o, copies);
        m_.final_state = Func("final_state");
        m_.final_state(v, d, h) = undef<float>();
    }
};

}  // namespace

Chunk make_chunk(const Row &row, const ChunkInputs &inputs) {
    return CarriedChunk(row, inputs).build();
}

}  // namespace halation
