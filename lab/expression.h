// Halide expressions of a row, turned into functions of numbers.
#ifndef HALATION_LAB_EXPRESSION_H
#define HALATION_LAB_EXPRESSION_H

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace halation::lab {

// The value of an expression, given those of the row's inputs in the order of their names.
template<typename T> using Evaluator = std::function<T(const std::vector<T> &inputs)>;

// `expression` may have Variables of these names and no others. Throws std::invalid_argument naming what is not known here.
template<typename T> Evaluator<T> evaluator_of(const Halide::Expr &expression, const std::vector<std::string> &inputs);

}  // namespace halation::lab
#endif
