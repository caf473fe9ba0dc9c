// The chunkwise schedule of gated_delta in five steps, from loops as they come to what Halation ships: docs/schedules.md.
// A schedule of one's own with a parameter of its own, which says how far to go.
#include <schedules/cpu.h>
#include <schedules/schedules.h>

using namespace Halide;

static void steps(halation::Chunk &m, const halation::CpuMachine &machine) {
    const int step = machine.parameter("step");
    const bool vectors = step >= 2, prepared = step >= 3, registers = step >= 4, partial_sums = step >= 5;
    const int lanes = machine.lanes, tile = registers ? lanes * machine.value_vectors : lanes, C = m.chunk;
    const Var c = m.chunk_loop;
    Var i("i"), vo("vo"), vi("vi");

    // ---- 1: the loops that the carry pass needs, and no more: the state has its place outside the loop over chunks, for one
    // chunk.
    m.output.split(m.t, c, i, C, TailStrategy::GuardWithIf).partition(c, Partition::Never);
    if (vectors) {
        // ---- 2: a vector of value channels at a time, the loop over them outside that over chunks: the part of the state that
        // belongs to it stays in the first-level cache.
        m.output.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf).reorder(vi, i, c, vo, m.h).vectorize(vi, lanes).unroll(vi);
    } else {
        m.output.reorder(m.v, i, c, m.h);
    }
    for (Func f : {m.state_before, m.state_after}) {
        f.store_at(m.output, vectors ? vo : m.h).compute_at(m.output, c);
        f.fold_storage(m.c, 1).bound(m.d, 0, m.padded_key_dim);
    }
    m.final_state_copy.compute_at(m.output, c).bound_extent(m.c, 1);
    m.state_sums.compute_at(m.state_after, m.d);

    // What has value channels: chunk by chunk.
    for (Func f : {m.state_reads, m.beta, m.solved, m.written_to_end, m.output_sums}) f.compute_at(m.output, c);
    m.state_reads.bound(m.r, 0, m.readers).bound(m.i, 0, C);
    m.output_sums.bound_extent(m.c, 1).bound(m.i, 0, C);
    m.written_to_end.bound(m.j, 0, C);
    m.solved.bound(m.i, 0, C);

    // What has none, the tokens' vectors, their products, the decays, ...
    for (Func f : {m.reads, m.writes, m.values, m.products, m.decays.step, m.decays.through, m.decays.after, m.decays.between,
                   m.decays.whole_log, m.decays.whole}) {
        // ---- 3: ... once per head for all chunks of the call, and not again for each vector of value channels.
        f.compute_at(m.output, prepared ? m.h : c);
    }
    m.reads.bound(m.r, 0, m.readers);
    m.products.bound(m.w, 0, m.writers).bound(m.j, 0, C).bound(m.i, 0, C);
    for (Func f : {m.query_sums, m.solve_sums}) f.compute_at(m.products, m.w);
    if (!vectors) return;

    for (Func f : {m.state_before, m.state_after, m.state_sums, m.final_state_copy, m.state_reads, m.solved, m.written_to_end,
                   m.output_sums}) {
        f.bound_extent(m.v, tile);
        halation::vectorize_stages(f, m.v, lanes);
        f.unroll(m.v);
    }
    for (Func f : {m.values, m.beta}) halation::vectorize_stages(f, m.v, lanes);
    for (Func f : {m.reads, m.writes}) halation::vectorize_stages(f, m.d, lanes);

    // ---- 4: sums in registers, of all tokens of the chunk and two vectors of value channels: what is loaded of the state is
    // used for all of them.
    if (registers) {
        RVar ko("ko"), ku("ku");
        Var dk("dk"), du("du");
        m.state_reads.unroll(m.r).unroll(m.i);
        m.state_reads.update().split(m.over_keys, ko, ku, machine.key_unroll).reorder(m.v, m.r, m.i, ku, ko);
        m.state_reads.update().unroll(m.v).unroll(m.r).unroll(m.i).unroll(ku);
        m.state_after.split(m.d, dk, du, machine.key_unroll).reorder(m.v, du, dk).unroll(du);
        m.state_sums.compute_at(m.state_after, du).update().reorder(m.v, m.state_terms.x, m.state_terms.y);
        m.state_sums.update().unroll(m.v).unroll(m.state_terms.x).unroll(m.state_terms.y);
        m.solved.unroll(m.i).update().reorder(m.v, m.earlier.x, m.earlier.y);
        m.solved.update().unroll(m.v).unroll(m.earlier.x).unroll(m.earlier.y);
        m.output_sums.unroll(m.i).update().reorder(m.v, m.output_terms.x, m.output_terms.y, m.i);
        m.output_sums.update().unroll(m.v).unroll(m.output_terms.x).unroll(m.output_terms.y).unroll(m.i);
        m.written_to_end.unroll(m.j);
    }
    // ---- 5: the small products of a chunk's queries and keys with a vector of partial sums, and one load where a token has one
    // beta for all channels.
    if (partial_sums) {
        halation::sum_in_lanes(m.query_sums, m.query_keys.x, m.w, lanes);
        halation::sum_in_lanes(m.solve_sums, m.solve_keys.x, m.w, lanes);
        m.beta.specialize(m.one_beta_per_head);
    }
}

static const halation::RegisterSchedule registered("steps", steps, {{"step", 5, 1, 5, {1, 2, 3, 4, 5}}});
