#include "context.h"
#include "errors.h"
#include "gil.h"

#include <dlfcn.h>
#include <unistd.h>

namespace nb = nanobind;

namespace halation::python {

Context::Context(int threads) : process_(getpid()) {
    auto options = HALATION_INIT(halation_context_options);
    options.threads = threads;
    check(halation_context_create(&options, &context_));
    tables_.push_back(halation_kernels());
    const halation_status status = halation_context_add_kernels(context_, tables_[0]);
    if (status == HALATION_OK) return;
    halation_context_destroy(context_);
    check(status);
}

Context::~Context() {
    if (!is_of_this_process()) return;  // it would wait for threads that are not there
    halation_context_destroy(context_);
    for (void *library : libraries_) dlclose(library);
}

bool Context::is_of_this_process() const {
    return getpid() == process_;
}

void Context::check_process() const {
    if (!is_of_this_process())
        raise(HALATION_INVALID_ARGUMENT,
              "context: was made by another process, and its threads did not survive the fork; make one in this process");
}

void Context::add_kernels(const std::string &path, const std::string &function) {
    check_process();
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) raise(HALATION_INVALID_ARGUMENT, std::string("library: ") + dlerror());
    libraries_.push_back(library);
    using Function = const halation_kernel_table *();
    auto *table_of = reinterpret_cast<Function *>(dlsym(library, function.c_str()));
    if (!table_of)
        raise(HALATION_INVALID_ARGUMENT, "function: '" + path + "' has no '" + function +
                                             "'; must be the TABLE of its halation_add_kernels, by default the target's name");
    halation_status status;
    const halation_kernel_table *table = nullptr;
    // A call in another thread may hold the context.
    without_gil([&] {
        table = table_of();
        status = halation_context_add_kernels(context_, table);
    });
    check(status);
    for (const halation_kernel_table *known : tables_)
        if (known == table) return;
    tables_.push_back(table);
}

}  // namespace halation::python
