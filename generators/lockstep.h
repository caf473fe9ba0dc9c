// What the threads of a block reckon, all at once: the value of an integer expression for each thread, as far as it can be known
// when a kernel is made.
#ifndef HALATION_GENERATORS_LOCKSTEP_H
#define HALATION_GENERATORS_LOCKSTEP_H

#include <Halide.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace halation {

class Lockstep {
public:
    using Values = std::vector<int64_t>;  // one a thread

private:
    // Known values, and multiples of what is not known: where a block begins, say, which an index is reckoned from in the end. A
    // name that stands for something else than before is another unknown.
    struct Sum {
        Values known;
        std::map<std::string, int64_t> unknown;
    };

public:
    explicit Lockstep(size_t threads) : threads_(threads) {}

    size_t threads() const { return threads_; }

    // What a name stands for from here on.
    void set(const std::string &name, const Values &values) { names_[name] = {values, {}}; }
    void set(const std::string &name, const Halide::Expr &e);
    void set_unknown(const std::string &name);
    // The same while something is done.
    template<typename Something> void with(const std::string &name, const Halide::Expr &e, Something something) {
        const auto outer = names_.find(name);
        const std::optional<Sum> shadowed = outer == names_.end() ? std::nullopt : std::optional<Sum>(outer->second);
        set(name, e);
        something();
        if (shadowed)
            names_[name] = *shadowed;
        else
            names_.erase(name);
    }

    // None if it depends on what is not known.
    std::optional<Values> value(const Halide::Expr &e) const;
    // Where a condition may hold.
    std::vector<bool> may_hold(const Halide::Expr &condition) const;

private:
    const size_t threads_;
    int unknowns_ = 0;
    std::map<std::string, Sum> names_;

    std::optional<Sum> sum(const Halide::Expr &e) const;
    template<typename Node, typename Of> std::optional<Sum> each(const Halide::Expr &e, Of of) const;
    std::optional<Sum> product(Sum a, const Sum &b) const;
};

}  // namespace halation
#endif
