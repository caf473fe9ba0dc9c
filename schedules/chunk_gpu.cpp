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
    RVar groups{"groups"}, row{"row"};
};
SplitSum split_sum(Func &f, const RVar &over, int rows) {
    SplitSum s;
    f.update().split(over, s.groups, s.row, rows, TailStrategy::GuardWithIf);
    s.summed = f.update().rfactor(s.groups, s.group);
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

// A Func of key channels, for all chunks at once: a thread for each channel of a chunk, with all else of it.
Var prepared_channels(Func &f, const std::vector<Var> &own, const Chunk &m) {
    Var block("block"), thread("thread");
    std::vector<VarOrRVar> order(own.begin(), own.end());
    order.insert(order.end(), {thread, m.c, block, m.h});
    f.compute_root()
        .never_partition_all()
        .split(m.d, block, thread, prepare_threads, TailStrategy::GuardWithIf)
        .reorder(order)
        .gpu_blocks(m.c, block, m.h)
        .gpu_threads(thread);
    for (const Var &dim : own) f.unroll(dim);
    return thread;
}

// The vectors that meet the state, with their decays: in the chunk, every tile of value channels would reckon them again, and
// half of its threads would wait.
void prepared_vectors(Chunk &m) {
    m.reads_from_start.bound(m.r, 0, m.readers).bound(m.i, 0, m.chunk);
    m.writes_to_end.bound(m.w, 0, m.writers).bound(m.j, 0, m.chunk);
    const Var reading = prepared_channels(m.reads_from_start, {m.i, m.r}, m);
    const Var writing = prepared_channels(m.writes_to_end, {m.j, m.w}, m);
    if (!m.key_decay) return;
    m.decays.through.compute_at(m.reads_from_start, reading);
    m.decays.after.compute_at(m.writes_to_end, writing);
    for (Func *decays : {&m.decays.through, &m.decays.after}) in_registers(decays->bound(m.i, 0, m.chunk), {m.i});
    m.decays.whole_log.compute_at(m.decays.whole, prepared_channels(m.decays.whole, {}, m));
    in_registers(m.decays.whole_log, {});
}

// The normaliser goes from chunk to chunk in a launch of its own, in which a thread has one of its channels.
void prepared_normalizer(Chunk &m, const GpuMachine &machine) {
    if (m.chunk > 1) {
        prepared_channels(m.normalizer_writes, {}, m);
    } else {
        // What the block of the state has in shared memory is not for others.
        m.writes.clone_in(m.writes_to_end.clone_in(m.normalizer_writes));
        if (m.decays.step.defined()) m.decays.step.clone_in(m.decays.whole.clone_in(m.normalizer));
    }
    if (m.final_normalizer_copy.defined()) prepared(m.final_normalizer_copy, m.d, m.h);
    Var block("block"), thread("thread");
    m.normalizer.compute_root();
    Stage z = m.normalizer.update().never_partition_all();
    if (m.chunk == 1) {
        // A thread asks for a few channels at once, and a block serves several heads: there are thousands of them.
        Var channels("channels"), channel("channel"), heads("heads"), head("head");
        z.split(m.d, block, channels, machine.normalizer_threads * machine.normalizer_rows, TailStrategy::GuardWithIf)
            .split(channels, channel, thread, machine.normalizer_threads)
            .split(m.h, heads, head, machine.normalizer_heads, TailStrategy::GuardWithIf)
            .reorder({channel, m.normalizer_turns.x, thread, head, block, heads})
            .gpu_blocks(block, heads)
            .gpu_threads(thread, head)
            .unroll(channel);
        return;
    }
    RVar turns("turns"), turn("turn");
    z.split(m.d, block, thread, prepare_threads, TailStrategy::GuardWithIf)
        .split(m.normalizer_turns.x, turns, turn, m.normalizer_chunks, TailStrategy::GuardWithIf)
        .reorder(turn, turns, thread, block, m.h)
        .gpu_blocks(block, m.h)
        .gpu_threads(thread)
        .unroll(turn);
}

// What becomes of the update of f, which goes over key channels, for all chunks: a block for the tokens of a chunk, whose threads
// share out the key channels.
void prepared_of_keys(const Chunk &m, Func result, Func &f, int rows) {
    const Var token = f.args()[0];
    SplitSum sums = split_sum(f, f.rvars().at(0), rows);
    result.compute_root().never_partition_all().bound(token, 0, m.chunk).reorder(token, m.c, m.h).gpu_blocks(m.c, m.h);
    result.gpu_threads(token);
    sums.handed.compute_at(result, m.c).bound(token, 0, m.chunk).reorder(token, sums.group).gpu_threads(token, sums.group);
    sums.summed.compute_at(sums.handed, token);
    f.compute_at(result, token).store_in(MemoryType::Register);
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

// A block serves a tile of value channels of one head for all chunks; a thread keeps some key channels of one or a few value
// channels of the state in registers throughout. What crosses threads goes through shared memory: the sums over key channels, and
// the values written. What no state enters (products, decays, vectors with their decays) is prepared beforehand for all chunks at
// once, where a chunk has several tokens.
void chunk_gpu(Chunk &m, Func &placed, const GpuMachine &machine) {
    const int C = m.chunk, tile = machine.value_lanes;
    // A kernel for one K knows what shared memory it takes, and may take more of it: what comes from memory has its own, into
    // which a whole chunk is put at once (shared_apart.h, chunk_ahead.h), and so has what is written. Such kernels need four
    // barriers a chunk, five with a solve; others keep some fifteen.
    const bool apart = machine.one_shared_array && Internal::is_const(Internal::simplify(m.padded_key_dim));
    const bool wide = C > 1 && apart;
    const int rows = wide ? machine.chunk_key_rows : machine.key_rows, channels = wide ? machine.chunk_value_channels : 1;
    const Var c = m.chunk_loop, vo = m.tile_loop;
    Var vi("vi"), i("io"), di("di"), g("g"), n("n");

    // Threads by the parts of the state that they keep: `rows` key channels of `channels` value channels. Of a thread, the loops
    // `own` and that over value channels, innermost first.
    Var vc("vc"), x("x");
    const auto by_state = [&](Func &f, const Var &v, const Var &group, std::vector<VarOrRVar> own) {
        Var vx("vx"), gi("gi"), y("y");
        f.split(v, vx, vc, channels).split(group, y, gi, channels);
        std::vector<VarOrRVar> order = own;
        order.insert(order.end(), {vc, vx, gi, y});
        f.reorder(order).fuse(vx, gi, x).gpu_threads(x, y).unroll(vc);
        for (const VarOrRVar &loop : own) f.unroll(loop);
    };

    const bool normalized = m.normalizer.defined(), with_vectors = C > 1 && (normalized || m.key_decay);
    if (with_vectors) prepared_vectors(m);
    if (normalized) prepared_normalizer(m, machine);
    Func denominators = normalized && C > 1 ? m.denominators.in() : Func();
    if (denominators.defined()) {
        prepared_of_keys(m, denominators, m.normalizer_sums, machine.product_rows);
        m.denominators.compute_at(denominators, m.i).store_in(MemoryType::Register);
    }
    for (Func &f : m.features) prepared_of_keys(m, f.in(), f, machine.product_rows);
    Func reads = m.reads, writes = m.writes;  // those that meet the state
    if (C > 1) {
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

    const auto in_chunk = [&](Func f) -> Func { return f.compute_at(placed, c); };
    const auto shared = [&](const Func &f) -> Func { return in_chunk(f).store_in(MemoryType::GPUShared); };

    // What comes from memory, and what is written, has shared memory to itself where there is enough.
    const auto alone = [&](const Func &f) -> Func {
        if (!apart) return shared(f);
        m.apart.push_back(f);
        return in_chunk(f).store_in(MemoryType::Stack);
    };
    const auto staged = [&](const Func &f) -> Func {
        m.staged.push_back(f);
        return alone(f);
    };

    // ---- the vectors of the chunk's tokens that meet the state
    const auto token_vectors = [&](const Func &f, const Var &which, int count, const Var &token) {
        Var dy("dy"), dx("dx");
        Func vectors = staged(f);
        vectors.bound(which, 0, count).bound(token, 0, C).split(m.d, dy, dx, tile, TailStrategy::RoundUp).unroll(which);
        if (wide)  // one token a thread, whose place in memory it finds once
            vectors.bound(m.d, 0, m.padded_key_dim).reorder(which, dy, dx, token).gpu_threads(dx, token).unroll(dy);
        else
            vectors.reorder(token, which, dx, dy).gpu_threads(dx, dy).unroll(token);
    };
    SplitSum state_reads = split_sum(m.state_reads, m.over_keys.x, rows);
    if (with_vectors) {
        reads = m.reads_from_start.in(state_reads.summed);
        writes = m.writes_to_end.in(m.state_sums);
    }
    token_vectors(reads, m.r, m.readers, m.i);
    token_vectors(writes, m.w, m.writers, m.j);
    if (m.key_decay && C > 1) {
        Var dy("dy"), dx("dx");
        staged(normalized ? m.decays.whole.in(m.state_sums) : m.decays.whole.in())
            .split(m.d, dy, dx, tile, TailStrategy::RoundUp)
            .gpu_threads(dx, dy);
    }
    if (m.value_decay) {
        DecayFuncs &f = m.value_decays;
        const auto by_tokens = [&](Func step) { step.bound(m.i, 0, C).bound_extent(m.v, tile).gpu_threads(m.v, m.i); };
        by_tokens(staged(C == 1 ? f.step : f.log_step));
        if (C > 1) {
            by_tokens(shared(f.step));
            for (Func *func : {&f.through, &f.after, &f.between}) {
                shared(*func).bound(m.i, 0, C).bound_extent(m.v, tile);
                if (func == &f.between) func->bound(m.j, 0, C);
                for (Stage s : stages_of(*func)) {
                    std::vector<VarOrRVar> order;
                    for (const Internal::ReductionVariable &over : s.get_schedule().rvars()) order.emplace_back(RVar(over.var));
                    if (has_loop(s, m.i)) order.emplace_back(m.i);
                    order.emplace_back(m.v);
                    if (has_loop(s, m.j)) order.emplace_back(m.j);
                    s.reorder(order).gpu_threads(m.v);
                    if (has_loop(s, m.j)) s.gpu_threads(m.j);
                }
            }
            shared(f.whole).gpu_threads(m.v);
            f.whole_log.compute_at(f.whole, m.v).store_in(MemoryType::Register);
        }
    }

    // ---- what else comes from memory
    staged(m.values).bound(m.i, 0, C).bound_extent(m.v, tile).gpu_threads(m.v, m.i);
    if (m.beta.defined()) staged(m.beta).bound(m.i, 0, C).bound_extent(m.v, tile).gpu_threads(m.v, m.i);
    std::vector<Func> readers = {m.output_sums};
    if (m.solved.defined()) readers.push_back(m.solved);
    if (C > 1) {
        staged(m.products.in(readers))
            .bound(m.w, 0, m.writers)
            .bound(m.j, 0, C)
            .bound(m.i, 0, C)
            .reorder(m.w, m.j, m.i)
            .unroll(m.w)
            .gpu_threads(m.j, m.i);
    }
    if (denominators.defined()) staged(denominators.in(m.output_values)).bound(m.i, 0, C).gpu_threads(m.i);
    if (m.decays.step.defined() && !m.key_decay && !(normalized && C > 1)) {
        if (C == 1) {
            staged(m.decays.step).bound(m.i, 0, 1).gpu_threads(m.i);
        } else {
            staged(m.decays.through.in(readers)).bound(m.i, 0, C).gpu_threads(m.i);
            staged(m.decays.after.in(m.written_to_end)).bound(m.i, 0, C).gpu_threads(m.i);
            staged((m.decays.whole_complement.defined() ? m.decays.whole_complement : m.decays.whole).in());
        }
    }
    if (m.key_decay && C == 1) {
        Var dy("dy"), dx("dx");
        staged(m.decays.step).split(m.d, dy, dx, tile, TailStrategy::RoundUp).bound(m.i, 0, 1).gpu_threads(dx, dy);
    }

    if (m.bonus.defined() && C == 1) {
        Var dy("dy"), dx("dx");
        staged(m.bonus).split(m.d, dy, dx, tile, TailStrategy::RoundUp).bound(m.i, 0, 1).gpu_threads(dx, dy);
    }

    // ---- the product of the query and the key of one token: as a loop of each thread it was half of the time of decode (H200)
    if (C == 1) {
        SplitSum split = split_sum(m.query_sums, m.query_keys.x, rows);
        in_chunk(split.handed).bound(m.w, 0, m.writers).reorder(m.w, split.group).unroll(m.w).gpu_threads(split.group);
        split.summed.compute_at(split.handed, split.group).unroll(m.w);
        split.summed.update().reorder(m.w, split.row).unroll(m.w).unroll(split.row);
        m.query_sums.compute_at(m.output_sums, m.v).store_in(MemoryType::Register);
        if (apart) m.query_sums.update().unroll(split.groups);
    }
    if (C == 1 && normalized) {
        SplitSum split = split_sum(m.normalizer_sums, m.normalizer_keys.x, machine.product_rows);
        Var dy("dy"), dx("dx");
        staged(m.normalizer.in(split.summed)).split(m.d, dy, dx, tile, TailStrategy::RoundUp).gpu_threads(dx, dy);
        in_chunk(split.handed).bound(m.i, 0, 1).gpu_threads(split.group);
        split.summed.compute_at(split.handed, split.group);
        split.summed.update().unroll(split.row);
        m.normalizer_sums.compute_at(m.output_values, m.v).store_in(MemoryType::Register);
        if (apart) m.normalizer_sums.update().unroll(split.groups);
    }

    // ---- the products of the readers with the state
    in_chunk(state_reads.handed).bound(m.r, 0, m.readers).bound(m.i, 0, C).bound_extent(m.v, tile);
    by_state(state_reads.handed, m.v, state_reads.group, {m.r, m.i});
    state_reads.summed.compute_at(state_reads.handed, x).unroll(m.r).unroll(m.i).unroll(m.v);
    state_reads.summed.update()
        .reorder(m.r, m.i, m.v, state_reads.row)
        .unroll(m.r)
        .unroll(m.i)
        .unroll(m.v)
        .unroll(state_reads.row);
    // Summed in a register: in shared memory, all would wait between zero and the sum.
    Func state_reads_sums = m.state_reads.in();
    shared(state_reads_sums).bound(m.r, 0, m.readers).bound(m.i, 0, C).bound_extent(m.v, tile);
    state_reads_sums.reorder(m.r, m.v, m.i).unroll(m.r).gpu_threads(m.v, m.i);
    m.state_reads.compute_at(state_reads_sums, m.r).store_in(MemoryType::Register);
    if (apart) m.state_reads.update().unroll(state_reads.groups);

    // ---- what is written
    alone(m.written).bound(m.j, 0, C).bound(m.w, 0, m.writers).bound_extent(m.v, tile);
    m.written.reorder(m.w, m.j, m.v).unroll(m.w).unroll(m.j).gpu_threads(m.v);
    if (m.solved.defined()) {
        m.solved.compute_at(m.written, m.v).bound(m.i, 0, C);
        in_registers(m.solved, {m.i});
    }

    // ---- the outputs
    // Through shared memory, since Halide does not see that token t % C of a thread is one token.
    // Of one token they are divided there as well: later, the call that a division is would have threads hold what goes into
    // their state meanwhile.
    Func outputs = C == 1 ? m.output_values : m.output_sums.in();
    shared(outputs).bound(m.i, 0, C).bound_extent(m.v, tile).reorder(m.v, m.i).gpu_threads(m.v, m.i);
    m.output_sums.compute_at(outputs, m.v).store_in(MemoryType::Register);
    if (C > 1) m.output_sums.update().unroll(m.output_terms.x).unroll(m.output_terms.y);

    // ---- the state: what a thread reads of it before and writes after all chunks are the same elements, which may be in place
    for (Func f : {m.state_before, m.state_after, m.final_state_copy}) {
        Var dg("dg");
        f.store_in(MemoryType::Stack).bound_extent(m.v, tile).bound(m.d, 0, m.padded_key_dim).split(m.d, dg, di, rows);
        by_state(f, m.v, dg, {di});
    }
    for (Func f : {m.state_before, m.state_after}) in_chunk(f).store_at(placed, vo).fold_storage(m.c, 1);
    in_chunk(m.final_state_copy).bound_extent(m.c, 1);
    m.state_sums.compute_at(m.state_after, x).store_in(MemoryType::Register).unroll(m.d).unroll(m.v);
    m.state_sums.update()
        .reorder(m.d, m.v, m.state_terms.x, m.state_terms.y)
        .unroll(m.d)
        .unroll(m.v)
        .unroll(m.state_terms.x)
        .unroll(m.state_terms.y);
}

}  // namespace halation
