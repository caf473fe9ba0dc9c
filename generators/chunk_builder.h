// The parts of the algorithm inside one chunk, shared by the ways to get from chunk to chunk: carrying the state
// (chunk.cpp) or products with all earlier chunks (parallel.cpp).
#ifndef HALATION_GENERATORS_CHUNK_BUILDER_H
#define HALATION_GENERATORS_CHUNK_BUILDER_H

#include "chunk.h"

namespace halation {

class ChunkBuilder {
protected:
    using Expr = Halide::Expr;
    using Func = Halide::Func;

    ChunkBuilder(const Row &row, const ChunkInputs &in);

    const Row &row_;
    const ChunkInputs &in_;
    Chunk m_;

    // In this order.
    void token_vectors();
    void decays();
    void products();
    void vectors_at_the_ends();
    void normalizer();
    // After the form has said what `solved` is.
    void values_written();

    bool head_decay() const { return row_.log_decay_per_head || row_.decay_per_head; }
    // Whether reader r sees the state before its own token's decay.
    Expr exclusive(Expr r) const;

    // Whether there is a triangular solve inside a chunk, and the type that it is done in.
    bool solves() const { return m_.readers == 2 && m_.chunk > 1; }
    Halide::Type solve_type() const;
    // In float, where there is no double: the products that the solve is of are sums of two floats.
    bool solves_in_pairs() const { return solves() && in_.solve_type == Halide::Float(32); }
    // product(reader, writer)_ij, of the solve's type for reader 1.
    Expr product(int reader, Expr w, Expr j, Expr i, Expr c) const;
    // product(1, writer)_ij times x, for the solve.
    Expr solve_term(Expr w, Expr j, Expr i, Expr c, Expr x) const;

    // Decays per head are factors of finished sums; per key channel they go into the vectors that are summed. These are
    // 1 where the row has no such decay.
    Expr head_factor(const Func &decay, Expr i) const;
    Expr value_factor(const Func &decay, Expr v, Expr i) const;
    // P_i or E_i of the decays per head and value channel, for reader r.
    Expr reader_factor(Expr v, Expr r, Expr i) const;
    // L(j,i) or L(j,i-1) of the decays per value channel.
    Expr value_between(Expr v, Expr r, Expr j, Expr i, Expr c) const;
    // The state after all decays of a chunk.
    Expr decayed_by_chunk(Expr state, Expr v, Expr d, Expr c) const;
    // z after all chunks.
    Expr last_normalizer(Expr d) const;
    // o from the sum over the state: divided by q^T z in normalized rows.
    Expr normalized(Expr sum, Expr i, Expr c) const;

    // Where the final state lies in the outputs, whether it is wanted, and after which chunk: of many sequences, each has one of
    // its own.
    std::vector<Expr> final_place(std::vector<Expr> channels) const;
    Expr wanted(Expr inside) const;
    Expr last_chunk() const;

    // The initial state and normaliser, zero beyond their last channels.
    Expr initial_state(Expr v, Expr d) const;
    Expr initial_normalizer(Expr d) const;

private:
    DecayFuncs decay_chain(const std::string &prefix, const std::vector<Expr> &lead, Expr log_decay, Expr decay);
    // The sum over key channels of reader r with the writers, and what is left of it where it is seen: one value, or a pair.
    std::vector<Expr> masked_product(int r, Func &sums, Halide::RDom &keys);
    // The value of a row's expression at token i of chunk c; `padding` beyond the last token and the last channel.
    Expr at_token(const TokenExpr &expr, Expr d, Expr v, Expr i, float padding = 0.0f) const;
    // The same with the feature map applied, for q and k.
    Expr feature_at_token(const std::string &name, const TokenExpr &expr, Halide::Var d, Halide::Var i);
};

}  // namespace halation
#endif
