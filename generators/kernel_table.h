// What the runtime has to know of kernels, as the structs that it reads (runtime/include/halation_kernels.h).
#ifndef HALATION_GENERATORS_KERNEL_TABLE_H
#define HALATION_GENERATORS_KERNEL_TABLE_H

#include "variant.h"

#include <halation_kernels.h>

#include <deque>
#include <iosfwd>

namespace halation {

// The entries of these variants. They point into this object.
class KernelTable {
public:
    explicit KernelTable(std::vector<Variant> variants);  // throws Halide::CompileError if a name occurs twice
    KernelTable(const KernelTable &) = delete;
    KernelTable &operator=(const KernelTable &) = delete;

    const std::vector<halation_row> &rows() const { return rows_; }
    // `run` and `metadata` are null: they are for whoever links or loads the kernels.
    const std::vector<halation_kernel> &kernels() const { return kernels_; }

private:
    void add_row(const Recurrence &recurrence);
    void add_kernel(const Variant &variant);
    const char *kept(const std::string &text);

    std::vector<Variant> variants_;
    std::vector<halation_row> rows_;
    std::vector<halation_kernel> kernels_;
    std::deque<std::vector<halation_row_tensor>> inputs_;
    std::deque<std::string> texts_;
};

// Writes the C++ source that defines the kernel table `function` of these variants.
void write_kernel_table(std::ostream &out, const std::string &function, const std::vector<Variant> &variants);

}  // namespace halation
#endif
