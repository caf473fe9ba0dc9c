// One kernel, made and loaded while the lab runs: the same object file that a build would make, in the same runtime.
#ifndef HALATION_LAB_KERNEL_H
#define HALATION_LAB_KERNEL_H

#include "generators/kernel_table.h"

#include <string>

namespace halation::lab {

// Where the kernel's shared object is, once it was made in that folder.
std::string shared_object_of(const Variant &variant, const std::string &directory);

// Writes the kernel's object file into `directory` and links it to a shared object. The linker is the environment's CXX, or c++.
// Throws Halide::CompileError or std::runtime_error.
void make_shared_object(const Variant &variant, const std::string &directory);

class LoadedKernel {
public:
    LoadedKernel(const Variant &variant, const std::string &shared_object);  // throws std::runtime_error
    ~LoadedKernel();
    LoadedKernel(const LoadedKernel &) = delete;
    LoadedKernel &operator=(const LoadedKernel &) = delete;

    const halation_kernel_table &table() const { return table_; }
    const halation_row &row() const { return entries_.rows().front(); }

private:
    KernelTable entries_;
    std::vector<halation_kernel> kernels_;
    halation_kernel_table table_{};
    void *library_ = nullptr;
};

}  // namespace halation::lab
#endif
