// The normaliser of linear attention: z_t = D z_{t-1} + k, o = q^T S / q^T z, 0/0 = 0 (arXiv:2006.16236, equation 12).
#include "chunk_builder.h"
#include "math.h"

namespace halation {

using namespace Halide;

void ChunkBuilder::normalizer() {
    if (!row_.normalized) return;
    if (m_.value_decay || row_.write != Write::additive)
        throw CompileError("recurrence " + row_.name + ": only additive rows without decays per value channel can be normalized");
    const Var &d = m_.d, &i = m_.i, &c = m_.c, &h = m_.h;
    const RDom token(0, m_.chunk, 0, m_.chunks, "normalizer_token");
    const RVar j = token.x, cc = token.y;
    // z behaves like one more value channel, whose values are 1.
    m_.normalizer = Func("normalizer");
    m_.normalizer(d, c, h) = select(c == 0, initial_normalizer(d), 0.0f);
    const Expr decayed = decayed_by_chunk(m_.normalizer(d, cc, h), Expr(), d, cc);
    Expr written = m_.writes_to_end(d, 0, j, cc, h);
    if (head_decay()) written *= m_.decays.after(j, cc, h);
    m_.normalizer(d, cc + 1, h) += select(j == 0, decayed, 0.0f) + written;

    m_.normalizer_keys = RDom(0, in_.key_dim, "normalizer_key");
    const RDom &k = m_.normalizer_keys, term(0, m_.chunk, "normalizer_term");
    m_.normalizer_sums = Func("normalizer_sums");
    m_.normalizer_sums(i, c, h) += m_.reads_from_start(k, 0, i, c, h) * m_.normalizer(k, c, h);
    m_.denominators = Func("denominators");
    m_.denominators(i, c, h) =
        m_.normalizer_sums(i, c, h) * select(exclusive(0), head_factor(m_.decays.before, i), head_factor(m_.decays.through, i));
    m_.denominators(i, c, h) += product(0, 0, term, i, c);
}

Expr ChunkBuilder::normalized(Expr sum, Expr i, Expr c) const {
    if (!row_.normalized) return sum;
    return in_.scale * quotient(sum, m_.denominators(i, c, m_.h));
}

}  // namespace halation
