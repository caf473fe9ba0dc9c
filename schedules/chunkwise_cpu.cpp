#include "cpu.h"
#include "schedules.h"

namespace halation {

using namespace Halide;

// Loops: head, tile of value channels, chunk. Everything that does not depend on the value channel is prepared for all
// chunks of the call beforehand; the tile of the state then stays in the first-level cache while it meets all of them.
void chunkwise_cpu(Chunk &m, const CpuMachine &machine) {
    const Var c = m.chunk_loop, vo = m.tile_loop;
    const int lanes = machine.lanes, tile = lanes * machine.value_vectors, C = m.chunk;
    Var vi("vi"), i("io"), dk("dk"), du("du");

    m.output.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .split(m.t, c, i, C, TailStrategy::GuardWithIf)
        .reorder(vi, i, c, vo, m.h)
        .partition(c, Partition::Never)  // a loop cut in parts would start the state anew in each
        .vectorize(vi, lanes)
        .unroll(vi);

    // ---- prepared once per head
    const Place prepared = [&](Func &f) { f.compute_at(m.output, m.h); };
    if (m.key_decay) {
        // These read the inputs again instead of a copy: a row is in the first-level cache.
        m.reads.clone_in(m.reads_from_start);
        m.writes.clone_in(m.writes_to_end);
    }
    token_vectors_cpu(m, machine, prepared);
    m.reads.bound(m.r, 0, m.readers).unroll(m.r);
    decays_cpu(m.decays, m.key_decay ? &m.d : nullptr, !m.key_decay, false, machine, prepared);
    if (m.key_decay) {
        for (Func *f : {&m.reads, &m.writes, &m.carried}) f->compute_at(m.products, m.c);
        vectorize_stages(m.carried, m.d, lanes);
        m.decays.through.compute_at(m.reads_from_start, m.c);
        m.decays.after.compute_at(m.writes_to_end, m.c);
        m.decays.whole_log.compute_at(m.decays.whole, m.c);
    }
    normalizer_cpu(m, machine, prepared);

    // ---- per tile and chunk
    for (Func f : {m.state_before, m.state_after}) {
        f.store_at(m.output, vo).compute_at(m.output, c).fold_storage(m.c, 1).bound(m.d, 0, m.padded_key_dim);
    }
    m.state_before.vectorize(m.v, lanes).unroll(m.v);
    // Read where they lie, each once, since rows are asked for ahead (rows_ahead.h): a copy first was 5 % of gated (Zen 4).
    m.values.compute_at(m.output, c).bound(m.i, 0, C).vectorize(m.v, lanes).unroll(m.v).unroll(m.i);
    m.final_state_copy.compute_at(m.output, c).bound_extent(m.c, 1).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);

    {
        RVar ko("ko"), ku("ku");
        m.state_reads.compute_at(m.output, c).bound(m.r, 0, m.readers).bound(m.i, 0, C);
        m.state_reads.vectorize(m.v, lanes).unroll(m.v).unroll(m.r).unroll(m.i);
        Stage sums = m.state_reads.update();
        sums.split(m.over_keys, ko, ku, machine.key_unroll, TailStrategy::GuardWithIf);
        if (machine.readers_together) {
            sums.reorder(m.v, m.r, m.i, ku, ko).unroll(m.r);
        } else {
            sums.reorder(m.v, m.i, ku, ko, m.r);
        }
        sums.vectorize(m.v, lanes).unroll(m.v).unroll(m.i).unroll(ku);
    }
    if (m.beta.defined()) {
        beta_cpu(m, machine);
        m.beta.compute_at(m.output, c);
    }
    if (m.solved.defined()) {
        m.solved.compute_at(m.output, c).bound(m.i, 0, C).vectorize(m.v, lanes).unroll(m.v).unroll(m.i);
        if (C > 1) {
            m.solved.update()
                .reorder(m.v, m.earlier.x, m.earlier.y)
                .vectorize(m.v, lanes)
                .unroll(m.v)
                .unroll(m.earlier.x)
                .unroll(m.earlier.y);
        }
    }
    m.written_to_end.compute_at(m.output, c).bound(m.j, 0, C).vectorize(m.v, lanes).unroll(m.v).unroll(m.j).unroll(m.w);
    m.output_sums.compute_at(m.output, c)
        .bound_extent(m.c, 1)
        .bound_extent(m.v, tile)
        .bound(m.i, 0, C)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(m.i);
    m.output_sums.update()
        .reorder(m.v, m.output_terms.x, m.output_terms.y, m.i)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(m.output_terms.x)
        .unroll(m.output_terms.y)
        .unroll(m.i);

    m.state_after.split(m.d, dk, du, machine.key_unroll).reorder(m.v, du, dk).vectorize(m.v, lanes).unroll(m.v).unroll(du);
    m.state_sums.compute_at(m.state_after, du).vectorize(m.v, lanes).unroll(m.v);
    m.state_sums.update()
        .reorder(m.v, m.state_terms.x, m.state_terms.y)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(m.state_terms.x)
        .unroll(m.state_terms.y);
    if (m.value_decay) {
        decays_cpu(m.value_decays, &m.v, true, false, machine, [&](Func &f) { f.compute_at(m.output, c); });
    }
}

}  // namespace halation
