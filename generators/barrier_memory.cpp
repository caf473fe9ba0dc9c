#include "barrier_memory.h"

#include "needless_barriers.h"

#include <sstream>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

class BarrierMemory : public IRMutator {
    using IRMutator::visit;

    Expr visit(const Call *op) override {
        if (!op->is_intrinsic(Call::gpu_thread_barrier)) return IRMutator::visit(op);
        const auto ordered = op->args.size() == 1 ? as_const_int(op->args[0]) : std::nullopt;
        if (!ordered) {
            std::ostringstream text;
            text << "memory at barriers: what " << Expr(op) << " orders is not known; it must have one argument, a constant";
            throw CompileError(text.str());
        }
        const int kinds = static_cast<int>(*ordered) | CodeGen_GPU_Dev::Shared;
        return Call::make(op->type, Call::gpu_thread_barrier, {kinds}, op->call_type);
    }
};

}  // namespace

void add_barrier_passes(Pipeline pipeline) {
    pipeline.add_custom_lowering_pass(make_needless_barriers_pass());
    pipeline.add_custom_lowering_pass(make_barrier_memory_pass());
}

IRMutator *make_barrier_memory_pass() {
    return new BarrierMemory;
}

}  // namespace halation
