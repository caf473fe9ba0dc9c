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
    m.output_sums.compute_root().vectorize(m.v, lanes, TailStrategy::RoundUp);
    for (int update : {0, 1}) {
        const RVar over = update == 0 ? m.over_seen_by_all.x : m.over_seen_by_some.x;
        RVar ro("ro"), ri("ri");
        m.output_sums.update(update)
            .split(over, ro, ri, 8, TailStrategy::GuardWithIf)
            .reorder(ri, m.v, m.t, m.h, ro)
            .vectorize(m.v, lanes, TailStrategy::RoundUp)
            .unroll(ri);
    }
}

// Many queries: they lie across the lanes, so that no sum runs across a vector. A few keys meet all queries of the call before
// the next are read; a tile of the values meets a few queries at a time, whose sums are in registers.
void many_queries(Attention &m, const Var &vo, const Var &tq, int rows, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.value_vectors;
    Var so("so"), si("si"), to("to"), ti("ti");
    const auto per_head = [&](Func &f) -> Func & { return f.compute_at(m.output, m.h); };
    per_head(m.queries).reorder_storage(m.t, m.d, m.h).vectorize(m.d, lanes, TailStrategy::RoundUp);
    per_head(m.masked)
        .reorder_storage(m.t, m.s, m.h)
        .split(m.s, so, si, machine.key_rows, TailStrategy::RoundUp)
        .split(m.t, to, ti, lanes, TailStrategy::RoundUp)
        .reorder(ti, si, to, so)
        .vectorize(ti)
        .unroll(si);
    m.scores.compute_at(m.masked, to).reorder_storage(m.t, m.s, m.h).reorder(m.t, m.s).vectorize(m.t, lanes).unroll(m.s);
    m.scores.update().reorder(m.t, m.s, m.over_keys.x).vectorize(m.t, lanes).unroll(m.s);
    per_head(m.weights).reorder_storage(m.t, m.s, m.h).reorder(m.t, m.s).vectorize(m.t, lanes, TailStrategy::RoundUp);
    for (auto [f, over] : {std::make_pair(&m.maxima, &m.over_maxima), std::make_pair(&m.sums, &m.over_sums)}) {
        per_head(*f).vectorize(m.t, lanes, TailStrategy::RoundUp);
        f->update().reorder(m.t, over->x).vectorize(m.t, lanes, TailStrategy::RoundUp);
    }
    // As they lie in memory, the rows of a head share a few sets of the first-level cache.
    m.keys.compute_at(m.masked, so).vectorize(m.d, lanes, TailStrategy::RoundUp);
    m.values.compute_at(m.output, vo).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    m.output_sums.compute_at(m.output, tq).bound_extent(m.t, rows).bound_extent(m.v, tile);
    m.output_sums.vectorize(m.v, lanes).unroll(m.v).unroll(m.t);
    for (int update : {0, 1}) {
        const RVar over = update == 0 ? m.over_seen_by_all.x : m.over_seen_by_some.x;
        m.output_sums.update(update).reorder(m.v, m.t, over).vectorize(m.v, lanes).unroll(m.v).unroll(m.t);
    }
}

}  // namespace

// Loops: head, tile of value channels, a few queries. The scores of a call, of at most 64 queries, with the whole cache are kept,
// so that each key is read once.
void softmax_cpu(Attention &m, bool decode, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.value_vectors;
    const int rows = decode ? 1 : std::min(lanes, machine.parallel_rows);
    Var tq("tq"), tr("tr"), vo("vo"), vi("vi");
    m.output.split(m.t, tq, tr, rows, TailStrategy::GuardWithIf)
        .split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .reorder(vi, tr, tq, vo, m.h)
        .vectorize(vi, lanes);
    if (decode) {
        few_queries(m, machine);
    } else {
        many_queries(m, vo, tq, rows, machine);
    }
}

}  // namespace halation
