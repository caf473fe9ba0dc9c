// The feature maps phi of linear attention: elu+1 (arXiv:2006.16236), relu, softmax over the channels, identity.
#ifndef HALATION_GENERATORS_FEATURE_MAP_H
#define HALATION_GENERATORS_FEATURE_MAP_H

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace halation {

// Channel d of phi(x), where channel(d) gives x and K its number of channels; zero where not `real`. `point` are the Vars
// that say which vector x is. Funcs that have to be scheduled (maxima and sums over channels) are added to `helpers`.
Halide::Expr feature_map(const std::string &map, const std::string &name,
                         const std::function<Halide::Expr(Halide::Expr)> &channel, Halide::Expr d, Halide::Expr key_dim,
                         Halide::Expr real, const std::vector<Halide::Var> &point, std::vector<Halide::Func> *helpers);

}  // namespace halation
#endif
