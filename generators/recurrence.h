// What the runtime has to know of a recurrence: the shapes of its tensors, its forms, and which generator makes it.
// Written into the kernel table of a generated library, see runtime/include/halation_kernels.h.
#ifndef HALATION_GENERATORS_RECURRENCE_H
#define HALATION_GENERATORS_RECURRENCE_H

#include "row.h"

#include <array>

namespace halation {

enum class Form { recurrent = 1, chunkwise = 2, parallel = 3 };
const char *name_of(Form form);

struct Recurrence {
    std::string name, formula;
    std::string generator;  // the Halide::Generator's registered name
    std::vector<RowInput> inputs;
    std::string output_dims, state_dims, normalizer_dims;  // empty: it has none
    std::string default_feature_map;
    bool scale_by_key_dim = true;        // default scale K^-0.5, else 1
    std::array<std::string, 4> refused;  // by Form: why it has not that form; empty: it has
    // What a token costs at least: multiply-adds with each element of a head's state, and exponentials, as dims of what they are
    // of.
    int state_products = 2;
    std::vector<std::string> exps;
};

// All of this build, the rows first.
std::vector<Recurrence> recurrences();
Recurrence recurrence_named(const std::string &name);  // throws Halide::CompileError listing the known names

}  // namespace halation
#endif
