#include "state_bits.h"

#include "math.h"

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// Guards of loads stay branches, as they are where float32 is loaded. Were the value chosen by select, LLVM would compare the
// rows of a thread with K as one vector of bits, which stores are guarded by, too, and of which LLVM 15, in PoCL, reads a wrong
// one where it has been kept across a barrier.
class AsBits : public IRMutator {
public:
    explicit AsBits(const StateBits &bits) : bits_(bits) {}

    bool met = false;  // a load or store of a state

private:
    using IRMutator::visit;

    const StateBits &bits_;

    Expr visit(const Load *op) override {
        if (op->name != bits_.initial_state) return IRMutator::visit(op);
        if (!op->type.is_scalar()) throw CompileError("a thread's loads of the initial state must be scalars");
        met = true;
        const Expr bits = Load::make(UInt(16), bits_.initial_state_bits, mutate(op->index), Buffer<>(), Parameter(), const_true(),
                                     ModulusRemainder());
        return float_of_bits(BFloat(16), bits);
    }

    Stmt visit(const Store *op) override {
        if (op->name != bits_.final_state) return IRMutator::visit(op);
        met = true;
        return Store::make(bits_.final_state_bits, bits_of(BFloat(16), mutate(op->value)), mutate(op->index), Parameter(),
                           mutate(op->predicate), op->alignment);
    }
};

Stmt either(const Stmt &s, const StateBits &bits, const Expr &is_bits, const std::string &missing) {
    if (!is_bits.defined()) return s;
    AsBits as_bits(bits);
    const Stmt of_bits = as_bits.mutate(s);
    if (!as_bits.met) throw CompileError("states of bfloat16: nothing " + missing);
    return IfThenElse::make(is_bits != 0, of_bits, s);
}

}  // namespace

Stmt read_either(const Stmt &loads, const StateBits &bits) {
    return either(loads, bits, bits.reads_bits, "loads " + bits.initial_state + " before the first chunk");
}

Stmt write_either(const Stmt &stores, const StateBits &bits) {
    return either(stores, bits, bits.writes_bits, "stores " + bits.final_state + " after the last chunk");
}

}  // namespace halation
