// What Halide makes of a variant: its object file, and what helps to understand it.
#ifndef HALATION_GENERATORS_KERNEL_FILES_H
#define HALATION_GENERATORS_KERNEL_FILES_H

#include "cubins.h"
#include "variant.h"

namespace halation {

// While it lives, what Halide has to say goes to std::cerr, or is thrown as Halide::CompileError.
class Reporter : public Halide::CompileTimeErrorReporter {
public:
    Reporter() { Halide::set_custom_compile_time_error_reporter(this); }
    ~Reporter() { Halide::set_custom_compile_time_error_reporter(nullptr); }
    Reporter(const Reporter &) = delete;
    Reporter &operator=(const Reporter &) = delete;
    void warning(const char *message) override;
    [[noreturn]] void error(const char *message) override;
};

// Halide's own generator command line; arguments[0] is the program. Throws Halide::CompileError.
void run_halide(std::vector<std::string> arguments);

// Writes files of the kernel into `directory`, each named after the variant. `kinds` are Halide's: object, assembly, stmt,
// stmt_html, ... A kernel for CUDA gets machine code as well if `cubins` says of what, and NAME.registers.txt beside it.
void write_kernel(const Variant &variant, const std::string &directory, const std::vector<std::string> &kinds,
                  const Cubins &cubins = {});

// The loops of the kernel, as Halide prints them before it simplifies anything, without the numbers that make its names unique:
// two kernels can be compared line by line.
std::string loop_nest_of(const Variant &variant);

}  // namespace halation
#endif
