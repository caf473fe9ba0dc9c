// The rows of the table that say where the sequences of a block lie (batch.h), in the block's shared memory: its threads copy
// them there at once. What a row says of the next sequence is then there without waiting for memory.
#ifndef HALATION_GENERATORS_SEQUENCE_TABLE_H
#define HALATION_GENERATORS_SEQUENCE_TABLE_H

#include <Halide.h>

#include <map>
#include <string>
#include <vector>

namespace halation {

class SequenceTable {
public:
    // `loop` goes over the sequences of a block, `most` at most. Throws Halide::CompileError where what its body takes from the
    // table is not a place that follows from the sequence alone.
    SequenceTable(const std::string &table, const Halide::Internal::For *loop, int most);

    // The loop's body, which takes from an array of rows what it took from the table. Those entries that the let `once` is
    // computed from are loaded once, at its beginning.
    Halide::Internal::Stmt body(const std::string &once);
    const std::string &rows() const { return rows_; }

    // After body(): floats of shared memory that the rows take; what a thread does so that they are there, after a barrier; and
    // code in which they are part of an array of shared memory, from `begin` on.
    int floats() const { return static_cast<int>(entries_.size()) * most_; }
    Halide::Internal::Stmt copy(const Halide::Expr &thread) const;
    static Halide::Internal::Stmt in_shared(const Halide::Internal::Stmt &s, const std::string &rows, const std::string &shared,
                                            const Halide::Expr &begin);

private:
    class FromRows;

    const std::string table_, rows_;
    const Halide::Internal::For *const loop_;
    const int most_;
    std::vector<Halide::Expr> entries_;  // places in the table; that of entry e of turn n is row e * most + n

    Halide::Expr row(size_t entry, const Halide::Expr &turn) const;
};

}  // namespace halation
#endif
