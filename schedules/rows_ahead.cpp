#include "rows_ahead.h"

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int line_bytes = 64;

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
            for (const RowsAhead::Tensor &tensor : rows_.tensors)
                if (tensor.dims.find_first_of("KV") == 0 && tensor.dims.back() == 'T')
                    body.push_back(ask_for(tensor, *head, *tile, Variable::make(Int(32), op->name)));
            body.push_back(op->body);
            return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api,
                             Block::make(body));
        }
        loops_.push_back(op);
        Stmt result = IRMutator::visit(op);
        loops_.pop_back();
        return result;
    }

    Stmt ask_for(const RowsAhead::Tensor &tensor, const For &head, const For &tile, const Expr &chunk) const {
        const auto fact = [&](const char *what, size_t dim) {
            return Variable::make(Int(32), tensor.name + "." + what + "." + std::to_string(dim));
        };
        const auto in_bytes = [&](const Expr &elements) { return cast<int64_t>(elements) * tensor.bytes; };
        const size_t time = tensor.dims.size() - 1;
        const Expr lines = (fact("extent", 0) * tensor.bytes + line_bytes - 1) / line_bytes;
        const Expr share = (lines + tile.extent - 1) / tile.extent, this_tile = Variable::make(Int(32), tile.name) - tile.min;
        const Expr this_head = Variable::make(Int(32), head.name), last = this_head == head.min + head.extent - 1;
        const Expr row = chunk * rows_.chunk + select(last, fact("extent", time), 0);
        Expr offset = cast<int64_t>(this_tile * share * line_bytes) + in_bytes(fact("stride", time)) * row;
        for (size_t dim = 1; dim < time; dim++) offset += in_bytes(fact("stride", dim)) * select(last, head.min, this_head + 1);
        return Evaluate::make(Call::make(
            Int(32), "halation_ask_for_rows",
            {Variable::make(type_of<void *>(), tensor.name), offset, in_bytes(fact("stride", time)), rows_.chunk, share},
            Call::Extern));
    }
};

}  // namespace

IRMutator *make_rows_ahead_pass(const RowsAhead &rows) {
    return new AskAhead(rows);
}

}  // namespace halation
