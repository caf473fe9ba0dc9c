#include "schedules.h"

namespace halation {

using namespace Halide;

namespace {

using Loops = std::vector<VarOrRVar>;

class SoftmaxGpu {
public:
    explicit SoftmaxGpu(OnlineAttention &attention) : m(attention), shape_(attention.shape) {}

    void schedule(Func &placed) {
        outputs(placed);
        m.part_sums.store_in(MemoryType::Stack);
        tile_of_sums(m.part_sums);
        m.part_sums.bound_extent(m.part, 1);
        tile_of_sums(m.part_sums.update(), {m.over_blocks.x});
        m.skipped.emplace_back(m.over_blocks.x.name(), m.part_sums.name());
        weights();
        block_sums();
    }

private:
    OnlineAttention &m;
    const AttentionTile &shape_;
    bool in_parts() const { return shape_.most_parts > 0; }
    // A thread has queries beside each other, and keys, so that they come from shared memory four at a time.
    int queries_of_thread() const { return shape_.queries / shape_.rows; }
    int keys_of_thread() const { return shape_.keys / shape_.lanes; }
    Var iq_{"iq"}, iy_{"iy"}, jk_{"jk"}, jx_{"jx"};

    // In memory that a block of threads shares, for a block of keys.
    Func &shared(Func &f) {
        f.compute_at(m.part_sums, m.over_blocks.x).store_in(MemoryType::GPUShared).never_partition_all();
        return f;
    }

    // All threads take their share of a Func, whose elements they take in the order of the dims.
    void share_out(Func &f, const std::vector<Var> &dims) {
        Var all = dims[0];
        for (size_t k = 1; k < dims.size(); k++) {
            const Var fused("fused" + std::to_string(k));
            f.fuse(all, dims[k], fused);
            all = fused;
        }
        const Var turn("turn"), thread("thread"), ty("ty"), tx("tx");
        f.store_in(MemoryType::GPUShared)
            .never_partition_all()
            .split(all, turn, thread, shape_.lanes * shape_.rows, TailStrategy::GuardWithIf)
            .split(thread, ty, tx, shape_.lanes)
            .reorder(turn, tx, ty)
            .gpu_threads(tx, ty)
            .unroll(turn);
    }

    // ---- sums of value channels: a thread has one x
    void tile_of_sums(Stage s, const Loops &outer, const Loops &inner = {}) {
        s.split(m.i, iy_, iq_, queries_of_thread());
        Loops loops = {iq_};
        loops.insert(loops.end(), inner.begin(), inner.end());
        for (const Var &var : {m.x, iy_, m.y}) loops.push_back(var);
        loops.insert(loops.end(), outer.begin(), outer.end());
        s.reorder(loops).gpu_threads(m.x, iy_).unroll(iq_);
    }
    void tile_of_sums(Func &f) {
        f.never_partition_all()
            .bound(m.x, 0, shape_.lanes)
            .bound(m.i, 0, shape_.queries)
            .bound_extent(m.y, 1)
            .bound_extent(m.tile, 1);
        tile_of_sums(Stage(f), {});
    }

    void block_sums() {
        m.block_sums.compute_at(m.part_sums, m.over_blocks.x).store_in(MemoryType::Stack);
        tile_of_sums(m.block_sums);
        const int step = shape_.values;
        for (int update = 0; update < m.block_sums.num_update_definitions(); update++) {
            const std::string number = std::to_string(update);
            const RVar step_loop("step" + number), key("key" + number);
            Stage s = m.block_sums.update(update);
            s.split(m.over_values[static_cast<size_t>(update)].x, step_loop, key, step);
            tile_of_sums(s, {step_loop}, {key});
            s.unroll(key);
            if (m.block_sums.num_update_definitions() > 1) m.skipped.emplace_back(step_loop.name(), m.block_sums.name());
            if (!shape_.share_values) continue;
            Func &values = m.values[static_cast<size_t>(update)];
            values.compute_at(m.block_sums, step_loop)
                .bound(m.x, 0, shape_.lanes)
                .bound(m.e, 0, shape_.channels)
                .bound_extent(m.y, 1)
                .bound_extent(m.j, step);
            values.reorder_storage(m.e, m.x);
            share_out(values, {m.e, m.x, m.j});
            m.ahead.push_back({step_loop.name(), {values.name()}});
        }
    }

    // ---- scores and what becomes of them
    void tile_of_scores(Stage s, const Loops &outer = {}, const Loops &inner = {}) {
        s.split(m.j, jx_, jk_, keys_of_thread()).split(m.i, iy_, iq_, queries_of_thread());
        Loops loops = {jk_, iq_};
        loops.insert(loops.end(), inner.begin(), inner.end());
        for (const Var &var : {jx_, iy_}) loops.push_back(var);
        loops.insert(loops.end(), outer.begin(), outer.end());
        s.reorder(loops).gpu_threads(jx_, iy_).unroll(jk_).unroll(iq_);
    }
    Func &bounded(Func &f) { return f.bound(m.j, 0, shape_.keys).bound(m.i, 0, shape_.queries); }

    void weights() {
        const RVar slice("slice"), channel("channel");
        bounded(m.scores).compute_at(m.part_sums, m.over_blocks.x).store_in(MemoryType::Stack).never_partition_all();
        tile_of_scores(Stage(m.scores));
        Stage update = m.scores.update();
        update.split(m.over_keys.x, slice, channel, shape_.key_slice);
        tile_of_scores(update, {slice}, {channel});
        update.unroll(channel);
        // Rows are longer than what is used of them, so that threads that store key channels meet in few banks.
        for (const auto &[f, token, count, more] : {std::make_tuple(&m.queries, m.i, shape_.queries, queries_of_thread()),
                                                    std::make_tuple(&m.keys, m.j, shape_.keys, keys_of_thread())}) {
            f->compute_at(m.scores, slice)
                .reorder_storage(token, m.d)
                .bound(token, 0, count)
                .bound_extent(m.d, shape_.key_slice)
                .bound_storage(token, count + more);
            share_out(*f, {m.d, token});
        }
        m.ahead.push_back({slice.name(), {m.queries.name(), m.keys.name()}});
        maxima();
        Func &weights = bounded(shared(m.weights));
        weights.reorder_storage(m.i, m.j).bound_storage(m.i, shape_.queries + queries_of_thread());
        tile_of_scores(Stage(weights));
    }

    // The maximum of a query over a block of keys: of each thread's, then of all.
    void maxima() {
        const RVar mine("mine"), theirs("theirs");
        const Var lane("lane");
        Stage update = m.maxima.update();
        update.split(m.over_scores.x, theirs, mine, keys_of_thread());
        Func of_thread = update.rfactor(theirs, lane);
        Func handed = of_thread.in();
        shared(handed)
            .bound(lane, 0, shape_.lanes)
            .bound(m.i, 0, shape_.queries)
            .reorder_storage(lane, m.i)
            .bound_storage(lane, shape_.lanes + 1)
            .split(m.i, iy_, iq_, queries_of_thread())
            .reorder(iq_, lane, iy_)
            .gpu_threads(lane, iy_)
            .unroll(iq_);
        of_thread.compute_at(handed, iq_).store_in(MemoryType::Register);
        of_thread.update().unroll(mine);
        const int at_once = 16;
        if (shape_.lanes > at_once) {  // of one query
            const RVar group("group"), member("member");
            const Var g("g");
            Stage of_lanes = m.maxima.update();
            of_lanes.split(theirs, group, member, at_once);
            Func of_group = of_lanes.rfactor(group, g);
            Func handed_group = of_group.in();
            shared(handed_group).bound(g, 0, shape_.lanes / at_once).reorder(g, m.i).gpu_threads(g);
            of_group.compute_at(handed_group, g).store_in(MemoryType::Register);
        }
        Func all = m.maxima.in();
        const Var ix("ix");
        shared(all)
            .bound(m.i, 0, shape_.queries)
            .split(m.i, iy_, ix, shape_.lanes, TailStrategy::GuardWithIf)
            .gpu_threads(ix, iy_);
        m.maxima.compute_at(all, ix).store_in(MemoryType::Register);
    }

    // ---- where it all is computed
    // A block of threads has a tile of queries and value channels of a head.
    void outputs(Func &placed) {
        Var vo("vo"), vi("vi"), e("e"), tile("tile_loop"), ti("ti"), block("block"), g("g"), n("n");
        placed.never_partition_all()
            .split(m.v, vo, vi, shape_.value_channels(), TailStrategy::GuardWithIf)
            .split(vi, m.x, e, shape_.channels)
            .split(m.t, tile, ti, shape_.queries, TailStrategy::GuardWithIf)
            .split(ti, iy_, iq_, queries_of_thread())
            .reorder(e, iq_, m.x, iy_, vo, tile, g, n)
            .unroll(e)
            .unroll(iq_)
            .fuse(vo, tile, block)
            .gpu_blocks(block, g, n)
            .gpu_threads(m.x, iy_);
        Func &sums = in_parts() ? m.all_sums : m.part_sums;
        sums.compute_at(placed, block);
        if (in_parts()) parts();
    }

    // A block of threads has a part of the cache, too; what the parts give is put together in a launch of its own.
    void parts() {
        const Var block("block");
        Func parts = m.part_sums.in();
        parts.compute_root()
            .never_partition_all()
            .bound(m.x, 0, shape_.lanes)
            .bound(m.i, 0, shape_.queries)
            .split(m.i, iy_, iq_, queries_of_thread())
            .fuse(m.part, m.tile, block)
            .reorder(iq_, m.x, iy_, block, m.y, m.h)
            .unroll(iq_)
            .gpu_blocks(block, m.y, m.h)
            .gpu_threads(m.x, iy_);
        m.part_sums.compute_at(parts, block);
        m.all_sums.store_in(MemoryType::Stack);
        tile_of_sums(m.all_sums);
        const RVar some("some"), of_some("of_some");
        Stage update = m.all_sums.update();
        update.split(m.over_parts.x, some, of_some, shape_.parts_at_once);
        tile_of_sums(update, {some}, {of_some});
        update.unroll(of_some);
    }
};

}  // namespace

// Loops: sequence and head, tile of queries and of value channels, block of keys. Sums and scores are in registers; queries, keys
// and values go through shared memory a few channels or tokens at a time, so that any K and V fit.
void softmax_gpu(OnlineAttention &m, Func &placed) {
    SoftmaxGpu(m).schedule(placed);
}

}  // namespace halation
