#include "cpu.h"
#include "schedules.h"

namespace halation {

using namespace Halide;

// Loops: tile of channels, token. The tile's state stays in the first-level cache, or in registers where it is small.
void scan_cpu(Scan &m, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.scan_value_vectors;
    Var vo("vo"), vi("vi");
    m.output.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .reorder(vi, m.t, vo)
        .partition(m.t, Partition::Never)  // a loop cut in parts would start the state anew in each
        .vectorize(vi, lanes)
        .unroll(vi);
    if (m.rates.defined()) m.rates.compute_at(m.output, vo).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    for (Func f : {m.state_before, m.state_after}) {
        f.store_at(m.output, vo)
            .compute_at(m.output, m.t)
            .fold_storage(m.c, 1)
            .bound_extent(m.v, tile)
            .vectorize(m.v, lanes)
            .unroll(m.v);
        f.bound(m.n, 0, m.elements);
    }
    m.final_state_copy.compute_at(m.output, m.t).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    m.reads.compute_at(m.output, m.t).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    if (m.reads.has_update_definition()) m.reads.update().reorder(m.v, m.over_elements.x).vectorize(m.v, lanes).unroll(m.v);
}

}  // namespace halation
