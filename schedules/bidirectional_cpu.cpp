#include "cpu.h"
#include "schedules.h"

namespace halation {

using namespace Halide;

// Loops: head, tile of value channels: the tile's state, then all outputs of the tile.
void bidirectional_cpu(Bidirectional &m, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.value_vectors, rows = machine.parallel_rows;
    Var vo("vo"), vi("vi"), to("to"), ti("ti");
    RVar no("no"), ni("ni");
    m.output.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .split(m.t, to, ti, rows, TailStrategy::GuardWithIf)
        .reorder(vi, ti, to, vo, m.h)
        .vectorize(vi, lanes);
    for (Func f : {m.queries, m.keys}) f.compute_at(m.output, m.h).vectorize(m.d, lanes, TailStrategy::RoundUp);
    for (Func &f : m.features) f.compute_at(m.output, m.h);
    if (m.normalizer.defined()) {
        m.normalizer.compute_at(m.output, m.h).vectorize(m.d, lanes, TailStrategy::RoundUp);
        m.normalizer.update().reorder(m.d, m.state_tokens.x).vectorize(m.d, lanes, TailStrategy::RoundUp);
        m.denominators.compute_at(m.output, m.h);
    }
    m.state.compute_at(m.output, vo).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    m.state.update()
        .split(m.state_tokens.x, no, ni, 4, TailStrategy::GuardWithIf)
        .reorder(m.v, ni, m.d, no)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(ni);
    m.output_sums.compute_at(m.output, to)
        .bound_extent(m.t, rows)
        .bound_extent(m.v, tile)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(m.t);
    m.output_sums.update().reorder(m.v, m.t, m.over_keys.x).vectorize(m.v, lanes).unroll(m.v).unroll(m.t);
}

}  // namespace halation
