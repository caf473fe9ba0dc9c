// The tensors of a GPU kernel, which serves all sequences of a call in one launch: its buffers have every dim of a tensor, B or N
// last, and a table says of each sequence where its tokens and its state lie (runtime/include/halation_kernels.h).
#ifndef HALATION_GENERATORS_BATCH_H
#define HALATION_GENERATORS_BATCH_H

#include <Halide.h>

#include <string>
#include <vector>

namespace halation {

// Facts about the sequence that the Var `h` of an algorithm stands for: h = sequence * value heads + value head.
struct Batch {
    Halide::Func sequences;                    // (field, sequence)
    Halide::Expr sequence_count, value_heads;  // value_heads undefined: there are no heads, h is the sequence
    Halide::Expr key_head_step, key_heads;     // value head g reads key head g / step % key_heads

    Halide::Expr sequence_of(const Halide::Expr &h) const;
    Halide::Expr value_head(const Halide::Expr &h) const;
    Halide::Expr key_head(const Halide::Expr &h) const;

    // Columns of the table.
    Halide::Expr batch(const Halide::Expr &h) const { return field(0, h); }        // index along B
    Halide::Expr first_token(const Halide::Expr &h) const { return field(1, h); }  // along T
    Halide::Expr tokens(const Halide::Expr &h) const { return field(2, h); }
    Halide::Expr read_row(const Halide::Expr &h) const { return field(3, h); }   // of the initial state; -1: zero
    Halide::Expr write_row(const Halide::Expr &h) const { return field(4, h); }  // of the final state; -1: not wanted
    Halide::Expr skipped(const Halide::Expr &h) const { return field(5, h) != 0; }
    Halide::Expr first_cached(const Halide::Expr &h) const { return field(6, h); }  // along S
    Halide::Expr cached(const Halide::Expr &h) const { return field(7, h); }

    // A tensor as the chunk algorithm asks for it: a Func of the dims of kernel_dims(dims), which finds the element in the buffer
    // of dims such as BTHK. Of dims such as BTV, without heads, h is the last coordinate. `initial_state`: the last coordinate is
    // the row that the state is read from, not the sequence's B.
    Halide::Func placed(const std::string &name, const std::string &dims, const Halide::Func &buffer,
                        const std::vector<Halide::Expr> &extents, bool initial_state = false) const;

    // What a kernel writes to o: (v,g,t,n), or (v,t,n) where there are no heads, n counting sequences. `rows` is (v,h,t) in
    // float32; skipped sequences get zeros. Marked, for the pass of carry_registers.h, with where the sequence lies in o.
    Halide::Func placed_output(const Halide::Func &rows, const Halide::Type &type, const Halide::Expr &value_dim,
                               const Halide::Expr &most_tokens) const;

private:
    Halide::Expr field(int column, const Halide::Expr &h) const { return sequences(column, sequence_of(h)); }
};

// The rank of a tensor's buffer, which has B or N.
int rank_in_batch(const std::string &dims);

// Such a buffer, a GeneratorInput or GeneratorOutput, begins at 0 and may have any strides.
template<typename AnyBuffer> void any_layout(AnyBuffer &buffer) {
    for (int dim = 0; dim < buffer.dimensions(); dim++) buffer.dim(dim).set_min(0);
    buffer.dim(0).set_stride(Halide::Expr());
}

// The same, and what its extents are.
template<typename AnyBuffer> std::vector<Halide::Expr> free_extents(AnyBuffer &buffer) {
    any_layout(buffer);
    std::vector<Halide::Expr> extents;
    for (int dim = 0; dim < buffer.dimensions(); dim++) extents.push_back(buffer.dim(dim).extent());
    return extents;
}

}  // namespace halation
#endif
