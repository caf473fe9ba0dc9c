#include "cpu.h"
#include "schedules.h"

namespace halation {

using namespace Halide;

// One token, bound by reading and writing the state once. Loops: head, tile of value channels, key channel. Where what is written
// does not depend on the state there is one pass over it; otherwise a tile is read for the products with it, then read again
// (from the first-level cache) and written. SB and S are inlined: they are the caller's initial and final state, which may be the
// same memory.
void recurrent_cpu(Chunk &m, const CpuMachine &machine) {
    const int lanes = machine.lanes, tile = lanes * machine.decode_value_vectors;
    Var vo("vo"), vi("vi"), dk("dk"), du("du");

    m.output.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf).reorder(vi, m.t, vo, m.h).vectorize(vi, lanes).unroll(vi);

    const Place once = [&](Func &f) { f.compute_at(m.output, m.h); };
    token_vectors_cpu(m, machine, once);
    m.reads.bound(m.r, 0, m.readers).unroll(m.r);
    normalizer_cpu(m, machine, once);
    if (m.beta.defined()) {
        beta_cpu(m, machine);
        m.beta.compute_at(m.output, vo);
    }
    if (m.decays.step.defined()) {
        once(m.decays.step);
        if (m.key_decay) m.decays.step.vectorize(m.d, lanes, TailStrategy::RoundUp);
    }

    RVar ko("ko"), ku("ku");
    m.state_reads.compute_at(m.output, vo).bound(m.r, 0, m.readers).vectorize(m.v, lanes).unroll(m.v).unroll(m.r);
    m.state_reads.update()
        .split(m.over_keys, ko, ku, machine.decode_key_unroll, TailStrategy::GuardWithIf)
        .reorder(m.v, m.r, ku, ko)
        .vectorize(m.v, lanes)
        .unroll(m.v)
        .unroll(m.r)
        .unroll(ku);
    for (Func *f : {&m.values, &m.solved, &m.written_to_end}) {
        if (f->defined()) f->compute_at(m.output, vo).vectorize(m.v, lanes).unroll(m.v);
    }
    m.written_to_end.unroll(m.w);
    m.output_sums.compute_at(m.output, vo).bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    m.output_sums.update().vectorize(m.v, lanes).unroll(m.v).unroll(m.output_terms.x).unroll(m.output_terms.y);

    m.final_state_copy.bound_extent(m.v, tile).vectorize(m.v, lanes).unroll(m.v);
    if (m.one_pass) {
        // A row of the state is taken, read, replaced. Two passes took twice as long (gated and gla, Zen 4).
        for (Func *f : {&m.state_taken, &m.state_sums, &m.final_state_copy}) f->compute_at(m.state_reads, ku);
        m.state_taken.vectorize(m.v, lanes).unroll(m.v);
    } else {
        m.final_state_copy.compute_at(m.output, vo)
            .bound(m.d, 0, m.padded_key_dim)
            .split(m.d, dk, du, machine.decode_key_unroll, TailStrategy::GuardWithIf)
            .reorder(m.v, du, dk)
            .unroll(du);
        m.state_sums.compute_at(m.final_state_copy, du);
    }
    m.state_sums.vectorize(m.v, lanes).unroll(m.v);
    m.state_sums.update().vectorize(m.v, lanes).unroll(m.v).unroll(m.state_terms.x).unroll(m.state_terms.y);
    if (m.value_decay) m.value_decays.step.compute_at(m.output, vo).vectorize(m.v, lanes).unroll(m.v);
}

}  // namespace halation
