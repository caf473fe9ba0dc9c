#include "cpu.h"
#include "schedules.h"

namespace halation {

using namespace Halide;

namespace {

// A few queries: each key is one dot product along its channels, with a vector of partial sums. A few cached tokens of all heads
// after the other, as they lie in memory: head by head, every row of the cache would be on a page of its own. (4096 tokens of 16
// heads, Zen 4: 25 ms head by head.)
void few_queries(Attention &m, const CpuMachine &machine) {
    const int lanes = machine.lanes;
    Var so("so"), si("si");
    m.queries.compute_root().vectorize(m.d, lanes, TailStrategy::RoundUp);
    m.masked.compute_root().split(m.s, so, si, lanes, TailStrategy::RoundUp).reorder(si, m.t, m.h, so).vectorize(si);
    m.scores.compute_at(m.masked, m.t).vectorize(m.s, lanes, TailStrategy::RoundUp);
    sum_in_lanes(m.scores, m.over_keys.x, m.s, lanes);
    m.weights.compute_root().vectorize(m.s, lanes, TailStrategy::RoundUp);
    m.maxima.compute_root();
    sum_in_lanes(m.maxima, m.over_maxima.x, m.t, lanes);
    m.sums.compute_root();
    sum_in_lanes(m.sums, m.over_sums.x, m.t, lanes);
    RVar ro("ro"), ri("ri");
    m.output_sums.compute_root().vectorize(m.v, lanes, TailStrategy::RoundUp);
    m.output_sums.update()
        .split(m.over_cached.x, ro, ri, 8, TailStrategy::GuardWithIf)
        .reorder(ri, m.v, m.t, m.h, ro)
        .vectorize(m.v, lanes, TailStrategy::RoundUp)
        .unroll(ri);
}

// Many queries: they lie across the lanes, so that no sum runs across a vector.
void many_queries(Attention &m, const Var &to, const Var &vo, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.value_vectors;
    Var so("so"), si("si"), tq("tq"), tr("tr");
    m.queries.compute_at(m.output, to).reorder_storage(m.t, m.d, m.h).reorder(m.t, m.d);
    m.masked.compute_at(m.output, to)
        .reorder_storage(m.t, m.s, m.h)
        .bound_extent(m.t, lanes)
        .split(m.s, so, si, machine.key_rows, TailStrategy::RoundUp)
        .reorder(m.t, si, so)
        .vectorize(m.t, lanes)
        .unroll(si);
    m.scores.compute_at(m.masked, so).reorder_storage(m.t, m.s, m.h).reorder(m.t, m.s).vectorize(m.t, lanes).unroll(m.s);
    m.scores.update().reorder(m.t, m.s, m.over_keys.x).vectorize(m.t, lanes).unroll(m.s);
    m.weights.compute_at(m.output, to)
        .reorder_storage(m.t, m.s, m.h)
        .bound_extent(m.t, lanes)
        .reorder(m.t, m.s)
        .vectorize(m.t, lanes);
    for (auto [f, over] : {std::make_pair(&m.maxima, &m.over_maxima), std::make_pair(&m.sums, &m.over_sums)}) {
        f->compute_at(m.output, to).bound_extent(m.t, lanes).vectorize(m.t, lanes);
        f->update().reorder(m.t, over->x).vectorize(m.t, lanes);
    }
    const int rows = std::min(lanes, machine.parallel_rows);
    m.output_sums.compute_at(m.output, vo).bound_extent(m.t, lanes).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    m.output_sums.update()
        .split(m.t, tq, tr, rows)
        .reorder(m.v, tr, m.over_cached.x, tq)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(tr);
}

}  // namespace

// Loops: head, block of queries. The scores of a block with the whole cache are kept, so that each key and each value is
// read once per block; they fit the second-level cache up to some thousand cached tokens.
void softmax_cpu(Attention &m, bool decode, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.value_vectors;
    Var to("to"), ti("ti"), vo("vo"), vi("vi");
    m.output.split(m.t, to, ti, decode ? 1 : lanes, TailStrategy::GuardWithIf)
        .split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .reorder(vi, ti, vo, to, m.h)
        .vectorize(vi, lanes);
    if (decode) {
        few_queries(m, machine);
    } else {
        many_queries(m, to, vo, machine);
    }
}

}  // namespace halation
