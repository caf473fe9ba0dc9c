#include "feature_map.h"

#include "math.h"

#include <limits>

namespace halation {

using namespace Halide;

Expr feature_map(const std::string &map, const std::string &name, const std::function<Expr(Expr)> &channel, Expr d, Expr key_dim,
                 Expr real, const std::vector<Var> &point, std::vector<Func> *helpers) {
    const Expr x = channel(d);
    if (map.empty() || map == "identity") return select(real, x, 0.0f);
    if (map == "relu") return select(!real, 0.0f, not_a_number(x), x, max(x, 0.0f));
    if (map == "elu+1") return select(!real, 0.0f, not_a_number(x), x, x > 0.0f, x + 1.0f, natural_exp(min(x, 0.0f)));
    if (map != "softmax") throw CompileError("no feature map '" + map + "'; there are: elu+1, relu, softmax, identity");
    const RDom k(0, key_dim, name + "_channel");
    Func maxima(name + "_max"), sums(name + "_sum");
    maxima(point) = std::numeric_limits<float>::lowest();
    maxima(point) = max(maxima(point), channel(k));
    const std::vector<Expr> at(point.begin(), point.end());
    sums(point) += natural_exp(channel(k) - maxima(at));
    helpers->push_back(maxima);
    helpers->push_back(sums);
    return select(real, natural_exp(x - maxima(at)) / sums(at), 0.0f);
}

}  // namespace halation
