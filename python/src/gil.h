// Kernels run without Python's lock, so that other threads go on.
#ifndef HALATION_PYTHON_GIL_H
#define HALATION_PYTHON_GIL_H

#include <nanobind/nanobind.h>

#include <atomic>

namespace halation::python {

// Calls that have given up the lock and not yet taken it again.
extern std::atomic<int> calls_without_gil;
extern bool interpreter_ends;  // read and written with the lock

// Runs f, which throws nothing, without the lock. A thread that took it again while the interpreter ends would be ended there,
// and the process with it: so the end waits for calls under way, and calls that begin after that keep the lock.
template<typename F> void without_gil(F f) {
    if (interpreter_ends) return f();
    calls_without_gil++;
    PyThreadState *const state = PyEval_SaveThread();
    f();
    PyEval_RestoreThread(state);
    calls_without_gil--;
}

// Makes the interpreter's end wait.
void watch_the_end();

}  // namespace halation::python
#endif
