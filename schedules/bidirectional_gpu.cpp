#include "schedules.h"

namespace halation {

using namespace Halide;

namespace {

using Loops = std::vector<VarOrRVar>;

class BidirectionalGpu {
public:
    BidirectionalGpu(Bidirectional &bidirectional, const GpuMachine &machine) : m(bidirectional), tile_(machine.product) {}

    void schedule(Func &placed) {
        for (Func &f : m.features) by_lanes(f);
        if (m.normalizer.defined()) {
            normalizer();
            by_lanes(m.denominators);
        }
        state();
        outputs(placed);
    }

private:
    Bidirectional &m;
    const ProductTile &tile_;
    Func state_;  // where it is kept
    Var block_{"block"}, iq_{"iq"}, iy_{"iy"}, jk_{"jk"}, jx_{"jx"};

    int rows_of_thread() const { return tile_.rows / tile_.row_threads; }
    int columns_of_thread() const { return tile_.columns / tile_.column_threads; }
    int threads() const { return tile_.row_threads * tile_.column_threads; }

    // ---- a tile of products, of rows and of value channels, summed a slice at a time
    void tile_of_products(Stage s, const Var &row, const Loops &outer = {}, const Loops &inner = {}) {
        s.split(row, iy_, iq_, rows_of_thread()).split(m.v, jx_, jk_, columns_of_thread());
        Loops loops = {jk_, iq_};
        loops.insert(loops.end(), inner.begin(), inner.end());
        for (const Var &var : {jx_, iy_}) loops.push_back(var);
        loops.insert(loops.end(), outer.begin(), outer.end());
        s.reorder(loops).gpu_threads(jx_, iy_).unroll(jk_).unroll(iq_);
    }
    void sums(Func &f, const Var &row, const RVar &slice, const RVar &in_slice) {
        f.store_in(MemoryType::Stack).never_partition_all().bound_extent(m.v, tile_.columns).bound_extent(row, tile_.rows);
        tile_of_products(Stage(f), row);
        Stage update = f.update();
        tile_of_products(update, row, {slice}, {in_slice});
        update.never_partition_all().unroll(in_slice, 4);
    }

    // What a slice of the sum needs, in memory that a block of threads shares: all take their part of it, in the order of dims.
    void staged(Func f, Func &sums, const RVar &slice, const Var &fast, int fast_extent, const Var &slow, int slow_extent) {
        const Var all("all"), once("once"), thread("thread"), ty("ty"), tx("tx");
        f.compute_at(sums, slice)
            .store_in(MemoryType::GPUShared)
            .never_partition_all()
            .bound_extent(fast, fast_extent)
            .bound_extent(slow, slow_extent)
            .fuse(fast, slow, all)
            .split(all, once, thread, threads(), TailStrategy::GuardWithIf)
            .split(thread, ty, tx, tile_.column_threads)
            .reorder(once, tx, ty)
            .gpu_threads(tx, ty)
            .unroll(once);
    }

    // ---- the state: a block has a tile of one part, and a launch of its own sums the parts
    void state() {
        Func parts = m.state_parts.in();
        const Var vo("vo"), vi("vi"), dk("do"), di("di"), channels("channels");
        parts.compute_root()
            .never_partition_all()
            .split(m.v, vo, vi, tile_.columns, TailStrategy::RoundUp)
            .split(vi, jx_, jk_, columns_of_thread())
            .split(m.d, dk, di, tile_.rows, TailStrategy::RoundUp)
            .split(di, iy_, iq_, rows_of_thread())
            .reorder(jk_, iq_, jx_, iy_, vo, dk, m.part, m.h)
            .unroll(jk_)
            .unroll(iq_)
            .fuse(vo, dk, channels)
            .fuse(channels, m.part, block_)
            .gpu_blocks(block_, m.h)
            .gpu_threads(jx_, iy_);
        m.state_parts.compute_at(parts, block_);
        const RVar token = m.state_tokens.x, turn = m.state_tokens.y;
        sums(m.state_parts, m.d, turn, token);
        m.skipped.emplace_back(turn.name(), m.state_parts.name());
        Func keys = m.part_keys.in(m.state_parts);
        staged(keys, m.state_parts, turn, m.d, tile_.rows, m.i, tile_.slice);
        staged(m.part_values, m.state_parts, turn, m.v, tile_.columns, m.i, tile_.slice);
        m.ahead.push_back({turn.name(), {keys.name(), m.part_values.name()}});

        Func all = m.state.in();
        all.compute_root()
            .never_partition_all()
            .split(m.v, vo, vi, tile_.columns, TailStrategy::RoundUp)
            .reorder(vi, vo, m.d, m.h)
            .fuse(vo, m.d, block_)
            .gpu_blocks(block_, m.h)
            .gpu_threads(vi);
        m.state.compute_at(all, vi).store_in(MemoryType::Register);
        state_ = all;
    }

    void normalizer() {
        const Var dk("do"), di("di");
        Func parts = m.normalizer_parts.in();
        parts.compute_root()
            .never_partition_all()
            .split(m.d, dk, di, tile_.rows, TailStrategy::RoundUp)
            .reorder(di, dk, m.part, m.h)
            .fuse(dk, m.part, block_)
            .gpu_blocks(block_, m.h)
            .gpu_threads(di);
        m.normalizer_parts.compute_at(parts, di).store_in(MemoryType::Register);
        m.normalizer_parts.update().never_partition_all().unroll(m.state_tokens.x);
        Func all = m.normalizer.in();
        all.compute_root()
            .never_partition_all()
            .split(m.d, dk, di, tile_.rows, TailStrategy::RoundUp)
            .reorder(di, dk, m.h)
            .gpu_blocks(dk, m.h)
            .gpu_threads(di);
        m.normalizer.compute_at(all, di).store_in(MemoryType::Register);
    }

    // Of a token, a sum or maximum over key channels: a row of threads goes through them side by side.
    void by_lanes(Func &f) {
        const int lanes = tile_.column_threads, tokens = tile_.row_threads;
        const Var lane("lane"), ti("ti");
        const RVar over(f.update().get_schedule().rvars()[0].var), turn("turn"), mine("mine");
        f.update().split(over, turn, mine, lanes, TailStrategy::GuardWithIf);
        Func of_lane = f.update().rfactor(mine, lane);
        Func handed = of_lane.in(), all = f.in();
        all.compute_root()
            .never_partition_all()
            .split(m.t, block_, ti, tokens, TailStrategy::GuardWithIf)
            .reorder(ti, block_, m.h)
            .gpu_blocks(block_, m.h)
            .gpu_threads(ti);
        f.compute_at(all, ti).store_in(MemoryType::Register);
        handed.compute_at(all, block_)
            .store_in(MemoryType::GPUShared)
            .bound(lane, 0, lanes)
            .bound_extent(m.t, tokens)
            .reorder(lane, m.t)
            .gpu_threads(lane, m.t);
        of_lane.compute_at(handed, lane).store_in(MemoryType::Register);
    }

    // ---- the outputs: a block has a tile of tokens
    void outputs(Func &placed) {
        const Var vo("vo"), vi("vi"), tile("tile"), ti("ti"), g("g"), n("n");
        placed.never_partition_all()
            .split(m.v, vo, vi, tile_.columns, TailStrategy::GuardWithIf)
            .split(vi, jx_, jk_, columns_of_thread())
            .split(m.t, tile, ti, tile_.rows, TailStrategy::GuardWithIf)
            .split(ti, iy_, iq_, rows_of_thread())
            .reorder(jk_, iq_, jx_, iy_, vo, tile, g, n)
            .unroll(jk_)
            .unroll(iq_)
            .fuse(vo, tile, block_)
            .gpu_blocks(block_, g, n)
            .gpu_threads(jx_, iy_);
        m.output_sums.compute_at(placed, block_);
        const RVar slice("slice"), channel("channel");
        m.output_sums.update().split(m.over_keys.x, slice, channel, tile_.slice);
        sums(m.output_sums, m.t, slice, channel);
        Func queries = m.queries.in(m.output_sums), state = state_.in(m.output_sums);
        staged(queries, m.output_sums, slice, m.d, tile_.slice, m.t, tile_.rows);
        // Rows are longer than what is used of them, so that threads that store key channels meet in few banks; by four floats,
        // which are loaded at once.
        queries.reorder_storage(m.t, m.d).bound_storage(m.t, tile_.rows + 4);
        staged(state, m.output_sums, slice, m.v, tile_.columns, m.d, tile_.slice);
        m.ahead.push_back({slice.name(), {queries.name(), state.name()}});
    }
};

}  // namespace

// Loops of the state: head, part of the tokens, tile of the state, tokens; of the outputs: head, tile of outputs, key channels. A
// block has a tile, whose sums are in the registers of its threads; what they are sums of goes through shared memory a few tokens
// or channels at a time, so that any K and V fit.
void bidirectional_gpu(Bidirectional &m, Func &placed, const GpuMachine &machine) {
    BidirectionalGpu(m, machine).schedule(placed);
}

}  // namespace halation
