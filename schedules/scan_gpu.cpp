#include "schedules.h"

#include <algorithm>

namespace halation {

using namespace Halide;

// A block serves a tile of channels of one sequence for all chunks; a thread keeps a group of elements of one channel of the
// state in registers throughout, and what the tokens of a chunk read of it. What crosses threads goes through shared memory: the
// inputs of a chunk, which the groups share, and the sums over groups.
void scan_gpu(ScanChunk &m, Func &placed, const ScanTile &shape, const GpuMachine &machine) {
    const int C = m.chunk, rows = m.rows, tile = shape.channels, token_threads = shape.token_threads;
    const int threads = tile / shape.each;  // along channels
    // Of a known size, what comes from memory has shared memory to itself, into which a whole chunk is put at once
    // (chunk_ahead.h).
    const bool apart = machine.one_shared_array && Internal::is_const(m.groups);
    const Var c = m.chunk_loop, ni = m.sequence_loop, vo = m.tile_loop;
    Var vi("vi"), vx("vx"), vl("vl"), i("i"), io("io"), ii("ii"), n("n"), no("no");

    // A block that serves several sequences reads A once.
    const Expr blocks = m.sequences * ((m.channels + tile - 1) / tile);
    const Expr sequences = shape.sequences == 1 ? Expr(1) : clamp(blocks / machine.scan_blocks, 1, shape.sequences);

    placed.split(m.v, vo, vi, tile, TailStrategy::GuardWithIf)
        .split(m.t, c, i, C, TailStrategy::GuardWithIf)
        .split(i, io, ii, token_threads)
        .split(n, no, ni, sequences, TailStrategy::GuardWithIf)
        .split(vi, vx, vl, threads)
        .reorder(io, vx, vl, ii, c, ni, vo, no)
        .never_partition_all()  // the loop over chunks must be whole; of the others, the parts are only more code
        .gpu_blocks(vo, no)
        .gpu_threads(vl, ii)
        .unroll(vx)
        .unroll(io);

    const auto in_chunk = [&](Func &f) -> Func & { return f.compute_at(placed, c); };
    const auto shared = [&](Func &f) -> Func & { return in_chunk(f).store_in(MemoryType::GPUShared); };
    // Where a thread has all elements of a channel and all tokens of a chunk, what it computes of them nobody else needs.
    const bool alone = token_threads == 1 && Internal::is_const_one(m.groups);
    const auto among_tokens = [&](Func &f) -> Func & {
        if (!alone) return shared(f);
        m.kept.push_back(f);
        return in_chunk(f).store_in(MemoryType::Stack);
    };
    const auto staged = [&](Func &f) -> Func & {
        if (!apart || alone) return shared(f);
        m.apart.push_back(f);
        return in_chunk(f).store_in(MemoryType::Stack);
    };
    const auto by_tokens = [&](Func &f) {
        f.bound(m.i, 0, C)
            .bound_extent(m.v, tile)
            .split(m.v, vx, vl, threads)
            .split(m.i, io, ii, token_threads)
            .reorder(io, vx, vl, ii)
            .unroll(vx)
            .unroll(io)
            .gpu_threads(vl, ii);
    };

    // ---- the inputs of the chunk's tokens
    by_tokens(alone ? among_tokens(m.channel_inputs) : staged(m.channel_inputs));
    if (m.element_inputs.defined()) {
        Var ri("ri"), ro("ro"), rx("rx");
        staged(m.element_inputs)
            .bound(m.r, 0, rows)
            .bound(m.i, 0, C)
            .fuse(m.r, m.i, ri)
            .split(ri, ro, rx, std::min(tile, rows * C), TailStrategy::GuardWithIf)
            .reorder(ro, rx, m.g)
            .unroll(ro)
            .gpu_threads(rx, m.g);
    }

    // ---- the state, and what becomes of it in the chunk: in registers, but see carry_registers.h
    const auto of_group = [&](Func &f) -> Func & {
        return f.store_in(MemoryType::Stack)
            .bound_extent(m.v, tile)
            .bound(m.r, 0, rows)
            .bound(m.g, 0, m.groups)
            .split(m.v, vx, vl, threads)
            .reorder(m.r, vx, vl, m.g)
            .unroll(m.r)
            .unroll(vx)
            .gpu_threads(vl, m.g);
    };
    // What a channel has for all tokens is read once, where its outputs are computed where it is kept.
    if (alone)
        for (Func &f : m.channel_constants) {
            f.compute_at(placed, vo).store_in(MemoryType::Stack).bound_extent(m.v, tile);
            f.split(m.v, vx, vl, threads).reorder(vx, vl).unroll(vx).gpu_threads(vl);
            m.kept.push_back(f);
        }
    if (m.rates.defined()) of_group(m.rates).compute_at(placed, vo);
    for (Func f : {m.state_before, m.state_after}) in_chunk(of_group(f)).store_at(placed, ni).fold_storage(m.c, 1);
    in_chunk(of_group(m.final_state_copy)).bound_extent(m.c, 1);
    in_chunk(of_group(m.scanned)).bound(m.i, 0, C).bound_extent(m.c, 1);
    m.scanned.reorder(m.r, m.i, vx, vl, m.g).unroll(m.i);
    m.scanned.update()
        .split(m.v, vx, vl, threads)
        .reorder(m.within.x, m.within.y, vx, vl, m.g)
        .unroll(m.within.x)
        .unroll(m.within.y)
        .unroll(vx)
        .gpu_threads(vl, m.g);
    if (m.decays.defined()) {
        m.decays.compute_at(m.scanned, vx).store_in(MemoryType::Register).bound(m.r, 0, rows).bound(m.i, 0, C);
        m.decays.unroll(m.r).unroll(m.i);
        // Token after token, each would wait for its own exponential; 6 % (H200). Halide's OpenCL has no selects of vectors.
        if (apart && shape.together > 1) m.decays.vectorize(m.i, shape.together);
    }

    // ---- the sums over groups, and the outputs
    among_tokens(m.group_reads)
        .bound(m.i, 0, C)
        .bound_extent(m.v, tile)
        .split(m.v, vx, vl, threads)
        .reorder(m.i, vx, vl, m.g)
        .unroll(m.i)
        .unroll(vx)
        .gpu_threads(vl, m.g);
    // Through shared memory, since Halide does not see that token t % C of a thread is one token.
    by_tokens(among_tokens(m.outputs));
    m.reads.compute_at(m.outputs, io).store_in(MemoryType::Register);
    if (apart) m.reads.update().unroll(m.over_groups);
}

}  // namespace halation
