#include "batch.h"

#include "carry.h"
#include "math.h"
#include "row.h"

namespace halation {

using namespace Halide;

Expr Batch::sequence_of(const Expr &h) const {
    return unsafe_promise_clamped(value_heads.defined() ? h / value_heads : h, 0, sequence_count - 1);
}

Expr Batch::value_head(const Expr &h) const {
    return unsafe_promise_clamped(h % value_heads, 0, value_heads - 1);
}

Expr Batch::key_head(const Expr &h) const {
    return unsafe_promise_clamped((h % value_heads) / key_head_step % key_heads, 0, key_heads - 1);
}

Func Batch::placed(const std::string &name, const std::string &dims, const Func &buffer, const std::vector<Expr> &extents,
                   bool initial_state) const {
    const std::string letters = kernel_dims(dims);
    const Var d("d"), v("v"), h("h"), t("t"), s("s");
    std::vector<Var> point;
    std::vector<Expr> place;
    for (const char letter : letters) {
        switch (letter) {
        case 'K':
            point.push_back(d);
            place.push_back(d);
            break;
        case 'V':
            point.push_back(v);
            place.push_back(v);
            break;
        case 'G':
            point.push_back(h);
            place.push_back(value_head(h));
            break;
        case 'H':
            point.push_back(h);
            place.push_back(key_head(h));
            break;
        case 'T':
            point.push_back(t);
            // A sequence without tokens may lie at the end.
            place.push_back(clamp(first_token(h) + t, 0, extents[place.size()] - 1));
            break;
        case 'S':
            point.push_back(s);
            place.push_back(clamp(first_cached(h) + s, 0, extents[place.size()] - 1));
            break;
        default:
            throw CompileError("input '" + name + "' has dims " + dims + "; a GPU kernel knows B, N, T, S, H, G, K, V");
        }
    }
    if (dims[0] == 'B' || dims[0] == 'N') {
        const Expr row = initial_state ? max(read_row(h), 0) : batch(h);
        place.push_back(unsafe_promise_clamped(row, 0, extents.back() - 1));
        if (letters.find_first_of("GH") == std::string::npos) point.push_back(h);
    }
    Func f(name + "_placed");
    f(point) = buffer(place);
    return f;
}

Func Batch::placed_output(const Func &rows, const Type &type, const Expr &value_dim, const Expr &most_tokens) const {
    const Var v("v"), g("g"), t("t"), n("n");
    const bool heads = value_heads.defined();
    const Expr h = heads ? n * value_heads + g : Expr(n);
    std::vector<Var> point = {v, g, t, n};
    std::vector<Expr> place = {v, g, first_token(h) + t, batch(h)};
    if (!heads) point.erase(point.begin() + 1), place.erase(place.begin() + 1);
    const Expr value = bits_of(type, rows(v, h, t));
    Func placed("placed");
    placed(point) = mark_copy_out(select(skipped(h), cast(value.type(), 0), value), place, t < tokens(h));
    placed.bound(v, 0, value_dim).bound(t, 0, most_tokens);
    if (heads) placed.bound(g, 0, value_heads);
    return placed.bound(n, 0, sequence_count);
}

int rank_in_batch(const std::string &dims) {
    const bool rows = dims[0] == 'B' || dims[0] == 'N';
    return static_cast<int>(kernel_dims(dims).size()) + (rows ? 1 : 0);
}

}  // namespace halation
