// The normaliser of linear attention: z_t = D z_{t-1} + k, o = q^T S / q^T z, 0/0 = 0 (arXiv:2006.16236, equation 12).
#include "carry.h"
#include "chunk_builder.h"
#include "guard.h"
#include "math.h"

namespace halation {

using namespace Halide;

void ChunkBuilder::normalizer() {
    if (!row_.normalized) return;
    if (m_.value_decay || row_.write != Write::additive)
        throw CompileError("recurrence " + row_.name + ": only additive rows without decays per value channel can be normalized");
    const Var &d = m_.d, &i = m_.i, &c = m_.c, &h = m_.h;
    // z behaves like one more value channel, whose values are 1. What a chunk writes to it does not depend on it: z takes one sum
    // a chunk.
    Expr writes;
    for (int j = 0; j < m_.chunk; j++) {
        Expr written = m_.writes_to_end(d, 0, j, c, h);
        if (head_decay()) written *= m_.decays.after(j, c, h);
        writes = j == 0 ? written : writes + written;
    }
    m_.normalizer_writes = Func("normalizer_writes");
    m_.normalizer_writes(d, c, h) = writes;
    // Sums read z before a chunk of several tokens, the initial one among them, so that a GPU makes all in one launch; of one
    // token they read it after that.
    const bool one = m_.chunk == 1;
    const int multiple = m_.normalizer_chunks = in_.normalizer_chunks;
    m_.normalizer_turns = RDom(0, ((one ? m_.chunks : m_.chunks + 1) + multiple - 1) / multiple * multiple, "normalizer_turn");
    const Expr turn = m_.normalizer_turns.x, before = max(turn - 1, 0);
    // Of chunks that there are: turns beyond them make up the multiple, and nobody reads what they leave.
    const Expr written = one ? turn : clamp(turn - 1, 0, m_.chunks - 1);
    m_.normalizer = Func("normalizer");
    m_.normalizer(d, c, h) = undef<float>();
    const Expr initial = initial_normalizer(d);
    Expr earlier = m_.normalizer(d, before, h);
    if (in_.token_in_registers) earlier = guarded(turn > 0, earlier);  // a call of one token has nothing there to load
    const auto after = [&](const Expr &z) {
        return decayed_by_chunk(z, Expr(), d, written) + m_.normalizer_writes(d, written, h);
    };
    const Expr z = one ? after(select(turn == 0, initial, earlier)) : select(turn == 0, initial, after(earlier));
    const Expr inside = wanted(d < in_.key_dim) && turn == max(last_chunk(), 0);
    m_.normalizer(d, turn, h) = in_.token_in_registers ? mark_copy_out(z, final_place({d}), inside, true) : z;

    m_.normalizer_keys = RDom(0, in_.key_dim, "normalizer_key");
    const RDom &k = m_.normalizer_keys, term(0, m_.chunk, "normalizer_term");
    m_.normalizer_sums = Func("normalizer_sums");
    m_.denominators = Func("denominators");
    if (one) {
        m_.normalizer_sums(i, c, h) += m_.reads(k, 0, i, c, h) * m_.normalizer(k, c, h);
        m_.denominators(i, c, h) = m_.normalizer_sums(i, c, h);
        return;
    }
    m_.normalizer_sums(i, c, h) += m_.reads_from_start(k, 0, i, c, h) * m_.normalizer(k, c, h);
    m_.denominators(i, c, h) =
        m_.normalizer_sums(i, c, h) * select(exclusive(0), head_factor(m_.decays.before, i), head_factor(m_.decays.through, i));
    m_.denominators(i, c, h) += product(0, 0, term, i, c);
}

Expr ChunkBuilder::last_normalizer(Expr d) const {
    return m_.normalizer(d, m_.chunk == 1 ? m_.chunks - 1 : m_.chunks, m_.h);
}

Expr ChunkBuilder::normalized(Expr sum, Expr i, Expr c) const {
    if (!row_.normalized) return sum;
    return in_.scale * quotient(sum, m_.denominators(i, c, m_.h));
}

}  // namespace halation
