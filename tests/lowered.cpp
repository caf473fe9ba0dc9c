#include "lowered.h"

#include "generators/recurrence.h"
#include "generators/variant.h"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace lowered {

using namespace Halide;
using namespace Halide::Internal;

namespace {

int64_t divided(int64_t a, int64_t b) {
    if (b == 0) return 0;
    int64_t quotient = a / b;
    if (a - quotient * b < 0) quotient += b > 0 ? -1 : 1;  // the remainder is never negative
    return quotient;
}

template<typename Op> std::optional<int64_t> both(const Op *op, const Values &values, int64_t (*f)(int64_t, int64_t)) {
    const auto a = value_of(op->a, values), b = value_of(op->b, values);
    if (!a || !b) return std::nullopt;
    const int64_t result = f(*a, *b);
    // Which a kernel may not rely on: Halide tells LLVM that it does not happen.
    if (op->type == Int(32) && result != static_cast<int32_t>(result)) throw InternalError("an int32 overflows");
    return result;
}

class Reached : public IRVisitor {
public:
    Reached(const Values &values, const std::function<void(const Stmt &, const Values &)> &found,
            const std::function<bool(const std::string &)> &skipped)
        : values_(values), found_(found), skipped_(skipped) {}

private:
    using IRVisitor::visit;

    Values values_;
    const std::function<void(const Stmt &, const Values &)> &found_;
    const std::function<bool(const std::string &)> &skipped_;

    // With a name that has another value, or none, meanwhile.
    template<typename Inside> void with(const std::string &name, std::optional<int64_t> value, Inside inside) {
        const auto before = values_.find(name);
        const std::optional<int64_t> kept = before == values_.end() ? std::nullopt : std::optional(before->second);
        const auto set = [&](std::optional<int64_t> now) {
            if (now)
                values_[name] = *now;
            else
                values_.erase(name);
        };
        set(value);
        inside();
        set(kept);
    }

    void visit(const LetStmt *op) override {
        with(op->name, value_of(op->value, values_), [&] { op->body.accept(this); });
    }

    void visit(const For *op) override {
        const auto first = value_of(op->min, values_), turns = value_of(op->extent, values_);
        if (!first || !turns || (skipped_ && skipped_(op->name))) return;
        for (int64_t turn = 0; turn < *turns; turn++) with(op->name, *first + turn, [&] { op->body.accept(this); });
    }

    void visit(const IfThenElse *op) override {
        const auto condition = value_of(op->condition, values_);
        if (!condition || *condition) op->then_case.accept(this);
        if (op->else_case.defined() && (!condition || !*condition)) op->else_case.accept(this);
    }

    void visit(const Evaluate *op) override { found_(op, values_); }
    void visit(const Store *op) override { found_(op, values_); }
};

// What is known of a buffer is asked of it once, at the start of a kernel.
std::optional<int64_t> value_of_buffer(const Call *op, const Values &values) {
    for (const char *what : {"min", "extent", "stride"}) {
        if (op->name != std::string("_halide_buffer_get_") + what) continue;
        const Variable *buffer = op->args[0].as<Variable>();
        const auto dim = as_const_int(op->args[1]);
        if (!buffer || !dim) return std::nullopt;
        const std::string name = buffer->name.substr(0, buffer->name.find_first_of(".$"));
        const auto found = values.find(name + "." + what + "." + std::to_string(*dim));
        return found == values.end() ? std::nullopt : std::optional(found->second);
    }
    return std::nullopt;
}

}  // namespace

Stmt kernel(const std::string &words) {
    std::istringstream items("name=kernel " + words);
    const halation::Variant variant =
        halation::Variant::parse({std::istream_iterator<std::string>(items), std::istream_iterator<std::string>()});
    const GeneratorContext context{Target(variant.halide_target())};
    const auto generator = GeneratorRegistry::create(halation::recurrence_named(variant.recurrence).generator, context);
    generator->set_generatorparam_value("recurrence", variant.recurrence);
    generator->set_generatorparam_value("form", variant.form);
    const auto halide_type = [](const std::string &type) {
        return type == "f32" ? "float32" : type == "f16" ? "float16" : "bfloat16";
    };
    generator->set_generatorparam_value("type", halide_type(variant.type));
    generator->set_generatorparam_value("gate_type", halide_type(variant.gate_type));
    for (const LoweredFunc &function : generator->build_module(variant.name).functions())
        if (function.name == variant.name) return function.body;
    throw InternalError("a module without its kernel");
}

std::optional<int64_t> value_of(const Expr &e, const Values &values) {
    if (!e.type().is_scalar()) return std::nullopt;
    if (const auto constant = as_const_int(e)) return *constant;
    if (const auto constant = as_const_uint(e)) return static_cast<int64_t>(*constant);
    if (const Variable *op = e.as<Variable>()) {
        const auto found = values.find(op->name);
        return found == values.end() ? std::nullopt : std::optional(found->second);
    }
    if (const Cast *op = e.as<Cast>()) return op->type.is_float() ? std::nullopt : value_of(op->value, values);
    if (const Add *op = e.as<Add>()) return both(op, values, [](int64_t a, int64_t b) { return a + b; });
    if (const Sub *op = e.as<Sub>()) return both(op, values, [](int64_t a, int64_t b) { return a - b; });
    if (const Mul *op = e.as<Mul>()) return both(op, values, [](int64_t a, int64_t b) { return a * b; });
    if (const Div *op = e.as<Div>()) return both(op, values, divided);
    if (const Mod *op = e.as<Mod>())
        return both(op, values, [](int64_t a, int64_t b) { return b == 0 ? 0 : a - divided(a, b) * b; });
    if (const Min *op = e.as<Min>()) return both(op, values, [](int64_t a, int64_t b) { return std::min(a, b); });
    if (const Max *op = e.as<Max>()) return both(op, values, [](int64_t a, int64_t b) { return std::max(a, b); });
    if (const EQ *op = e.as<EQ>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a == b); });
    if (const NE *op = e.as<NE>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a != b); });
    if (const LT *op = e.as<LT>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a < b); });
    if (const LE *op = e.as<LE>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a <= b); });
    if (const GT *op = e.as<GT>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a > b); });
    if (const GE *op = e.as<GE>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a >= b); });
    if (const And *op = e.as<And>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a && b); });
    if (const Or *op = e.as<Or>()) return both(op, values, [](int64_t a, int64_t b) { return int64_t(a || b); });
    if (const Not *op = e.as<Not>()) {
        const auto a = value_of(op->a, values);
        return a ? std::optional<int64_t>(!*a) : std::nullopt;
    }
    if (const Select *op = e.as<Select>()) {
        const auto condition = value_of(op->condition, values);
        return condition ? value_of(*condition ? op->true_value : op->false_value, values) : std::nullopt;
    }
    if (const Call *op = e.as<Call>()) return value_of_buffer(op, values);
    if (const Let *op = e.as<Let>()) {
        Values inside = values;
        inside.erase(op->name);
        if (const auto value = value_of(op->value, values)) inside[op->name] = *value;
        return value_of(op->body, inside);
    }
    return std::nullopt;
}

Expr lane(const Expr &e, int i) {
    if (e.type().is_scalar()) return e;
    if (const Ramp *op = e.as<Ramp>()) {
        const int lanes = op->base.type().lanes();
        return lane(op->base, i % lanes) + lane(op->stride, i % lanes) * (i / lanes);
    }
    if (const Broadcast *op = e.as<Broadcast>()) return lane(op->value, i % op->value.type().lanes());
    if (const LT *op = e.as<LT>()) return LT::make(lane(op->a, i), lane(op->b, i));
    if (const LE *op = e.as<LE>()) return LE::make(lane(op->a, i), lane(op->b, i));
    if (const And *op = e.as<And>()) return And::make(lane(op->a, i), lane(op->b, i));
    if (const Or *op = e.as<Or>()) return Or::make(lane(op->a, i), lane(op->b, i));
    if (const Add *op = e.as<Add>()) return lane(op->a, i) + lane(op->b, i);
    if (const Sub *op = e.as<Sub>()) return lane(op->a, i) - lane(op->b, i);
    if (const Min *op = e.as<Min>()) return min(lane(op->a, i), lane(op->b, i));
    if (const Max *op = e.as<Max>()) return max(lane(op->a, i), lane(op->b, i));
    throw InternalError("lane(): no case for this expression");
}

void each_reached(const Stmt &s, const Values &values, const std::function<void(const Stmt &, const Values &)> &visit,
                  const std::function<bool(const std::string &)> &skipped) {
    Reached reached(values, visit, skipped);
    s.accept(&reached);
}

}  // namespace lowered
