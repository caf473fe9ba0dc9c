// One kernel: which recurrence in which form for which machine, types and dims. The variants table of the project and the
// words given to halation_add_kernels() come down to a list of these.
#ifndef HALATION_GENERATORS_VARIANT_H
#define HALATION_GENERATORS_VARIANT_H

#include "../schedules/parameters.h"
#include "recurrence.h"

namespace halation {

struct Variant {
    std::string name;  // of the kernel, a C identifier
    std::string recurrence, form, backend = "cpu", isa, os = "linux";
    std::string arch = "x86";  // of the host that a GPU kernel is launched from
    std::string type = "f32", gate_type = "f32";
    std::string feature_map;         // empty: none
    int key_dim = 0, value_dim = 0;  // 0: any
    std::string schedule;            // one that a source file registered; empty: Halation's
    std::string parameters;          // of the schedule: "chunk=8,segment=128"

    // From words "name=gated_f32 recurrence=gated form=chunkwise isa=avx512 ...", as the build writes them; throws
    // Halide::CompileError saying which word is wrong and what it may be.
    static Variant parse(const std::vector<std::string> &words);

    Form form_value() const;
    bool on_gpu() const { return backend != "cpu"; }
    std::string generator() const;  // the registered name of the Halide::Generator that makes it
    CpuMachine machine() const;     // of the cpu backend
    Scheduled scheduled() const;
    std::string halide_target() const;
};

}  // namespace halation
#endif
