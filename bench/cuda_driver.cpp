#include "cuda_driver.h"

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

std::function<void()> CudaDriver::copy(const halation::DeviceMemory &from, halation::DeviceMemory &to, size_t bytes) const {
    return
        [this, source = from.data(), target = to.data(), bytes] { call("cuMemcpyDtoDAsync_v2", target, source, bytes, stream_); };
}

std::function<void()> CudaDriver::in_place(halation::DeviceMemory &states, int64_t count, int row) const {
    // Thread x of a block has channel x % row of 32 keys, those of group x / row of four.
    constexpr int keys = 32, row_bytes = 128 * 4;
    std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry in_place(.param .u64 states) {\n"
                       ".reg .b32 x, group, channel, tile, state;\n.reg .b64 at, part;\n.reg .f32 s<32>;\n"
                       "ld.param.u64 at, [states];\nmov.u32 x, %tid.x;\nmov.u32 tile, %ctaid.x;\nmov.u32 state, %ctaid.y;\n";
    const std::string width = std::to_string(row);
    text += "div.u32 group, x, " + width + ";\nrem.u32 channel, x, " + width + ";\n";
    const std::pair<const char *, int> steps[] = {
        {"state", 128 * row_bytes}, {"group", keys * row_bytes}, {"tile", row * 4}, {"channel", 4}};
    for (const auto &[index, bytes] : steps)
        text += std::string("mul.wide.u32 part, ") + index + ", " + std::to_string(bytes) + ";\nadd.u64 at, at, part;\n";
    const auto of_key = [&](int key) { return "[at + " + std::to_string(key * row_bytes) + "]"; };
    const auto value = [](int key) { return "s" + std::to_string(key); };
    for (int key = 0; key < keys; key++) text += "ld.global.f32 " + value(key) + ", " + of_key(key) + ";\n";
    text += "bar.sync 0;\n";  // or the compiler stores early, to have fewer registers
    for (int key = 0; key < keys; key++) {
        // Something must become of a value, or the compiler has nothing to store.
        text += "mul.f32 " + value(key) + ", " + value(key) + ", 0f3F000000;\n";
        text += "st.global.f32 " + of_key(key) + ", " + value(key) + ";\n";
    }
    text += "ret;\n}\n";
    void *module = nullptr, *kernel = nullptr;
    call("cuModuleLoadData", &module, text.c_str());
    const std::shared_ptr<void> kept(module, [this](void *done) {
        try {
            call("cuModuleUnload", done);
        } catch (const std::exception &) {
            // The process is about to end.
        }
    });
    call("cuModuleGetFunction", &kernel, module, "in_place");
    return [this, kept, kernel, count, row, memory = states.data()]() mutable {
        void *arguments[] = {&memory};
        void **none = nullptr;
        call("cuLaunchKernel", kernel, 128u / row, static_cast<unsigned>(count), 1u, 4u * row, 1u, 1u, 0u, stream_, arguments,
             none);
    };
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
