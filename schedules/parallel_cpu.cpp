#include "cpu.h"
#include "schedules.h"

namespace halation {

using namespace Halide;

namespace {

// Products of a block of readers with a block of writers: writers across the lanes, readers kept in registers.
void schedule_products(Chunk &m, ProductsAcross &p, const LoopLevel &block, const CpuMachine &machine) {
    const int lanes = std::min(machine.lanes, m.chunk);
    Var io("io"), ii("ii");
    p.products.compute_at(block).vectorize(m.j, lanes).bound(m.j, 0, m.chunk).bound(m.i, 0, m.chunk).bound(m.w, 0, m.writers);
    p.products.reorder(m.j, m.i, m.w, m.e);
    p.sums.compute_at(p.products, m.e).vectorize(m.j, lanes);
    p.sums.update()
        .split(m.i, io, ii, machine.parallel_rows)
        .reorder(m.j, ii, p.keys.x, io, m.w)
        .vectorize(m.j, lanes)
        .unroll(m.j)
        .unroll(ii);
    p.weighted_writes.compute_at(p.products, m.e).vectorize(m.d, machine.lanes, TailStrategy::RoundUp);
    if (p.chunks_between.defined()) {
        for (Func *f : {&p.between_log, &p.chunks_between}) {
            f->compute_at(block);
            if (m.key_decay) vectorize_stages(*f, m.d, machine.lanes);
        }
    }
    if (p.value_chunks_between.defined()) {
        for (Func *f : {&p.value_between_log, &p.value_chunks_between}) {
            f->compute_at(block);
            vectorize_stages(*f, m.v, machine.lanes);
        }
    }
}

}  // namespace

// Loops: head, block of tokens, tile of value channels. The products of a block with all earlier tokens are computed
// once per block, so that no more than C x T of them exist at a time.
void parallel_cpu(Chunk &m, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.value_vectors, C = m.chunk;
    Var vo("vo"), vi("vi"), i("io"), c("co"), io("iq"), ii("ir");

    m.output.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .split(m.t, c, i, C, TailStrategy::GuardWithIf)
        .reorder(vi, i, vo, c, m.h)
        .vectorize(vi, lanes);

    // ---- once per call
    const Place root = [](Func &f) { f.compute_root(); };
    token_vectors_cpu(m, machine, root);
    normalizer_cpu(m, machine, root);
    if (m.final_normalizer.defined()) m.final_normalizer.vectorize(m.d, lanes, TailStrategy::GuardWithIf);
    if (m.beta.defined()) {
        beta_cpu(m, machine);
        m.beta.compute_root();
    }
    decays_cpu(m.decays, m.key_decay ? &m.d : nullptr, !m.key_decay, true, machine, root);
    if (m.value_decay) decays_cpu(m.value_decays, &m.v, true, true, machine, root);
    if (m.key_decay) {
        m.carried.compute_at(m.products, m.c);
        vectorize_stages(m.carried, m.d, lanes);
    }
    // A copy: the final state may be written over the initial one.
    m.state_before.compute_root().vectorize(m.v, lanes, TailStrategy::RoundUp);
    m.state_reads.compute_root().vectorize(m.v, lanes, TailStrategy::RoundUp);
    m.state_reads.update()
        .split(m.i, io, ii, machine.parallel_rows)
        .reorder(m.v, ii, m.over_keys.x, io)
        .vectorize(m.v, lanes, TailStrategy::RoundUp)
        .unroll(ii);
    m.values.compute_root().vectorize(m.v, lanes, TailStrategy::RoundUp);

    // ---- the solve, row by row
    if (m.solved.defined()) {
        m.solved.compute_root().vectorize(m.v, lanes, TailStrategy::RoundUp);
        m.solved.update()
            .split(m.v, vo, vi, tile, TailStrategy::RoundUp)
            .reorder(vi, m.earlier[0], m.earlier[1], vo, m.earlier[2], m.earlier[3])
            .vectorize(vi, lanes)
            .unroll(vi);
        schedule_products(m, m.second, LoopLevel(m.solved, m.earlier[3]), machine);
    }
    m.written_to_end.compute_root().vectorize(m.v, lanes, TailStrategy::RoundUp);

    // ---- outputs, block by block
    schedule_products(m, m.query, LoopLevel(m.output, c), machine);
    m.output_sums.compute_at(m.output, vo)
        .bound_extent(m.c, 1)
        .bound_extent(m.v, tile)
        .bound(m.i, 0, C)
        .vectorize(m.v, lanes)
        .unroll(m.v);
    m.output_sums.update()
        .split(m.i, io, ii, machine.parallel_rows)
        .reorder(m.v, ii, m.output_terms[0], m.output_terms[1], m.output_terms[2], io)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(ii);

    m.final_state.vectorize(m.v, lanes, TailStrategy::GuardWithIf);
    m.state_sums.compute_at(m.final_state, m.d).vectorize(m.v, lanes, TailStrategy::RoundUp);
    m.state_sums.update()
        .reorder(m.v, m.state_terms[0], m.state_terms[1], m.state_terms[2])
        .vectorize(m.v, lanes, TailStrategy::RoundUp);
}

}  // namespace halation
