// CUDA, by its driver interface: a context and a stream, the caller's or the primary context and its default stream, which the
// CUDA runtime uses too. Nothing here waits but the copies that say so.
#include "cuda_api.h"
#include "cuda_code.h"
#include "device.h"
#include "status.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace halation::runtime {
namespace {

using namespace cuda;

halation_status failed(const char *what, Code code) {
    return fail(code == out_of_memory ? HALATION_OUT_OF_MEMORY : HALATION_INTERNAL_ERROR, "cuda: %s: %s", what,
                code_text(code).c_str());
}

#define TRY_CUDA(what, call)                                \
    do {                                                    \
        const Code try_code = (call);                       \
        if (try_code != 0) return failed((what), try_code); \
    } while (0)

// A context is current for as long as this lives; the thread's own is as it was afterwards.
class Current {
public:
    explicit Current(Context context) : code_(api().push_context(context)) {}
    ~Current() {
        Context popped;
        if (code_ == 0) api().pop_context(&popped);
    }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;
    Code code() const { return code_; }

private:
    Code code_;
};

// Stores words that come with the launch itself, so that they are copied when it is made: a graph that is being captured keeps
// them, and host memory that others write to in the meantime is not involved. One for few words, one for many.
struct Put {
    const char *entry;
    size_t words;
};
constexpr Put puts[] = {{"halation_put_few", 96}, {"halation_put_many", 960}};

std::string put_code() {
    std::string text = ".version 6.0\n.target sm_50\n.address_size 64\n";
    for (const Put &put : puts)
        text += std::string(".visible .entry ") + put.entry + "(.param .u64 to, .param .u32 count, .param .align 4 .b8 words[" +
                std::to_string(4 * put.words) + "]) {\n" +
                R"(    .reg .pred %outside;
    .reg .b32 %index, %count, %block, %threads, %word;
    .reg .b64 %to, %offset, %from;
    ld.param.u64 %to, [to];
    cvta.to.global.u64 %to, %to;
    ld.param.u32 %count, [count];
    mov.u32 %index, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mad.lo.u32 %index, %block, %threads, %index;
    setp.ge.u32 %outside, %index, %count;
    @%outside bra done;
    mul.wide.u32 %offset, %index, 4;
    mov.u64 %from, words;
    add.u64 %from, %from, %offset;
    ld.param.u32 %word, [%from];
    add.u64 %to, %to, %offset;
    st.global.u32 [%to], %word;
done:
    ret;
}
)";
    return text;
}

class CudaDevice : public Device {
public:
    ~CudaDevice() override {
        if (!context_) return;
        {
            const Current current(context_);
            for (auto &[code, loaded] : modules_) api().unload_module(loaded.module);
        }
        if (primary_) api().release_primary_context(device_);
    }

    halation_status open(const halation_device_options &options) {
        info_ = HALATION_INIT(halation_device_info);
        copy_text(info_.backend, "cuda");
        auto *stream = static_cast<Stream>(options.native_queue);
        auto *context = static_cast<Context>(options.native_context);
        if (stream && !context) TRY_CUDA("native_queue: cuStreamGetCtx", api().get_stream_context(stream, &context));
        int ordinal = options.ordinal;
        if (context) {
            const Current current(context);
            TRY_CUDA("native_context: cuCtxPushCurrent", current.code());
            TRY_CUDA("native_context: cuCtxGetDevice", api().get_context_device(&device_));
            ordinal = 0;
            DeviceId at = -1;
            while (api().get_device(&at, ordinal) == 0 && at != device_) ordinal++;
        } else {
            TRY_CUDA("cuDeviceGet", api().get_device(&device_, ordinal));
            TRY_CUDA("cuDevicePrimaryCtxRetain", api().retain_primary_context(&context, device_));
            primary_ = true;
        }
        context_ = context;
        info_.device = {kDLCUDA, ordinal};
        info_.native_context = context;
        HALATION_TRY(describe(device_, &info_));
        HALATION_TRY(find_limits());
        put_code_ = put_code();
        HALATION_TRY(load(put_code_.c_str(), put_code_.size() + 1));
        for (const Put &put : puts) {
            LoadedFunction *function = nullptr;
            HALATION_TRY(find_function(put_code_.c_str(), put.entry, &function));
        }
        return set_queue(stream);
    }

    static halation_status describe(DeviceId device, halation_device_info *info) {
        size_t bytes = 0;
        TRY_CUDA("cuDeviceGetName", api().get_device_name(info->name, sizeof info->name, device));
        TRY_CUDA("cuDeviceTotalMem", api().get_total_memory(&bytes, device));
        info->memory_bytes = bytes;
        return HALATION_OK;
    }

    halation_status set_queue(void *native_queue) override {
        auto *stream = static_cast<Stream>(native_queue);
        if (stream) {
            const Current current(context_);
            TRY_CUDA("cuCtxPushCurrent", current.code());
            Context of_stream = nullptr;
            TRY_CUDA("native_queue: cuStreamGetCtx", api().get_stream_context(stream, &of_stream));
            if (of_stream != context_)
                return fail(HALATION_INVALID_ARGUMENT,
                            "native_queue: is a stream of another CUcontext than the device that was opened");
        }
        stream_ = stream;
        info_.native_queue = stream;
        return HALATION_OK;
    }

    halation_status load(const void *code, size_t bytes) override {
        if (modules_.count(code)) return HALATION_OK;
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        std::vector<const void *> choices;
        HALATION_TRY(choose_code(code, bytes, architecture_, &choices));
        for (const void *choice : choices) {
            char log[1500] = {};
            int options[] = {jit_error_log_buffer, jit_error_log_buffer_bytes};
            void *values[] = {log, reinterpret_cast<void *>(sizeof log - 1)};
            Module module = nullptr;
            const Code failure = api().load_module(&module, choice, 2, options, values);
            if (failure == 0) {
                modules_[code] = {module, {}};
                return HALATION_OK;
            }
            // A driver older than the machine code may still compile the PTX.
            if (failure == out_of_memory || choice == choices.back())
                return fail(failure == out_of_memory ? HALATION_OUT_OF_MEMORY : HALATION_INTERNAL_ERROR,
                            "cuda: %s took no kernel: %s: %.600s", info_.name, code_text(failure).c_str(), log);
        }
        return HALATION_OK;
    }

    halation_status prepare(const halation_launch &launch) override {
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        LoadedFunction *function = nullptr;
        HALATION_TRY(find_function(launch.code, launch.entry, &function));
        int most_threads = 0;
        TRY_CUDA("cuFuncGetAttribute", api().get_function_attribute(&most_threads, most_function_threads, function->function));
        const int64_t threads = int64_t(1) * launch.block[0] * launch.block[1] * launch.block[2];
        if (threads > most_threads)
            return fail(HALATION_UNSUPPORTED, "cuda: %s takes blocks of %lld threads, for which %s has registers up to %d",
                        launch.entry, static_cast<long long>(threads), info_.name, most_threads);
        return allow_shared(launch, function);
    }

    halation_status launch(const halation_launch &launch) override {
        for (int d = 0; d < 3; d++)
            if (launch.grid[d] <= 0 || launch.block[d] <= 0) return HALATION_OK;
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        LoadedFunction *function = nullptr;
        HALATION_TRY(find_function(launch.code, launch.entry, &function));
        HALATION_TRY(allow_shared(launch, function));
        const auto size = [](int32_t extent) { return static_cast<unsigned>(extent); };
        // Both of a value and of a buffer's handle, an address is what is wanted.
        const Code code =
            api().launch_kernel(function->function, size(launch.grid[0]), size(launch.grid[1]), size(launch.grid[2]),
                                size(launch.block[0]), size(launch.block[1]), size(launch.block[2]), size(launch.shared_bytes),
                                stream_, const_cast<void **>(launch.arguments), nullptr);
        if (code != 0)
            return fail(code == out_of_memory ? HALATION_OUT_OF_MEMORY : HALATION_INTERNAL_ERROR,
                        "cuda: launch of %s in %d x %d x %d blocks of %d x %d x %d threads with %d bytes shared: %s",
                        launch.entry, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                        launch.block[2], launch.shared_bytes, code_text(code).c_str());
        return HALATION_OK;
    }

    halation_status submit() override { return HALATION_OK; }

    halation_status allocate(size_t bytes, void **data) override {
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        Address address = 0;
        const Code code = api().allocate(&address, bytes);
        if (code != 0)
            return fail(code == out_of_memory ? HALATION_OUT_OF_MEMORY : HALATION_INTERNAL_ERROR,
                        "cuda: no memory for %zu bytes: %s", bytes, code_text(code).c_str());
        *data = reinterpret_cast<void *>(address);
        return HALATION_OK;
    }

    halation_status release(void *data) override {
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        TRY_CUDA("cuMemFree", api().release(address_of(data)));
        return HALATION_OK;
    }

    halation_status copy_to(void *data, size_t offset, const void *from, size_t bytes) override {
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        const Code code = api().copy_to(address_of(data) + offset, from, bytes, stream_);
        if (code != 0) return copy_failed("cuMemcpyHtoDAsync", code, data, offset, bytes);
        TRY_CUDA("cuStreamSynchronize", api().synchronize(stream_));
        return HALATION_OK;
    }

    halation_status copy_from(const void *data, size_t offset, void *to, size_t bytes) override {
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        const Code code = api().copy_from(to, address_of(data) + offset, bytes, stream_);
        if (code != 0) return copy_failed("cuMemcpyDtoHAsync", code, data, offset, bytes);
        TRY_CUDA("cuStreamSynchronize", api().synchronize(stream_));
        return HALATION_OK;
    }

    halation_status synchronize() override {
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        TRY_CUDA("cuStreamSynchronize", api().synchronize(stream_));
        return HALATION_OK;
    }

    halation_status put(void *data, const int32_t *words, size_t count) override {
        const Current current(context_);
        TRY_CUDA("cuCtxPushCurrent", current.code());
        for (size_t done = 0; done < count;) {
            const Put &put = puts[count - done > puts[0].words];
            const size_t some = std::min(count - done, put.words);
            int32_t carried[puts[1].words];
            std::copy_n(words + done, some, carried);
            Address to = address_of(data) + done * sizeof *words;
            auto few = static_cast<uint32_t>(some);
            void *arguments[] = {&to, &few, carried};
            LoadedFunction *function = nullptr;
            HALATION_TRY(find_function(put_code_.c_str(), put.entry, &function));
            TRY_CUDA("launch of the table of sequences",
                     api().launch_kernel(function->function, (few + 95) / 96, 1, 1, 96, 1, 1, 0, stream_, arguments, nullptr));
            done += some;
        }
        return HALATION_OK;
    }

    bool capturing() override {
        const Current current(context_);
        int status = 0;
        return current.code() == 0 && api().is_capturing(stream_, &status) == 0 && status != 0;
    }

    halation_status locate(const char *, void *data, uint64_t offset, const Access &, Location *location) override {
        *location = {nullptr, static_cast<char *>(data) + offset, UINT64_MAX};
        return HALATION_OK;
    }

    halation_status point_to(const char *, const Location &location, uint64_t, uint64_t *handle) override {
        *handle = reinterpret_cast<uintptr_t>(location.address);
        return HALATION_OK;
    }
    void let_go(uint64_t) override {}

    size_t alignment() const override { return 256; }
    bool reaches_back() const override { return true; }

private:
    struct LoadedFunction {
        Function function;
        int32_t shared_bytes;  // that a launch may have
    };
    struct LoadedModule {
        Module module;
        std::map<std::string, LoadedFunction> functions;
    };

    halation_status find_limits() {
        const auto find = [&](int attribute, int64_t *limit) -> halation_status {
            int value = 0;
            TRY_CUDA("cuDeviceGetAttribute", api().get_device_attribute(&value, attribute, device_));
            *limit = value;
            return HALATION_OK;
        };
        int64_t major = 0, minor = 0;
        HALATION_TRY(find(capability_major, &major));
        HALATION_TRY(find(capability_minor, &minor));
        architecture_ = static_cast<int>(10 * major + minor);
        HALATION_TRY(find(most_shared_bytes, &limits_.shared_bytes));
        HALATION_TRY(find(most_block_threads, &limits_.threads));
        for (int d = 0; d < 3; d++) {
            HALATION_TRY(find(most_grid_extent + d, &limits_.grid[d]));
            HALATION_TRY(find(most_block_extent + d, &limits_.block[d]));
        }
        return HALATION_OK;
    }

    // The driver is asked first, and only on its refusal where the memory ends: of memory mapped in pieces it names but one
    // piece.
    static halation_status copy_failed(const char *what, Code code, const void *data, size_t offset, size_t bytes) {
        Address begin = 0;
        size_t all = 0;
        if (code != invalid_value) return failed(what, code);
        if (api().get_range(&begin, &all, address_of(data)) != 0)
            return fail(HALATION_INVALID_ARGUMENT, "data: is %p, which is no memory of the device: %s: %s", data, what,
                        code_text(code).c_str());
        const size_t left = begin + all - address_of(data);
        if (offset > left || bytes > left - offset)
            return fail(HALATION_INVALID_ARGUMENT, "bytes: got %zu at offset %zu; the memory has %zu from data on", bytes, offset,
                        left);
        return failed(what, code);
    }

    static Address address_of(const void *data) { return reinterpret_cast<uintptr_t>(data); }

    halation_status find_function(const void *code, const char *entry, LoadedFunction **function) {
        const auto loaded = modules_.find(code);
        if (loaded == modules_.end())
            return fail(HALATION_INTERNAL_ERROR, "cuda: %s is launched before its code is loaded", entry);
        LoadedFunction &found = loaded->second.functions[entry];
        if (!found.function) {
            const Current current(context_);
            TRY_CUDA("cuCtxPushCurrent", current.code());
            const Code failure = api().get_function(&found.function, loaded->second.module, entry);
            if (failure != 0)
                return fail(HALATION_INTERNAL_ERROR, "cuda: a module has no %s: %s", entry, code_text(failure).c_str());
            found.shared_bytes = 48 << 10;
        }
        *function = &found;
        return HALATION_OK;
    }

    static halation_status allow_shared(const halation_launch &launch, LoadedFunction *function) {
        if (launch.shared_bytes <= function->shared_bytes) return HALATION_OK;
        const Code failure = api().set_function_attribute(function->function, most_dynamic_shared_bytes, launch.shared_bytes);
        if (failure != 0)
            return fail(HALATION_UNSUPPORTED, "cuda: %s takes %d bytes of shared memory in a block, more than the device has: %s",
                        launch.entry, launch.shared_bytes, code_text(failure).c_str());
        function->shared_bytes = launch.shared_bytes;
        return HALATION_OK;
    }

    DeviceId device_ = 0;
    Context context_ = nullptr;
    Stream stream_ = nullptr;
    bool primary_ = false;
    int architecture_ = 0;  // 90: compute capability 9.0
    std::string put_code_;
    std::map<const void *, LoadedModule> modules_;
};

halation_status count_devices(int32_t *count) {
    if (!api().library.usable()) return fail(HALATION_UNSUPPORTED, "cuda is not there: %s", api().library.fault());
    int found = 0;
    const Code code = api().started != 0 ? api().started : api().get_device_count(&found);
    if (code != 0) return fail(HALATION_UNSUPPORTED, "cuda is not there: %s", code_text(code).c_str());
    if (found == 0) return fail(HALATION_UNSUPPORTED, "cuda is not there: its driver has found no device");
    *count = found;
    return HALATION_OK;
}

halation_status describe_ordinal(int32_t ordinal, halation_device_info *info) {
    DeviceId device = 0;
    TRY_CUDA("cuDeviceGet", api().get_device(&device, ordinal));
    return CudaDevice::describe(device, info);
}

halation_status open_device(const halation_device_options &options, std::unique_ptr<Device> *device) {
    auto made = std::make_unique<CudaDevice>();
    HALATION_TRY(made->open(options));
    *device = std::move(made);
    return HALATION_OK;
}

}  // namespace

const Backend cuda_backend = {"cuda", kDLCUDA, count_devices, describe_ordinal, open_device};

}  // namespace halation::runtime
