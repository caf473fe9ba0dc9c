#include "kernel.h"

#include "generators/kernel_files.h"
#include "process.h"

#include <cstdlib>
#include <dlfcn.h>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace halation::lab {

std::string shared_object_of(const Variant &variant, const std::string &directory) {
    return directory + "/" + variant.name + ".so";
}

void make_shared_object(const Variant &variant, const std::string &directory) {
    write_kernel(variant, directory, {"object"});
    const char *compiler = std::getenv("CXX");
    const std::string object = directory + "/" + variant.name + ".o";
    std::istringstream words(compiler ? compiler : "");  // "ccache g++"
    std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
    if (command.empty()) command = {"c++"};
    // What the kernel calls of Halide's runtime, this program has and shows (runtime/kernel_glue.cpp).
    for (const std::string &word : {std::string("-shared"), std::string("-nostartfiles"), std::string("-o"),
                                    shared_object_of(variant, directory), object, std::string("-lm")})
        command.push_back(word);
    const Finished linked = run_process(command, 60);
    if (!linked.succeeded()) throw std::runtime_error("the kernel cannot be linked: " + linked.reason());
}

LoadedKernel::LoadedKernel(const Variant &variant, const std::string &shared_object)
    : entries_({variant}), kernels_(entries_.kernels()) {
    library_ = dlopen(shared_object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) {
        const std::string reason = dlerror();
        if (reason.find("halide_do_par_for") != std::string::npos)
            throw Halide::CompileError(
                "the schedule has a parallel loop; kernels run on the thread that calls them, and the runtime shares out heads");
        throw std::runtime_error("the kernel cannot be loaded: " + reason);
    }
    const auto symbol = [&](const std::string &suffix) {
        void *address = dlsym(library_, (variant.name + suffix).c_str());
        if (!address) throw std::runtime_error(shared_object + " has no " + variant.name + suffix);
        return address;
    };
    kernels_.front().run = reinterpret_cast<int (*)(void **)>(symbol("_argv"));
    kernels_.front().metadata = reinterpret_cast<const halide_filter_metadata_t *(*)()>(symbol("_metadata"));
    table_.size = sizeof table_;
    table_.version = HALATION_VERSION;
    table_.name = "lab";
    table_.rows = entries_.rows().data();
    table_.row_count = static_cast<int32_t>(entries_.rows().size());
    table_.kernels = kernels_.data();
    table_.kernel_count = static_cast<int32_t>(kernels_.size());
}

LoadedKernel::~LoadedKernel() {
    if (library_) dlclose(library_);
}

}  // namespace halation::lab
