#include "batch.h"

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

int rank_in_batch(const std::string &dims) {
    const bool rows = dims[0] == 'B' || dims[0] == 'N';
    return static_cast<int>(kernel_dims(dims).size()) + (rows ? 1 : 0);
}

}  // namespace halation
