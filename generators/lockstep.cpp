#include "lockstep.h"

#include <algorithm>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

void Lockstep::set(const std::string &name, const Expr &e) {
    const std::optional<Sum> known = sum(e);
    if (known)
        names_[name] = *known;
    else
        set_unknown(name);
}

void Lockstep::set_unknown(const std::string &name) {
    names_[name] = {Values(threads_, 0), {{name + "#" + std::to_string(++unknowns_), 1}}};
}

std::optional<Lockstep::Values> Lockstep::value(const Expr &e) const {
    std::optional<Sum> known = sum(e);
    if (!known || !known->unknown.empty()) return {};
    return std::move(known->known);
}

// Of two operands that are known.
template<typename Node, typename Of> std::optional<Lockstep::Sum> Lockstep::each(const Expr &e, Of of) const {
    std::optional<Values> x = value(e.as<Node>()->a);
    if (!x) return {};
    const std::optional<Values> y = value(e.as<Node>()->b);
    if (!y) return {};
    for (size_t thread = 0; thread < threads_; thread++) (*x)[thread] = of((*x)[thread], (*y)[thread]);
    return Sum{std::move(*x), {}};
}

std::optional<Lockstep::Sum> Lockstep::product(Sum a, const Sum &b) const {
    if (!b.unknown.empty()) return a.unknown.empty() ? product(b, a) : std::nullopt;
    const int64_t first = b.known.front();
    if (!a.unknown.empty() && std::any_of(b.known.begin(), b.known.end(), [&](int64_t v) { return v != first; })) return {};
    for (size_t thread = 0; thread < threads_; thread++) a.known[thread] *= b.known[thread];
    for (auto &[name, times] : a.unknown) times *= first;
    if (first == 0) a.unknown.clear();
    return a;
}

std::optional<Lockstep::Sum> Lockstep::sum(const Expr &e) const {
    using I = int64_t;
    if (const auto constant = as_const_int(e)) return Sum{Values(threads_, *constant), {}};
    if (const auto constant = as_const_uint(e)) return Sum{Values(threads_, static_cast<I>(*constant)), {}};
    // Indices are 32 bits wide and do not wrap; what is narrower or unsigned may.
    if (!e.type().is_scalar() || !(e.type().is_bool() || (e.type().is_int() && e.type().bits() >= 32))) return {};
    switch (e.node_type()) {
    case IRNodeType::Variable: {
        const auto known = names_.find(e.as<Variable>()->name);
        return known == names_.end() ? Sum{Values(threads_, 0), {{e.as<Variable>()->name, 1}}} : known->second;
    }
    case IRNodeType::Add:
    case IRNodeType::Sub: {
        const bool add = e.node_type() == IRNodeType::Add;
        std::optional<Sum> a = sum(add ? e.as<Add>()->a : e.as<Sub>()->a);
        if (!a) return {};
        const std::optional<Sum> b = sum(add ? e.as<Add>()->b : e.as<Sub>()->b);
        if (!b) return {};
        for (size_t thread = 0; thread < threads_; thread++) a->known[thread] += add ? b->known[thread] : -b->known[thread];
        for (const auto &[name, times] : b->unknown)
            if ((a->unknown[name] += add ? times : -times) == 0) a->unknown.erase(name);
        return a;
    }
    case IRNodeType::Mul: {
        std::optional<Sum> a = sum(e.as<Mul>()->a);
        if (!a) return {};
        const std::optional<Sum> b = sum(e.as<Mul>()->b);
        return b ? product(std::move(*a), *b) : std::nullopt;
    }
    case IRNodeType::Div:
        return each<Div>(e, [](I a, I b) { return div_imp(a, b); });
    case IRNodeType::Mod:
        return each<Mod>(e, [](I a, I b) { return mod_imp(a, b); });
    case IRNodeType::Min:
        return each<Min>(e, [](I a, I b) { return std::min(a, b); });
    case IRNodeType::Max:
        return each<Max>(e, [](I a, I b) { return std::max(a, b); });
    case IRNodeType::EQ:
        return each<EQ>(e, [](I a, I b) { return I(a == b); });
    case IRNodeType::NE:
        return each<NE>(e, [](I a, I b) { return I(a != b); });
    case IRNodeType::LT:
        return each<LT>(e, [](I a, I b) { return I(a < b); });
    case IRNodeType::LE:
        return each<LE>(e, [](I a, I b) { return I(a <= b); });
    case IRNodeType::GT:
        return each<GT>(e, [](I a, I b) { return I(a > b); });
    case IRNodeType::GE:
        return each<GE>(e, [](I a, I b) { return I(a >= b); });
    case IRNodeType::And:
        return each<And>(e, [](I a, I b) { return I(a && b); });
    case IRNodeType::Or:
        return each<Or>(e, [](I a, I b) { return I(a || b); });
    case IRNodeType::Not: {
        std::optional<Values> a = value(e.as<Not>()->a);
        if (!a) return {};
        for (I &v : *a) v = !v;
        return Sum{std::move(*a), {}};
    }
    case IRNodeType::Let: {
        const auto *let = e.as<Let>();
        Lockstep inside = *this;  // rare: most lets are around an expression, not in it
        inside.set(let->name, let->value);
        return inside.sum(let->body);
    }
    case IRNodeType::Call:
        if (const Call *tag = Call::as_tag(e)) return sum(tag->args[0]);  // likely(), which says nothing of the value
        return {};
    default:
        return {};
    }
}

std::vector<bool> Lockstep::may_hold(const Expr &condition) const {
    const auto *both = condition.as<And>();
    const auto *either = condition.as<Or>();
    if (both || either) {
        std::vector<bool> a = may_hold(both ? both->a : either->a);
        const std::vector<bool> b = may_hold(both ? both->b : either->b);
        for (size_t thread = 0; thread < threads_; thread++) a[thread] = both ? a[thread] && b[thread] : a[thread] || b[thread];
        return a;
    }
    std::vector<bool> holds(threads_, true);
    if (const std::optional<Values> known = value(condition))
        std::transform(known->begin(), known->end(), holds.begin(), [](int64_t v) { return v != 0; });
    return holds;
}

}  // namespace halation
