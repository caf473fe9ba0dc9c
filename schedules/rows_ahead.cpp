#include "rows_ahead.h"

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int line_bytes = 64;
constexpr int short_call = 64;  // tokens

class AskAhead : public IRMutator {
public:
    explicit AskAhead(RowsAhead rows) : rows_(std::move(rows)) {}

private:
    using IRMutator::visit;

    const RowsAhead rows_;
    std::vector<const For *> loops_;  // around what is visited, the innermost last

    const For *loop_over(const std::string &var) const {
        for (const For *loop : loops_)
            if (ends_with(loop->name, "." + var)) return loop;
        return nullptr;
    }

    Stmt visit(const For *op) override {
        if (ends_with(op->name, "." + rows_.chunk_loop)) {
            const For *head = loop_over(rows_.head_loop), *tile = loop_over(rows_.tile_loop);
            if (!head || !tile) return op;
            std::vector<Stmt> body;
            for (const RowsAhead::Tensor &tensor : rows_.tensors) {
                const std::string &dims = tensor.dims;
                if (dims.find_first_of("KV") == 0 && dims.back() == 'T')
                    body.push_back(ask_for_tokens(tensor, *head, *tile, *op));
                if (dims == "VKG") body.push_back(ask_for_state(tensor, *head, *tile, *op));
            }
            body.push_back(op->body);
            return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api,
                             Block::make(body));
        }
        loops_.push_back(op);
        Stmt result = IRMutator::visit(op);
        loops_.pop_back();
        return result;
    }

    static Expr turn_of(const For &loop) { return Variable::make(Int(32), loop.name) - loop.min; }
    static Expr fact(const RowsAhead::Tensor &tensor, const char *what, size_t dim) {
        return Variable::make(Int(32), tensor.name + "." + what + "." + std::to_string(dim));
    }
    static Expr stride(const RowsAhead::Tensor &tensor, size_t dim) {
        return cast<int64_t>(fact(tensor, "stride", dim)) * tensor.bytes;
    }

    // A chunk's tokens of the next head, or, after the last, of the next call's first.
    Stmt ask_for_tokens(const RowsAhead::Tensor &tensor, const For &head, const For &tile, const For &chunks) const {
        const size_t time = tensor.dims.size() - 1;
        const Expr last = turn_of(head) == head.extent - 1;
        Expr offset = stride(tensor, time) * (turn_of(chunks) * rows_.chunk + select(last, fact(tensor, "extent", time), 0));
        for (size_t dim = 1; dim < time; dim++) offset += stride(tensor, dim) * select(last, 0, turn_of(head) + 1);
        return ask_for(tensor, tile, offset, stride(tensor, time), rows_.chunk);
    }

    // A part of the next head's state; after the last it may be that of the next sequence. Of a long call, whose heads come round
    // again from the second-level cache, nothing.
    Stmt ask_for_state(const RowsAhead::Tensor &tensor, const For &head, const For &tile, const For &chunks) const {
        const Expr shared_out = (fact(tensor, "extent", 1) + chunks.extent - 1) / chunks.extent;
        const Expr rows = select(chunks.extent * rows_.chunk <= short_call, shared_out, 0);
        const Expr offset = stride(tensor, 1) * (turn_of(chunks) * rows) + stride(tensor, 2) * (turn_of(head) + 1);
        return ask_for(tensor, tile, offset, stride(tensor, 1), rows);
    }

    // The tile's share of the lines of some rows.
    static Stmt ask_for(const RowsAhead::Tensor &tensor, const For &tile, const Expr &offset, const Expr &stride,
                        const Expr &rows) {
        const int per_line = line_bytes / tensor.bytes;
        const Expr lines = (fact(tensor, "extent", 0) + per_line - 1) / per_line;
        const Expr share = (lines + tile.extent - 1) / tile.extent;
        return Evaluate::make(Call::make(Int(32), "halation_ask_for_rows",
                                         {Variable::make(type_of<void *>(), tensor.name),
                                          offset + cast<int64_t>(turn_of(tile)) * share * line_bytes, stride, rows, share},
                                         Call::Extern));
    }
};

}  // namespace

IRMutator *make_rows_ahead_pass(const RowsAhead &rows) {
    return new AskAhead(rows);
}

}  // namespace halation
