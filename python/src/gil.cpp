#include "gil.h"

#include <chrono>
#include <pthread.h>
#include <thread>

namespace nb = nanobind;

namespace halation::python {

std::atomic<int> calls_without_gil{0};
bool interpreter_ends = false;

void watch_the_end() {
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
        interpreter_ends = true;
        PyThreadState *const state = PyEval_SaveThread();
        while (calls_without_gil > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        PyEval_RestoreThread(state);
    }));
    // A child of a fork has one thread, which is in no call.
    pthread_atfork(nullptr, nullptr, [] { calls_without_gil = 0; });
    // Threads that never end keep their arrays and plans; nanobind would call that a fault of this module.
    nb::set_leak_warnings(false);
}

}  // namespace halation::python
