// A pass that knows, once it has gone through the whole of a kernel, whether it met what it is for.
#ifndef HALATION_GENERATORS_CHECKED_PASS_H
#define HALATION_GENERATORS_CHECKED_PASS_H

#include <Halide.h>

namespace halation {

class CheckedPass : public Halide::Internal::IRMutator {
public:
    using IRMutator::mutate;
    Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &s) override {
        const bool whole = depth_++ == 0;
        Halide::Internal::Stmt result = IRMutator::mutate(s);
        depth_--;
        if (whole) check();
        return result;
    }

protected:
    // After the whole. Throws Halide::CompileError if something was not there.
    virtual void check() {}

private:
    int depth_ = 0;
};

}  // namespace halation
#endif
