// The names of Funcs and loops in a lowered kernel, to which Halide may add.
#ifndef HALATION_GENERATORS_LOWERED_NAMES_H
#define HALATION_GENERATORS_LOWERED_NAMES_H

#include <string>
#include <vector>

namespace halation {

// An allocation or producer of the Func: its name, or that and a number.
inline bool is_of_func(const std::string &name, const std::string &func) {
    return name == func || name.compare(0, func.size() + 1, func + ".") == 0;
}

// Which of some Funcs an allocation or producer is of, or null.
inline const std::string *func_of(const std::string &name, const std::vector<std::string> &funcs) {
    for (const std::string &func : funcs)
        if (is_of_func(name, func)) return &func;
    return nullptr;
}

// A loop over the Var: its name is that of its Func, stage and Var.
inline bool is_loop_over(const std::string &name, const std::string &var) {
    return (name + ".").find("." + var + ".") != std::string::npos;
}

}  // namespace halation
#endif
