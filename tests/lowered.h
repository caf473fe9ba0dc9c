// Lowered statements of Halide's, and what they come to where the integers in them are known: loops are gone through turn by
// turn, with the lets around. Loads and stores are left alone.
#ifndef HALATION_TESTS_LOWERED_H
#define HALATION_TESTS_LOWERED_H

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace lowered {

// The kernel of a variant, given in the words of `halation_generate kernel`, after all passes.
Halide::Internal::Stmt kernel(const std::string &words);

// By name; those of buffers are q.extent.0, q.stride.1, q.min.2, without the number that Halide gives to a second of a name.
using Values = std::map<std::string, int64_t>;

// Of a scalar, with division as Halide's: rounded down, by zero 0. Nothing where something in it has no value.
std::optional<int64_t> value_of(const Halide::Expr &e, const Values &values);

// Lane i of a vector.
Halide::Expr lane(const Halide::Expr &e, int i);

// Calls visit(s, values) for every Evaluate and Store that is reached, as often as it is. Loops of which it is not known how
// often they run, and those that `skipped` takes, are not gone through; where it is not known which way a condition goes, both
// are.
void each_reached(const Halide::Internal::Stmt &s, const Values &values,
                  const std::function<void(const Halide::Internal::Stmt &, const Values &)> &visit,
                  const std::function<bool(const std::string &loop)> &skipped = nullptr);

}  // namespace lowered
#endif
