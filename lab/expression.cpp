#include "expression.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>

namespace halation::lab {
namespace {

using namespace Halide;

std::string text_of(const Expr &expression) {
    std::ostringstream text;
    text << expression;
    return text.str();
}

[[noreturn]] void unknown(const Expr &expression) {
    throw std::invalid_argument("the plain loop does not know this part of the row: " + text_of(expression));
}

template<typename T> class Builder {
public:
    explicit Builder(const std::vector<std::string> &inputs) : inputs_(inputs) {}

    Evaluator<T> build(const Expr &e) {
        using namespace Halide::Internal;
        if (const auto *op = e.as<IntImm>()) return constant(static_cast<T>(op->value));
        if (const auto *op = e.as<UIntImm>()) return constant(static_cast<T>(op->value));
        if (const auto *op = e.as<FloatImm>()) return constant(static_cast<T>(op->value));
        if (const auto *op = e.as<Variable>()) return variable(op->name, e);
        if (const auto *op = e.as<Cast>()) return cast(build(op->value), op->value.type(), op->type);
        if (const auto *op = e.as<Let>()) {
            const auto outer = lets_;
            lets_[op->name] = build(op->value);
            Evaluator<T> body = build(op->body);
            lets_ = outer;
            return body;
        }
        if (const auto *op = e.as<Add>()) return binary(op, [](T a, T b) { return a + b; });
        if (const auto *op = e.as<Sub>()) return binary(op, [](T a, T b) { return a - b; });
        if (const auto *op = e.as<Mul>()) return binary(op, [](T a, T b) { return a * b; });
        if (const auto *op = e.as<Div>()) {
            if (op->type.is_float()) return binary(op, [](T a, T b) { return a / b; });
            return binary(op, [](T a, T b) { return quotient(a, b); });
        }
        if (const auto *op = e.as<Mod>()) {
            if (op->type.is_float()) return binary(op, [](T a, T b) { return a - b * std::floor(a / b); });
            return binary(op, [](T a, T b) { return b == 0 ? T(0) : a - b * quotient(a, b); });
        }
        if (const auto *op = e.as<Min>()) return binary(op, [](T a, T b) { return std::min(a, b); });
        if (const auto *op = e.as<Max>()) return binary(op, [](T a, T b) { return std::max(a, b); });
        if (const auto *op = e.as<EQ>()) return binary(op, [](T a, T b) { return T(a == b); });
        if (const auto *op = e.as<NE>()) return binary(op, [](T a, T b) { return T(a != b); });
        if (const auto *op = e.as<LT>()) return binary(op, [](T a, T b) { return T(a < b); });
        if (const auto *op = e.as<LE>()) return binary(op, [](T a, T b) { return T(a <= b); });
        if (const auto *op = e.as<GT>()) return binary(op, [](T a, T b) { return T(a > b); });
        if (const auto *op = e.as<GE>()) return binary(op, [](T a, T b) { return T(a >= b); });
        if (const auto *op = e.as<And>()) return binary(op, [](T a, T b) { return T(a != 0 && b != 0); });
        if (const auto *op = e.as<Or>()) return binary(op, [](T a, T b) { return T(a != 0 || b != 0); });
        if (const auto *op = e.as<Not>()) return unary(build(op->a), [](T a) { return T(a == 0); });
        if (const auto *op = e.as<Select>()) {
            const Evaluator<T> condition = build(op->condition), yes = build(op->true_value), no = build(op->false_value);
            return [=](const std::vector<T> &in) { return condition(in) != 0 ? yes(in) : no(in); };
        }
        if (const auto *op = e.as<Call>()) return call(op, e);
        unknown(e);
    }

private:
    // Of whole numbers: so that the remainder is never negative, and 0 where b is.
    static T quotient(T a, T b) { return b == 0 ? T(0) : b > 0 ? std::floor(a / b) : std::ceil(a / b); }

    static Evaluator<T> constant(T value) {
        return [value](const std::vector<T> &) { return value; };
    }

    Evaluator<T> variable(const std::string &name, const Expr &e) {
        if (const auto let = lets_.find(name); let != lets_.end()) return let->second;
        const auto found = std::find(inputs_.begin(), inputs_.end(), name);
        if (found == inputs_.end()) unknown(e);
        const auto index = static_cast<size_t>(found - inputs_.begin());
        return [index](const std::vector<T> &in) { return in[index]; };
    }

    static Evaluator<T> cast(Evaluator<T> value, Type from, Type to) {
        if (to.is_float() || !from.is_float()) return value;
        return unary(std::move(value), [](T a) { return std::trunc(a); });
    }

    template<typename F> static Evaluator<T> unary(Evaluator<T> a, F f) {
        return [a = std::move(a), f](const std::vector<T> &in) { return f(a(in)); };
    }
    template<typename Node, typename F> Evaluator<T> binary(const Node *op, F f) {
        return [a = build(op->a), b = build(op->b), f](const std::vector<T> &in) { return f(a(in), b(in)); };
    }

    // Halide's functions of floats are calls of names such as exp_f32.
    Evaluator<T> call(const Internal::Call *op, const Expr &e) {
        using F1 = T (*)(T);
        static const std::map<std::string, F1> functions = {{"exp", [](T a) { return std::exp(a); }},
                                                            {"log", [](T a) { return std::log(a); }},
                                                            {"sqrt", [](T a) { return std::sqrt(a); }},
                                                            {"sin", [](T a) { return std::sin(a); }},
                                                            {"cos", [](T a) { return std::cos(a); }},
                                                            {"tan", [](T a) { return std::tan(a); }},
                                                            {"tanh", [](T a) { return std::tanh(a); }},
                                                            {"sinh", [](T a) { return std::sinh(a); }},
                                                            {"cosh", [](T a) { return std::cosh(a); }},
                                                            {"atan", [](T a) { return std::atan(a); }},
                                                            {"floor", [](T a) { return std::floor(a); }},
                                                            {"ceil", [](T a) { return std::ceil(a); }},
                                                            {"round", [](T a) { return std::rint(a); }},
                                                            {"trunc", [](T a) { return std::trunc(a); }},
                                                            {"abs", [](T a) { return std::abs(a); }},
                                                            {"fast_inverse", [](T a) { return 1 / a; }},
                                                            {"fast_inverse_sqrt", [](T a) { return 1 / std::sqrt(a); }},
                                                            {"is_nan", [](T a) { return T(std::isnan(a)); }}};
        std::string name = op->name;
        if (const size_t type = name.rfind("_f32"); type != std::string::npos) name.erase(type);
        if (name == "strict_float" || name == "likely" || name == "likely_if_innermost") return build(op->args[0]);
        if (const auto found = functions.find(name); found != functions.end() && op->args.size() == 1)
            return unary(build(op->args[0]), found->second);
        if (name == "pow" && op->args.size() == 2)
            return [a = build(op->args[0]), b = build(op->args[1])](const std::vector<T> &in) { return std::pow(a(in), b(in)); };
        static const std::map<std::string, T (*)(T, T)> strict = {
            {"strict_add", [](T a, T b) { return a + b; }},          {"strict_sub", [](T a, T b) { return a - b; }},
            {"strict_mul", [](T a, T b) { return a * b; }},          {"strict_div", [](T a, T b) { return a / b; }},
            {"strict_min", [](T a, T b) { return std::min(a, b); }}, {"strict_max", [](T a, T b) { return std::max(a, b); }},
            {"strict_lt", [](T a, T b) { return T(a < b); }},        {"strict_le", [](T a, T b) { return T(a <= b); }},
            {"strict_eq", [](T a, T b) { return T(a == b); }}};
        if (const auto found = strict.find(name); found != strict.end())
            return [a = build(op->args[0]), b = build(op->args[1]), f = found->second](const std::vector<T> &in) {
                return f(a(in), b(in));
            };
        unknown(e);
    }

    const std::vector<std::string> &inputs_;
    std::map<std::string, Evaluator<T>> lets_;
};

}  // namespace

template<typename T> Evaluator<T> evaluator_of(const Expr &expression, const std::vector<std::string> &inputs) {
    return Builder<T>(inputs).build(expression);
}

template Evaluator<float> evaluator_of(const Expr &, const std::vector<std::string> &);
template Evaluator<double> evaluator_of(const Expr &, const std::vector<std::string> &);

}  // namespace halation::lab
