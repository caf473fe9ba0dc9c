#include "bidirectional.h"

#include "feature_map.h"
#include "guard.h"
#include "math.h"

namespace halation {

using namespace Halide;

Expr TokenParts::tokens_in_part(const Expr &tokens) const {
    return max((tokens + least * most - 1) / (least * most), 1) * least;
}

Expr TokenParts::count() const {
    return min((most_tokens + least - 1) / least, most);
}

Expr TokenParts::clamped(const Expr &token) const {
    return clamp(token, 0, (most_tokens + at_once - 1) / at_once * at_once - 1);
}

namespace {

class BidirectionalBuilder {
public:
    explicit BidirectionalBuilder(const BidirectionalInputs &in) : in_(in) {}

    Bidirectional build() {
        vectors();
        sums();
        outputs();
        return m_;
    }

private:
    const BidirectionalInputs &in_;
    Bidirectional m_;

    bool normalized() const { return in_.feature_map != "identity"; }

    void vectors() {
        const Var &t = m_.t, &d = m_.d, &v = m_.v, &h = m_.h;
        const Expr nearest = min(t, in_.tokens - 1), real = likely(d < in_.key_dim) && t < in_.tokens;
        const auto channel = [&](const Func &tensor) {
            return [&](Expr at) {
                const Expr load = tensor(within(at, in_.key_dim), h, nearest);
                return float_of_bits(in_.type, guarded(likely(at < in_.key_dim), load));
            };
        };
        const std::string &map = in_.feature_map;
        m_.queries = Func("queries");
        m_.queries(d, t, h) = feature_map(map, "q_feature", channel(in_.q), d, in_.key_dim, real, {t, h}, &m_.features);
        m_.keys = Func("keys");
        m_.keys(d, t, h) = feature_map(map, "k_feature", channel(in_.k), d, in_.key_dim, real, {t, h}, &m_.features);
        Expr inside = likely(v < in_.value_dim);
        if (in_.parts) inside = inside && t < in_.tokens;
        m_.values = Func("values");
        m_.values(v, t, h) =
            float_of_bits(in_.type, guarded(inside, in_.v(within(v, in_.value_dim), h, in_.parts ? nearest : Expr(t))));
    }

    // What the sums over tokens are of, at state_tokens.
    Expr key() const {
        if (!in_.parts) return m_.keys(m_.d, m_.state_tokens.x, m_.h);
        return m_.part_keys(m_.d, m_.state_tokens.x, m_.state_tokens.y, m_.part, m_.h);
    }
    Expr value() const {
        if (!in_.parts) return m_.values(m_.v, m_.state_tokens.x, m_.h);
        return m_.part_values(m_.v, m_.state_tokens.x, m_.state_tokens.y, m_.part, m_.h);
    }

    void tokens() {
        if (!in_.parts) {
            m_.state_tokens = RDom(0, in_.tokens, "token");
            return;
        }
        const TokenParts &parts = *in_.parts;
        const Var &i = m_.i, &turn = m_.turn, &part = m_.part, &h = m_.h;
        const Expr at_once = parts.at_once, in_part = parts.tokens_in_part(in_.tokens);
        const auto first = [&](const Expr &turn) { return part * in_part + turn * at_once; };
        const Expr token = parts.clamped(first(turn) + i);
        m_.part_keys = Func("part_keys");
        m_.part_keys(m_.d, i, turn, part, h) = m_.keys(m_.d, token, h);
        m_.part_values = Func("part_values");
        m_.part_values(m_.v, i, turn, part, h) = m_.values(m_.v, token, h);
        m_.state_tokens = RDom(0, at_once, 0, parts.tokens_in_part(parts.most_tokens) / at_once, "token");
        m_.state_tokens.where(m_.state_tokens.y < in_part / at_once);
        m_.state_tokens.where(first(m_.state_tokens.y) < in_.tokens);
        m_.over_parts = RDom(0, parts.count(), "over_parts");
    }

    // The sum of a term over all tokens, at `point` and h.
    Func summed(const std::string &name, const std::vector<Var> &point, const Expr &term, Func *parts) {
        const auto at = [&](const std::vector<Expr> &others) {
            std::vector<Expr> all(point.begin(), point.end());
            all.insert(all.end(), others.begin(), others.end());
            return all;
        };
        Func sum(name);
        if (!in_.parts) {
            sum(at({m_.h})) += term;
            return sum;
        }
        *parts = Func(name + "_parts");
        (*parts)(at({m_.part, m_.h})) += term;
        // Beyond K not even a value that is no number may be there: it would meet a query that is 0.
        sum(at({m_.h})) += select(m_.d < in_.key_dim, (*parts)(at({m_.over_parts, m_.h})), 0.0f);
        return sum;
    }

    void sums() {
        tokens();
        m_.state = summed("state", {m_.v, m_.d}, key() * value(), &m_.state_parts);
        if (normalized()) m_.normalizer = summed("normalizer", {m_.d}, key(), &m_.normalizer_parts);
    }

    void outputs() {
        const Var &t = m_.t, &v = m_.v, &h = m_.h;
        const Expr slice = in_.key_slice;
        m_.over_keys = RDom(0, in_.key_slice == 1 ? in_.key_dim : (in_.key_dim + slice - 1) / slice * slice, "key");
        m_.output_sums = Func("output_sums");
        m_.output_sums(v, t, h) += m_.queries(m_.over_keys, t, h) * m_.state(v, m_.over_keys, h);
        Expr result = m_.output_sums(v, t, h);
        if (normalized()) {
            m_.denominators = Func("denominators");
            m_.denominators(t, h) += m_.queries(m_.over_keys, t, h) * m_.normalizer(m_.over_keys, h);
            result = quotient(result, m_.denominators(t, h));
        }
        m_.output = Func("output");
        m_.output(v, h, t) = narrowed(in_.output_type, in_.scale * result);
    }
};

}  // namespace

Bidirectional make_bidirectional(const BidirectionalInputs &inputs) {
    return BidirectionalBuilder(inputs).build();
}

}  // namespace halation
