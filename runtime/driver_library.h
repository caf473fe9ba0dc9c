// A driver's library, loaded when it is first asked for and never unloaded: what it has started may outlive every context.
#ifndef HALATION_RUNTIME_DRIVER_LIBRARY_H
#define HALATION_RUNTIME_DRIVER_LIBRARY_H

#include "text.h"

#include <dlfcn.h>
#include <initializer_list>

namespace halation::runtime {

class DriverLibrary {
public:
    // The first of `names` that is there.
    explicit DriverLibrary(std::initializer_list<const char *> names) {
        for (const char *name : names) {
            handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (handle_) return;
            const char *why = dlerror();
            if (fault_.empty()) fault_.add("%s", why ? why : name);
        }
    }

    // Points `function` at the symbol; one that is missing is a fault.
    template<typename Function> void find(const char *symbol, Function **function) {
        if (!handle_) return;
        *function = reinterpret_cast<Function *>(dlsym(handle_, symbol));
        if (!*function && fault_.empty()) fault_.add("the driver's library has no %s; it is too old", symbol);
    }

    // The same where a system may lack it.
    template<typename Function> void find_optional(const char *symbol, Function **function) {
        if (handle_) *function = reinterpret_cast<Function *>(dlsym(handle_, symbol));
    }

    bool usable() const { return fault_.empty(); }
    const char *fault() const { return fault_.c_str(); }

private:
    void *handle_ = nullptr;
    Text<300> fault_;
};

}  // namespace halation::runtime
#endif
