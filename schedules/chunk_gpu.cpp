#include "schedules.h"

namespace halation {

using namespace Halide;

namespace {

constexpr int prepare_threads = 64;

// All stages of a Func, the pure one first.
std::vector<Stage> stages_of(Func &f) {
    std::vector<Stage> all = {f};
    for (int stage = 0; stage < f.num_update_definitions(); stage++) all.push_back(f.update(stage));
    return all;
}

bool has_loop(const Stage &s, const Var &dim) {
    for (const Internal::Dim &loop : s.get_schedule().dims())
        if (loop.var == dim.name()) return true;
    return false;
}

// Registers have no addresses: every loop over them is unrolled.
void in_registers(Func &f, const std::vector<Var> &dims) {
    f.store_in(MemoryType::Register);
    for (Stage s : stages_of(f)) {
        for (const Var &dim : dims)
            if (has_loop(s, dim)) s.unroll(dim);
        for (const Internal::ReductionVariable &over : s.get_schedule().rvars()) s.unroll(RVar(over.var));
    }
}

// The update of f, a sum over key channels, in two steps: a thread sums `rows` channels in registers and hands the sum to the
// others in shared memory. Both are still to be placed.
struct SplitSum {
    Func handed, summed;
    Var group{"group"};
    RVar row{"row"};
};
SplitSum split_sum(Func &f, const RVar &over, int rows) {
    SplitSum s;
    RVar groups("groups");
    f.update().split(over, groups, s.row, rows, TailStrategy::GuardWithIf);
    s.summed = f.update().rfactor(groups, s.group);
    s.handed = s.summed.in();
    s.handed.store_in(MemoryType::GPUShared);
    s.summed.store_in(MemoryType::Register);
    return s;
}

// A Func over heads h, for all of a call at once: a thread for each `at`, in which everything else is serial.
void prepared(Func &f, const Var &at, const Var &h) {
    f.compute_root().never_partition_all();
    for (Stage s : stages_of(f)) {
        Var block("block"), thread("thread");
        s.split(at, block, thread, prepare_threads, TailStrategy::GuardWithIf);
        for (const Var &arg : f.args())
            if (arg.name() != at.name() && arg.name() != h.name() && has_loop(s, arg)) s.reorder(arg, thread);
        for (const Internal::ReductionVariable &over : s.get_schedule().rvars()) s.reorder(RVar(over.var), thread);
        s.reorder(thread, block, h).gpu_blocks(block, h).gpu_threads(thread);
    }
}

void prepared_decays(Chunk &m) {
    DecayFuncs &f = m.decays;
    if (!f.step.defined()) return;
    for (Func *func : {&f.through, &f.after, &f.between, &f.whole}) prepared(*func, m.c, m.h);
    if (f.whole_complement.defined()) prepared(f.whole_complement, m.c, m.h);
    f.whole_log.compute_at(f.whole, Var("thread"));
}

// The normaliser goes from chunk to chunk in launches of its own, and so do the vectors that it shares with the state.
void prepared_normalizer(Chunk &m) {
    for (Func *f : {&m.reads_from_start, &m.writes_to_end, &m.normalizer}) prepared(*f, m.d, m.h);
    for (Func *f : {&m.normalizer_sums, &m.denominators}) prepared(*f, m.c, m.h);
    prepared(m.final_normalizer_copy, m.d, m.h);
}

// Products of tokens of a chunk, for all chunks: a block for each chunk of a head. A thread has one writing token, all that see
// it and `rows` key channels, so that a decay per key channel is followed from token to token.
void prepared_products(Chunk &m, int rows) {
    const int C = m.chunk;
    Var rest("rest"), dy("dy"), dx("dx");
    m.products.compute_root().never_partition_all().bound(m.w, 0, m.writers).bound(m.j, 0, C).bound(m.i, 0, C);
    m.products.reorder(m.w, m.j, m.i, m.c, m.h).gpu_blocks(m.c, m.h).gpu_threads(m.j, m.i);
    for (Func *f : {&m.reads, &m.writes})
        f->compute_at(m.products, m.c)
            .store_in(MemoryType::GPUShared)
            .split(m.d, dy, dx, C, TailStrategy::RoundUp)
            .split(dy, rest, dy, C, TailStrategy::RoundUp)
            .reorder(dx, dy, rest)
            .gpu_threads(dx, dy);
    for (auto [sums, keys] : {std::make_pair(&m.query_sums, &m.query_keys), std::make_pair(&m.solve_sums, &m.solve_keys)}) {
        if (!sums->defined()) continue;
        SplitSum split = split_sum(*sums, keys->x, rows);
        sums->compute_at(m.products, m.w).store_in(MemoryType::Register);
        split.handed.compute_at(m.products, m.c).bound(m.w, 0, m.writers).bound(m.j, 0, C).bound(m.i, 0, C);
        split.handed.reorder(m.i, m.w, m.j, split.group).unroll(m.i).gpu_threads(m.j, split.group);
        split.summed.compute_at(split.handed, m.w).unroll(m.i);
        split.summed.update().reorder(m.i, split.row).unroll(m.i);
        if (m.key_decay) {
            Func carried = sums == &m.query_sums && m.solve_sums.defined() ? m.carried.clone_in(split.summed) : m.carried;
            carried.compute_at(split.summed, split.row).bound(m.i, 0, C);
            in_registers(carried, {m.i});
        }
    }
}

}  // namespace

// A block serves a tile of value channels of one head for all chunks; a thread keeps `key_rows` key channels of one value channel
// of the state in registers throughout. What crosses threads goes through shared memory: the sums over key channels, and the
// values written. What no state enters (products, decays per head) is prepared beforehand for all chunks at once, where a chunk
// has several tokens.
void chunk_gpu(Chunk &m, Func &placed, const GpuMachine &machine) {
    const int C = m.chunk, tile = machine.value_lanes, rows = machine.key_rows;
    const Var c = m.chunk_loop, vo = m.tile_loop;
    Var vi("vi"), i("io"), dg("dg"), di("di"), g("g"), n("n");

    const bool normalized = m.normalizer.defined();
    if (normalized) prepared_normalizer(m);
    for (Func &f : m.features) prepared(f, m.c, m.h);
    Func reads = m.reads, writes = m.writes;  // those that meet the state
    if (C > 1 || normalized) {
        reads = m.reads.clone_in(m.reads_from_start);
        writes = m.writes.clone_in(m.writes_to_end);
        prepared_products(m, machine.product_rows);
        if (!m.key_decay) prepared_decays(m);
    }

    placed.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .split(m.t, c, i, C, TailStrategy::GuardWithIf)
        .reorder(vi, i, c, vo, g, n)
        .never_partition_all()  // the loop over chunks must be whole; of the others, the parts are only more code
        .gpu_blocks(vo, g, n)
        .gpu_threads(vi, i);

    const auto in_chunk = [&](Func &f) -> Func & { return f.compute_at(placed, c); };
    const auto shared = [&](Func &f) -> Func & { return in_chunk(f).store_in(MemoryType::GPUShared); };

    // ---- the vectors of the chunk's tokens: a thread has a key channel of all tokens
    const auto token_vectors = [&](Func &f, const Var &which, const Var &token) {
        Var dy("dy"), dx("dx");
        shared(f)
            .split(m.d, dy, dx, tile, TailStrategy::RoundUp)
            .bound(token, 0, C)
            .bound(which, 0, which.name() == m.r.name() ? m.readers : m.writers)
            .reorder(token, which, dx, dy)
            .gpu_threads(dx, dy)
            .unroll(token)
            .unroll(which);
        m.staged.push_back(f);
    };
    if (m.key_decay && C > 1) {
        token_vectors(m.reads_from_start, m.r, m.i);
        token_vectors(m.writes_to_end, m.w, m.j);
        Var dy("dy"), dx("dx");
        shared(m.decays.whole).split(m.d, dy, dx, tile, TailStrategy::RoundUp).gpu_threads(dx, dy);
        m.staged.push_back(m.decays.whole);
        for (auto [decays, vectors] :
             {std::make_pair(&m.decays.through, &m.reads_from_start), std::make_pair(&m.decays.after, &m.writes_to_end)}) {
            decays->compute_at(*vectors, dx).bound(m.i, 0, C);
            in_registers(*decays, {m.i});
        }
        m.decays.whole_log.compute_at(m.decays.whole, dx);
        in_registers(m.decays.whole_log, {});
    } else if (!normalized) {
        token_vectors(reads, m.r, m.i);
        token_vectors(writes, m.w, m.j);
    }
    if (m.value_decay && C > 1) {
        DecayFuncs &f = m.value_decays;
        for (Func *func : {&f.through, &f.after, &f.between}) {
            shared(*func).bound(m.i, 0, C).bound_extent(m.v, tile);
            for (Stage s : stages_of(*func)) s.gpu_threads(m.v);
        }
        shared(f.whole).gpu_threads(m.v);
        f.whole_log.compute_at(f.whole, m.v).store_in(MemoryType::Register);
    }

    // ---- what else comes from memory
    const auto staged = [&](Func f) -> Func & {
        m.staged.push_back(f);
        shared(m.staged.back());
        return m.staged.back();
    };
    staged(m.values).bound(m.i, 0, C).bound_extent(m.v, tile).gpu_threads(m.v, m.i);
    if (m.beta.defined()) staged(m.beta).bound(m.i, 0, C).bound_extent(m.v, tile).gpu_threads(m.v, m.i);
    std::vector<Func> readers = {m.output_sums};
    if (m.solved.defined()) readers.push_back(m.solved);
    if (C > 1 && !normalized) {
        staged(m.products.in(readers))
            .bound(m.w, 0, m.writers)
            .bound(m.j, 0, C)
            .bound(m.i, 0, C)
            .reorder(m.w, m.j, m.i)
            .unroll(m.w)
            .gpu_threads(m.j, m.i);
    }
    if (m.decays.step.defined() && !m.key_decay && !normalized) {
        if (C == 1) {
            staged(m.decays.step).bound(m.i, 0, 1).gpu_threads(m.i);
        } else {
            staged(m.decays.through.in(readers)).bound(m.i, 0, C).gpu_threads(m.i);
            staged(m.decays.after.in(m.written_to_end)).bound(m.i, 0, C).gpu_threads(m.i);
            staged(m.decays.whole.in());
        }
    }
    if (m.key_decay && C == 1) {
        Var dy("dy"), dx("dx");
        staged(m.decays.step).split(m.d, dy, dx, tile, TailStrategy::RoundUp).bound(m.i, 0, 1).gpu_threads(dx, dy);
    }

    // ---- the product of the query and the key of one token: as a loop of each thread it was half of the time of decode (H200)
    if (C == 1 && !normalized) {
        SplitSum split = split_sum(m.query_sums, m.query_keys.x, rows);
        in_chunk(split.handed).bound(m.w, 0, m.writers).reorder(m.w, split.group).unroll(m.w).gpu_threads(split.group);
        split.summed.compute_at(split.handed, split.group).unroll(m.w);
        split.summed.update().reorder(m.w, split.row).unroll(m.w).unroll(split.row);
        m.query_sums.compute_at(m.output_sums, m.v).store_in(MemoryType::Register);
    }

    // ---- the products of the readers with the state
    {
        SplitSum split = split_sum(m.state_reads, m.over_keys.x, rows);
        in_chunk(split.handed).bound(m.r, 0, m.readers).bound(m.i, 0, C).bound_extent(m.v, tile);
        split.handed.reorder(m.r, m.i, m.v, split.group).unroll(m.r).unroll(m.i).gpu_threads(m.v, split.group);
        split.summed.compute_at(split.handed, m.v).unroll(m.r).unroll(m.i);
        split.summed.update().reorder(m.r, m.i, split.row).unroll(m.r).unroll(m.i).unroll(split.row);
        // Summed in a register: in shared memory, all would wait between zero and the sum.
        Func state_reads = m.state_reads.in();
        shared(state_reads).bound(m.r, 0, m.readers).bound(m.i, 0, C).bound_extent(m.v, tile);
        state_reads.reorder(m.r, m.v, m.i).unroll(m.r).gpu_threads(m.v, m.i);
        m.state_reads.compute_at(state_reads, m.r).store_in(MemoryType::Register);
    }

    // ---- what is written
    shared(m.written).bound(m.j, 0, C).bound(m.w, 0, m.writers).bound_extent(m.v, tile);
    m.written.reorder(m.w, m.j, m.v).unroll(m.w).unroll(m.j).gpu_threads(m.v);
    if (m.solved.defined()) {
        m.solved.compute_at(m.written, m.v).bound(m.i, 0, C);
        in_registers(m.solved, {m.i});
    }

    // ---- the outputs
    // Through shared memory, since Halide does not see that token t % C of a thread is one token.
    Func output_sums = m.output_sums.in();
    shared(output_sums).bound(m.i, 0, C).bound_extent(m.v, tile).reorder(m.v, m.i).gpu_threads(m.v, m.i);
    m.output_sums.compute_at(output_sums, m.v).store_in(MemoryType::Register);

    // ---- the state
    for (Func f : {m.state_before, m.state_after, m.final_state_copy})
        f.store_in(MemoryType::Stack)
            .bound_extent(m.v, tile)
            .bound(m.d, 0, m.padded_key_dim)
            .split(m.d, dg, di, rows)
            .reorder(di, m.v, dg)
            .gpu_threads(m.v, dg)
            .unroll(di);
    for (Func f : {m.state_before, m.state_after}) in_chunk(f).store_at(placed, vo).fold_storage(m.c, 1);
    in_chunk(m.final_state_copy).bound_extent(m.c, 1);
    m.state_sums.compute_at(m.state_after, m.v).store_in(MemoryType::Register).unroll(m.d);
    m.state_sums.update()
        .reorder(m.d, m.state_terms.x, m.state_terms.y)
        .unroll(m.d)
        .unroll(m.state_terms.x)
        .unroll(m.state_terms.y);
}

}  // namespace halation
