#include "cpu.h"
#include "schedules.h"

namespace halation {

using namespace Halide;

// Loops: head, block of queries. The scores of a block with the whole cache are kept, so that each key and each value is
// read once per block; they fit the second-level cache up to some ten thousand cached tokens.
void softmax_cpu(Attention &m, bool decode, const CpuMachine &machine) {
    const int lanes = machine.lanes, rows = decode ? 1 : machine.query_rows, tile = lanes * 2;
    Var to("to"), ti("ti"), vo("vo"), vi("vi"), lane("lane");
    m.output.split(m.t, to, ti, rows, TailStrategy::GuardWithIf)
        .split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .reorder(vi, ti, vo, to, m.h)
        .vectorize(vi, lanes);
    m.queries.compute_at(m.output, to).vectorize(m.d, lanes, TailStrategy::RoundUp);

    // A vector of partial sums over key channels for each query of the block.
    RVar ko("ko"), ki("ki");
    m.masked.compute_at(m.output, to).bound_extent(m.t, rows).vectorize(m.s, lanes, TailStrategy::RoundUp).reorder(m.t, m.s);
    m.scores.compute_at(m.masked, m.s).vectorize(m.s, lanes, TailStrategy::RoundUp).bound_extent(m.t, rows);
    m.scores.update().reorder(m.t, m.s).split(m.over_keys, ko, ki, lanes);
    Func partial = m.scores.update().rfactor(ki, lane);
    partial.compute_at(m.scores, m.s).vectorize(lane, lanes).unroll(m.t);
    partial.update().reorder(lane, m.t, ko, m.s).vectorize(lane, lanes).unroll(m.t);
    m.scores.update().reorder(ki, m.t, m.s).atomic().vectorize(ki, lanes);

    m.maxima.compute_at(m.output, to);
    m.weights.compute_at(m.output, to).bound_extent(m.t, rows).vectorize(m.s, lanes, TailStrategy::RoundUp);
    m.sums.compute_at(m.output, to);
    for (auto [f, over] : {std::make_pair(&m.maxima, &m.over_maxima), std::make_pair(&m.sums, &m.over_sums)}) {
        RVar so("so"), si("si");
        f->update().split(*over, so, si, lanes);
        Func part = f->update().rfactor(si, lane);
        part.compute_at(*f, m.t).vectorize(lane, lanes);
        part.update().vectorize(lane, lanes);
        f->update().atomic().vectorize(si, lanes);
    }

    m.output_sums.compute_at(m.output, vo)
        .bound_extent(m.t, rows)
        .bound_extent(m.v, tile)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(m.t);
    m.output_sums.update().reorder(m.v, m.t, m.over_cached.x).vectorize(m.v, lanes).unroll(m.v).unroll(m.t);
}

}  // namespace halation
