#include "cuda_driver.h"

#include <algorithm>
#include <chrono>
#include <dlfcn.h>
#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

template<typename... Values> void CudaDriver::call(const char *name, Values... values) const {
    const auto function = library_ ? reinterpret_cast<int (*)(Values...)>(dlsym(library_, name)) : nullptr;
    const int error = function ? function(values...) : -1;
    if (error != 0) throw std::runtime_error(std::string(name) + " of libcuda.so.1 failed: error " + std::to_string(error));
}

CudaDriver::CudaDriver(halation::Context &context) : context_(context), library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    call("cuCtxPushCurrent_v2", context.device().native_context);
    constexpr unsigned waits_for_no_other = 1;
    call("cuStreamCreate", &stream_, waits_for_no_other);
    context.set_queue(stream_);
}

CudaDriver::~CudaDriver() {
    void *popped = nullptr;
    try {
        context_.synchronize();
        context_.set_queue(nullptr);
        call("cuStreamDestroy_v2", stream_);
        call("cuCtxPopCurrent_v2", &popped);
    } catch (const std::exception &) {
        // What had failed before says more.
    }
}

double CudaDriver::copy_speed() const {
    constexpr size_t bytes = size_t(2) << 30;
    const halation::DeviceMemory from(context_, bytes), to(context_, bytes);
    double least = 1e9;
    for (int i = 0; i < 10; i++) {
        const auto start = std::chrono::steady_clock::now();
        call("cuMemcpyDtoDAsync_v2", to.data(), from.data(), bytes, stream_);
        context_.synchronize();
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return 2.0 * bytes / least;
}

std::function<void()> CudaDriver::captured(int calls, const std::function<void()> &one) const {
    void *graph = nullptr, *executable = nullptr;
    constexpr int any_thread = 0;
    call("cuStreamBeginCapture_v2", stream_, any_thread);
    try {
        for (int i = 0; i < calls; i++) one();
    } catch (...) {
        call("cuStreamEndCapture", stream_, &graph);
        throw;
    }
    call("cuStreamEndCapture", stream_, &graph);
    call("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
    call("cuGraphDestroy", graph);
    const std::shared_ptr<void> kept(executable, [this](void *done) {
        try {
            call("cuGraphExecDestroy", done);
        } catch (const std::exception &) {
            // The process is about to end.
        }
    });
    return [this, kept] { call("cuGraphLaunch", kept.get(), stream_); };
}

}  // namespace bench
