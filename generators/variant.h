// One kernel: which recurrence in which form for which machine and types. The variants table of the project and the
// words given to halation_add_kernels() come down to a list of these.
#ifndef HALATION_GENERATORS_VARIANT_H
#define HALATION_GENERATORS_VARIANT_H

#include "recurrence.h"

#include <iosfwd>

namespace halation {

struct Variant {
    std::string recurrence, form, backend, isa, type, gate_type, feature_map;  // feature_map "-": none

    // Reads the seven words in that order, as the build writes them; throws Halide::CompileError saying which word is
    // wrong and what it may be.
    static Variant parse(const std::vector<std::string> &words);

    std::string name() const;  // gated_delta_chunkwise_cpu_avx512_f32; _gates_bf16 if gates are not float32
    Form form_value() const;
    std::string halide_target() const;
};

// Writes the C++ source that defines the kernel table `function` of these variants.
void write_kernel_table(std::ostream &out, const std::string &function, const std::vector<Variant> &variants);

}  // namespace halation
#endif
