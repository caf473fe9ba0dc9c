#include "cpu.h"

namespace halation {

using namespace Halide;

void vectorize_stages(Func &f, const Var &dim, int lanes) {
    f.vectorize(dim, lanes, TailStrategy::RoundUp);
    for (int stage = 0; stage < f.num_update_definitions(); stage++) f.update(stage).vectorize(dim, lanes, TailStrategy::RoundUp);
}

void sum_in_lanes(Func &f, const RVar &over, const Var &at, int lanes) {
    RVar outer("outer"), inner("inner");
    Var lane("lane");
    f.update().split(over, outer, inner, lanes);
    Func partial = f.update().rfactor(inner, lane);
    partial.compute_at(f, at).vectorize(lane, lanes);
    partial.update().vectorize(lane, lanes);
    // Of which LLVM makes a tree. As atomic().vectorize() Halide made a loop over the lanes of it: 4 % of gated (Zen 4).
    f.update().unroll(inner);
}

void token_vectors_cpu(Chunk &m, const CpuMachine &machine, const Place &place) {
    for (Func *f : {&m.reads, &m.reads_from_start, &m.writes, &m.writes_to_end}) {
        const bool decayed = f == &m.reads_from_start || f == &m.writes_to_end;
        if (decayed && !m.key_decay) continue;  // the same as reads and writes
        place(*f);
        f->vectorize(m.d, machine.lanes, TailStrategy::RoundUp);
    }
    for (Func &f : m.features) place(f);
    place(m.products);
    m.products.bound(m.w, 0, m.writers).bound(m.j, 0, m.chunk).bound(m.i, 0, m.chunk);
    // Pair by pair, so that pairs of which nothing is seen are skipped.
    for (auto [sums, keys] : {std::make_pair(&m.query_sums, &m.query_keys), std::make_pair(&m.solve_sums, &m.solve_keys)}) {
        if (!sums->defined()) continue;
        sums->compute_at(m.products, m.w);
        sum_in_lanes(*sums, keys->x, m.w, machine.lanes);
    }
}

void normalizer_cpu(Chunk &m, const CpuMachine &machine, const Place &place) {
    if (!m.normalizer.defined()) return;
    for (Func *f : {&m.normalizer, &m.normalizer_sums, &m.denominators}) place(*f);
    vectorize_stages(m.normalizer, m.d, machine.lanes);
    sum_in_lanes(m.normalizer_sums, m.normalizer_keys.x, m.i, machine.lanes);
    if (!m.final_normalizer_copy.defined()) return;
    place(m.final_normalizer_copy);
    m.final_normalizer_copy.vectorize(m.d, machine.lanes, TailStrategy::RoundUp);
}

void decays_cpu(DecayFuncs &decays, const Var *channel, bool between, bool across_chunks, const CpuMachine &machine,
                const Place &place) {
    if (!decays.step.defined()) return;
    std::vector<Func *> used = {&decays.step, &decays.through, &decays.after, &decays.whole_log, &decays.whole};
    if (between) used.push_back(&decays.between);
    if (decays.whole_complement.defined()) used.push_back(&decays.whole_complement);
    if (across_chunks) {
        used.insert(used.end(), {&decays.before_log, &decays.chunks_before, &decays.after_log, &decays.chunks_after});
    }
    for (Func *f : used) {
        place(*f);
        if (channel) vectorize_stages(*f, *channel, machine.lanes);
    }
}

void beta_cpu(Chunk &m, const CpuMachine &machine) {
    m.beta.vectorize(m.v, machine.lanes, TailStrategy::RoundUp);
    // Known to be zero, the stride turns a gather into one load and a broadcast.
    if (m.one_beta_per_head.defined()) m.beta.specialize(m.one_beta_per_head);
}

}  // namespace halation
