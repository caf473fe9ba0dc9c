#include "cpu.h"

namespace halation {

using namespace Halide;

void vectorize_stages(Func &f, const Var &dim, int lanes) {
    f.vectorize(dim, lanes, TailStrategy::RoundUp);
    for (int stage = 0; stage < f.num_update_definitions(); stage++) f.update(stage).vectorize(dim, lanes, TailStrategy::RoundUp);
}

void product_sums_cpu(Chunk &m, const CpuMachine &machine) {
    const int lanes = machine.lanes;
    RVar ko("ko"), ki("ki");
    Var lane("lane");
    m.product_sums.compute_at(m.products, m.i);
    m.product_sums.update().split(m.product_keys, ko, ki, lanes);
    Func partial = m.product_sums.update().rfactor(ki, lane);
    partial.compute_at(m.product_sums, m.r).vectorize(lane, lanes);
    partial.update().vectorize(lane, lanes);
    m.product_sums.update().atomic().vectorize(ki, lanes);
}

void decays_cpu(DecayFuncs &decays, const Var *channel, bool between, bool across_chunks, const CpuMachine &machine,
                const std::function<void(Func &)> &place) {
    if (!decays.step.defined()) return;
    std::vector<Func *> used = {&decays.step, &decays.through, &decays.after, &decays.whole_log, &decays.whole};
    if (between) used.push_back(&decays.between);
    if (decays.whole_complement.defined()) used.push_back(&decays.whole_complement);
    if (across_chunks) {
        used.insert(used.end(), {&decays.before_log, &decays.chunks_before, &decays.after_log, &decays.chunks_after});
    }
    // Copied before it is worked on: a loop of loads and stores keeps many rows on their way from memory, one with exp few.
    if (channel) used.push_back(&decays.log_step);
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
