// A context with the tables it was given, and with the shared libraries some of them came from.
#ifndef HALATION_PYTHON_CONTEXT_H
#define HALATION_PYTHON_CONTEXT_H

#include <halation_kernels.h>

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace halation::python {

class Context {
public:
    // With Halation's own kernels.
    explicit Context(int threads);
    ~Context();
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    // The table that `function` of the library returns; the library stays loaded as long as this.
    void add_kernels(const std::string &library, const std::string &function);

    // Its threads do not survive a fork: in a child a call would wait for them for ever.
    void check_process() const;
    bool is_of_this_process() const;

    halation_context *get() const { return context_; }
    const std::vector<const halation_kernel_table *> &tables() const { return tables_; }

private:
    halation_context *context_ = nullptr;
    std::vector<const halation_kernel_table *> tables_;
    std::vector<void *> libraries_;
    pid_t process_;
};

}  // namespace halation::python
#endif
