// OpenCL: a context and an in-order queue, the caller's or ours. Memory is cl_mem; kernels are pointed into the middle of one by
// sub-buffers.
#include "device.h"
#include "opencl_api.h"
#include "status.h"
#include "text.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace halation::runtime {
namespace {

// Of a block, as GPUs have them. PoCL takes 4096, and keeps the registers of all of them on one thread's stack, which then
// overflows.
constexpr int64_t most_block_threads = 1024;

using namespace opencl;

// Of the addresses that Locations get: a cl_mem has none, and 0 would be NULL. A multiple of any alignment.
constexpr uintptr_t first_address = uintptr_t(1) << 20;

halation_status failed(const char *what, Code code) {
    const bool memory = code == memory_object_allocation_failure || code == out_of_host_memory || code == out_of_resources;
    return fail(memory ? HALATION_OUT_OF_MEMORY : HALATION_INTERNAL_ERROR, "opencl: %s: %s", what, code_name(code).c_str());
}

#define TRY_CL(what, call)                                  \
    do {                                                    \
        const Code try_code = (call);                       \
        if (try_code != 0) return failed((what), try_code); \
    } while (0)

struct Found {
    Platform platform;
    DeviceId device;
};

// All devices, GPUs first, otherwise in the order of their platforms.
halation_status find_devices(std::vector<Found> *found) {
    if (!api().library.usable()) return fail(HALATION_UNSUPPORTED, "opencl is not there: %s", api().library.fault());
    uint32_t platform_count = 0;
    const Code code = api().get_platforms(0, nullptr, &platform_count);
    if (code == platform_not_found || (code == 0 && platform_count == 0))
        return fail(HALATION_UNSUPPORTED, "opencl is not there: the library has found no driver of a device");
    TRY_CL("clGetPlatformIDs", code);
    std::vector<Platform> platforms(platform_count);
    TRY_CL("clGetPlatformIDs", api().get_platforms(platform_count, platforms.data(), nullptr));
    std::vector<Found> others;
    for (const Platform platform : platforms) {
        uint32_t count = 0;
        if (api().get_devices(platform, device_type_all, 0, nullptr, &count) != 0 || count == 0) continue;
        std::vector<DeviceId> devices(count);
        TRY_CL("clGetDeviceIDs", api().get_devices(platform, device_type_all, count, devices.data(), nullptr));
        for (const DeviceId device : devices) {
            uint64_t type = 0;
            TRY_CL("clGetDeviceInfo", api().get_device_info(device, device_type, sizeof type, &type, nullptr));
            (type & device_type_gpu ? *found : others).push_back({platform, device});
        }
    }
    found->insert(found->end(), others.begin(), others.end());
    if (found->empty()) return fail(HALATION_UNSUPPORTED, "opencl is not there: its drivers have found no device");
    return HALATION_OK;
}

halation_status describe_device(DeviceId device, halation_device_info *info) {
    char name[256] = {};
    TRY_CL("clGetDeviceInfo", api().get_device_info(device, device_name, sizeof name - 1, name, nullptr));
    copy_text(info->name, name);
    TRY_CL("clGetDeviceInfo",
           api().get_device_info(device, device_memory_bytes, sizeof info->memory_bytes, &info->memory_bytes, nullptr));
    return HALATION_OK;
}

class OpenclDevice : public Device {
public:
    ~OpenclDevice() override {
        if (queue_) api().finish(queue_);  // what is staged may still be read
        for (Staged &staged : staged_)
            if (staged.event) api().release_event(staged.event);
        for (auto &[code, loaded] : programs_) {
            for (auto &[name, kernel] : loaded.kernels) api().release_kernel(kernel);
            api().release_program(loaded.program);
        }
        if (queue_) api().release_queue(queue_);
        if (own_queue_) api().release_queue(own_queue_);
        if (context_) api().release_context(context_);
    }

    halation_status open(const halation_device_options &options) {
        info_ = HALATION_INIT(halation_device_info);
        copy_text(info_.backend, "opencl");
        info_.device = {kDLOpenCL, options.ordinal};
        auto *queue = static_cast<Queue>(options.native_queue);
        if (options.native_context || queue)
            HALATION_TRY(use(static_cast<Context>(options.native_context), queue));
        else
            HALATION_TRY(make(options.ordinal));
        HALATION_TRY(describe_device(device_, &info_));
        uint32_t bits = 0;
        TRY_CL("clGetDeviceInfo", api().get_device_info(device_, device_base_alignment, sizeof bits, &bits, nullptr));
        alignment_ = std::max<size_t>(bits / 8, 64);
        HALATION_TRY(find_limits());
        info_.native_context = context_;
        return set_queue(queue);
    }

    halation_status set_queue(void *native_queue) override {
        auto *queue = static_cast<Queue>(native_queue);
        if (queue) {
            HALATION_TRY(check_queue(queue));
        } else {
            Code code = 0;
            if (!own_queue_) own_queue_ = api().create_queue(context_, device_, 0, &code);
            if (!own_queue_) return failed("clCreateCommandQueue", code);
            queue = own_queue_;
        }
        TRY_CL("clRetainCommandQueue", api().retain_queue(queue));
        if (queue_) api().release_queue(queue_);
        queue_ = queue;
        info_.native_queue = queue;
        return HALATION_OK;
    }

    halation_status load(const void *code, size_t bytes) override {
        if (programs_.count(code)) return HALATION_OK;
        Code failure = 0;
        const char *text = static_cast<const char *>(code);
        const size_t length = strnlen(text, bytes);
        const Program program = api().create_program(context_, 1, &text, &length, &failure);
        if (!program) return failed("clCreateProgramWithSource", failure);
        failure = api().build_program(program, 1, &device_, "", nullptr, nullptr);
        if (failure != 0) {
            std::string log(4000, 0);
            api().get_build_info(program, device_, program_build_log, log.size() - 1, &log[0], nullptr);
            api().release_program(program);
            return fail(HALATION_INTERNAL_ERROR, "opencl: %s did not compile a kernel: %s: %.600s", info_.name,
                        code_name(failure).c_str(), log.c_str());
        }
        programs_[code] = {program, {}};
        return HALATION_OK;
    }

    halation_status prepare(const halation_launch &launch) override {
        Kernel kernel = nullptr;
        HALATION_TRY(find_kernel(launch, &kernel));
        size_t most_threads = 0;
        TRY_CL("clGetKernelWorkGroupInfo",
               api().get_kernel_info(kernel, device_, kernel_block_threads, sizeof most_threads, &most_threads, nullptr));
        const int64_t threads = int64_t(1) * launch.block[0] * launch.block[1] * launch.block[2];
        if (static_cast<uint64_t>(threads) > most_threads)
            return fail(HALATION_UNSUPPORTED, "opencl: %s takes blocks of %lld threads; of this function %s takes up to %zu",
                        launch.entry, static_cast<long long>(threads), info_.name, most_threads);
        return HALATION_OK;
    }

    halation_status launch(const halation_launch &launch) override {
        Kernel kernel = nullptr;
        HALATION_TRY(find_kernel(launch, &kernel));
        size_t local[3], global[3];
        for (int d = 0; d < 3; d++) {
            local[d] = static_cast<size_t>(launch.block[d]);
            global[d] = static_cast<size_t>(launch.grid[d]) * local[d];
            if (global[d] == 0) return HALATION_OK;
        }
        uint32_t next = 0;
        for (int i = 0; i < launch.argument_count; i++, next++) {
            const Code code = set_argument(kernel, next, launch, i);
            if (code != 0)
                return fail(HALATION_INTERNAL_ERROR, "opencl: argument %d of %s: %s", i, launch.entry, code_name(code).c_str());
        }
        // Halide's kernels take their shared memory last, whether they use it or not; no memory would be an error.
        const size_t shared = static_cast<size_t>(std::max(launch.shared_bytes, 64));
        Code code = api().set_argument(kernel, next, shared, nullptr);
        if (code == 0) code = api().enqueue_kernel(queue_, kernel, 3, nullptr, global, local, 0, nullptr, nullptr);
        if (code != 0)
            return fail(code == memory_object_allocation_failure ? HALATION_OUT_OF_MEMORY : HALATION_INTERNAL_ERROR,
                        "opencl: launch of %s in %d x %d x %d blocks of %d x %d x %d threads: %s", launch.entry, launch.grid[0],
                        launch.grid[1], launch.grid[2], launch.block[0], launch.block[1], launch.block[2],
                        code_name(code).c_str());
        return HALATION_OK;
    }

    halation_status submit() override {
        TRY_CL("clFlush", api().flush(queue_));
        return HALATION_OK;
    }

    halation_status allocate(size_t bytes, void **data) override {
        Code code = 0;
        *data = api().create_buffer(context_, memory_read_write, bytes, nullptr, &code);
        if (!*data) return fail(HALATION_OUT_OF_MEMORY, "opencl: no memory for %zu bytes: %s", bytes, code_name(code).c_str());
        return HALATION_OK;
    }

    halation_status release(void *data) override {
        TRY_CL("clReleaseMemObject", api().release_memory(static_cast<Memory>(data)));
        return HALATION_OK;
    }

    halation_status copy_to(void *data, size_t offset, const void *from, size_t bytes) override {
        HALATION_TRY(check_copy(static_cast<Memory>(data), offset, bytes, host_reads_only | host_has_no_access));
        TRY_CL("clEnqueueWriteBuffer",
               api().enqueue_write(queue_, static_cast<Memory>(data), 1, offset, bytes, from, 0, nullptr, nullptr));
        return HALATION_OK;
    }

    halation_status copy_from(const void *data, size_t offset, void *to, size_t bytes) override {
        auto *memory = static_cast<Memory>(const_cast<void *>(data));
        HALATION_TRY(check_copy(memory, offset, bytes, host_writes_only | host_has_no_access));
        TRY_CL("clEnqueueReadBuffer", api().enqueue_read(queue_, memory, 1, offset, bytes, to, 0, nullptr, nullptr));
        return HALATION_OK;
    }

    halation_status synchronize() override {
        TRY_CL("clFinish", api().finish(queue_));
        return HALATION_OK;
    }

    // The queue reads the words later, so they wait in memory that is used again once it has been read.
    halation_status put(void *data, const int32_t *words, size_t count) override {
        Staged *free = nullptr;
        for (Staged &staged : staged_)
            if (done(staged)) free = &staged;
        if (!free) free = &staged_.emplace_back();
        if (free->event) api().release_event(free->event);
        free->event = nullptr;
        free->words.assign(words, words + count);
        TRY_CL("clEnqueueWriteBuffer", api().enqueue_write(queue_, static_cast<Memory>(data), 0, 0, count * sizeof *words,
                                                           free->words.data(), 0, nullptr, &free->event));
        return HALATION_OK;
    }

    bool capturing() override { return false; }

    // A sub-buffer of the caller's is a part of its parent, which others of the caller's tensors may lie in too.
    halation_status locate(const char *name, void *data, uint64_t offset, const Access &access, Location *location) override {
        auto *memory = static_cast<Memory>(data);
        Context context = nullptr;
        const Code code = api().get_memory_info(memory, memory_context, sizeof context, &context, nullptr);
        if (code != 0)
            return fail(HALATION_INVALID_ARGUMENT, "%s: data is %p; must be a cl_mem (%s)", name, data, code_name(code).c_str());
        if (context != context_)
            return fail(HALATION_INVALID_ARGUMENT, "%s: its cl_mem is of another cl_context than the device that was opened",
                        name);
        uint64_t flags = 0;
        TRY_CL("clGetMemObjectInfo", api().get_memory_info(memory, memory_flags, sizeof flags, &flags, nullptr));
        if (access.written && flags & memory_read_only)
            return fail(HALATION_INVALID_ARGUMENT, "%s: its cl_mem is CL_MEM_READ_ONLY; kernels write it", name);
        if (access.read && flags & memory_write_only)
            return fail(HALATION_INVALID_ARGUMENT, "%s: its cl_mem is CL_MEM_WRITE_ONLY; kernels read it", name);
        Memory parent = nullptr;
        size_t begin = 0, bytes = 0;
        TRY_CL("clGetMemObjectInfo", api().get_memory_info(memory, memory_size, sizeof bytes, &bytes, nullptr));
        TRY_CL("clGetMemObjectInfo", api().get_memory_info(memory, memory_parent, sizeof parent, &parent, nullptr));
        if (parent) TRY_CL("clGetMemObjectInfo", api().get_memory_info(memory, memory_offset, sizeof begin, &begin, nullptr));
        if (offset > bytes)
            return fail(HALATION_INVALID_ARGUMENT, "%s: byte_offset is %llu; its cl_mem has %zu bytes", name,
                        static_cast<unsigned long long>(offset), bytes);
        location->memory = parent ? parent : memory;
        location->address = reinterpret_cast<char *>(first_address + begin + offset);
        location->bytes = bytes - offset;
        return HALATION_OK;
    }

    halation_status point_to(const char *name, const Location &location, uint64_t bytes, uint64_t *handle) override {
        auto *memory = static_cast<Memory>(const_cast<void *>(location.memory));
        const size_t begin = reinterpret_cast<uintptr_t>(location.address) - first_address;
        if (bytes > location.bytes)
            return fail(HALATION_INVALID_ARGUMENT, "%s: takes %llu bytes of its cl_mem, which has %llu from there on", name,
                        static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(location.bytes));
        if (begin == 0) {
            TRY_CL("clRetainMemObject", api().retain_memory(memory));
        } else {
            if (begin % alignment_ != 0)
                return fail(HALATION_INVALID_ARGUMENT,
                            "%s: begins at byte %zu of its cl_mem; %s takes offsets that are a multiple of %zu", name, begin,
                            info_.name, alignment_);
            const Region region = {begin, static_cast<size_t>(bytes)};
            Code code = 0;
            memory = api().create_sub_buffer(memory, as_its_parent, buffer_create_region, &region, &code);
            if (!memory) return failed("clCreateSubBuffer", code);
        }
        *handle = reinterpret_cast<uintptr_t>(memory);
        return HALATION_OK;
    }

    // What was launched with it keeps it.
    void let_go(uint64_t handle) override { api().release_memory(reinterpret_cast<Memory>(static_cast<uintptr_t>(handle))); }

    size_t alignment() const override { return alignment_; }
    bool reaches_back() const override { return false; }

private:
    struct Loaded {
        Program program;
        std::map<std::string, Kernel> kernels;
    };
    struct Staged {
        std::vector<int32_t> words;
        Event event = nullptr;
    };

    // `forbidding`: flags of memory that the host may not so copy.
    static halation_status check_copy(Memory memory, size_t offset, size_t bytes, uint64_t forbidding) {
        size_t all = 0;
        uint64_t flags = 0;
        const Code code = api().get_memory_info(memory, memory_size, sizeof all, &all, nullptr);
        if (code != 0)
            return fail(HALATION_INVALID_ARGUMENT, "data: is %p; must be a cl_mem (%s)", static_cast<void *>(memory),
                        code_name(code).c_str());
        TRY_CL("clGetMemObjectInfo", api().get_memory_info(memory, memory_flags, sizeof flags, &flags, nullptr));
        if (offset > all || bytes > all - offset)
            return fail(HALATION_INVALID_ARGUMENT, "bytes: got %zu at offset %zu; the cl_mem has %zu", bytes, offset, all);
        if (flags & forbidding)
            return fail(HALATION_INVALID_ARGUMENT, "data: the flags of its cl_mem, %llu, forbid the host to copy so",
                        static_cast<unsigned long long>(flags));
        return HALATION_OK;
    }

    halation_status find_limits() {
        uint64_t shared = 0;
        size_t threads = 0, block[3] = {};
        TRY_CL("clGetDeviceInfo", api().get_device_info(device_, device_shared_bytes, sizeof shared, &shared, nullptr));
        TRY_CL("clGetDeviceInfo", api().get_device_info(device_, device_block_threads, sizeof threads, &threads, nullptr));
        TRY_CL("clGetDeviceInfo", api().get_device_info(device_, device_block_extents, sizeof block, block, nullptr));
        limits_.shared_bytes = static_cast<int64_t>(shared);
        limits_.threads = std::min<int64_t>(static_cast<int64_t>(threads), most_block_threads);
        for (int d = 0; d < 3; d++) {
            limits_.grid[d] = INT32_MAX;  // OpenCL names none
            limits_.block[d] = static_cast<int64_t>(block[d]);
        }
        return HALATION_OK;
    }

    halation_status make(int32_t ordinal) {
        std::vector<Found> found;
        HALATION_TRY(find_devices(&found));
        if (ordinal < 0 || static_cast<size_t>(ordinal) >= found.size())
            return fail(HALATION_INVALID_ARGUMENT, "ordinal: got %d; there are %zu opencl devices", ordinal, found.size());
        const Found &chosen = found[static_cast<size_t>(ordinal)];
        device_ = chosen.device;
        const intptr_t properties[] = {context_platform, reinterpret_cast<intptr_t>(chosen.platform), 0};
        Code code = 0;
        context_ = api().create_context(properties, 1, &device_, nullptr, nullptr, &code);
        return context_ ? HALATION_OK : failed("clCreateContext", code);
    }

    halation_status use(Context context, Queue queue) {
        if (queue) {
            Context of_queue = nullptr;
            TRY_CL("native_queue: clGetCommandQueueInfo",
                   api().get_queue_info(queue, queue_context, sizeof of_queue, &of_queue, nullptr));
            TRY_CL("native_queue: clGetCommandQueueInfo",
                   api().get_queue_info(queue, queue_device, sizeof device_, &device_, nullptr));
            if (context && context != of_queue)
                return fail(HALATION_INVALID_ARGUMENT, "native_queue: is of another cl_context than native_context");
            context = of_queue;
        } else {
            size_t bytes = 0;
            TRY_CL("native_context: clGetContextInfo", api().get_context_info(context, context_devices, 0, nullptr, &bytes));
            std::vector<DeviceId> devices(bytes / sizeof(DeviceId));
            if (devices.empty()) return fail(HALATION_INVALID_ARGUMENT, "native_context: has no device");
            TRY_CL("native_context: clGetContextInfo",
                   api().get_context_info(context, context_devices, bytes, devices.data(), nullptr));
            device_ = devices[0];
        }
        TRY_CL("clRetainContext", api().retain_context(context));
        context_ = context;
        return HALATION_OK;
    }

    halation_status check_queue(Queue queue) {
        Context context = nullptr;
        DeviceId device = nullptr;
        uint64_t properties = 0;
        TRY_CL("native_queue: clGetCommandQueueInfo",
               api().get_queue_info(queue, queue_context, sizeof context, &context, nullptr));
        TRY_CL("native_queue: clGetCommandQueueInfo", api().get_queue_info(queue, queue_device, sizeof device, &device, nullptr));
        TRY_CL("native_queue: clGetCommandQueueInfo",
               api().get_queue_info(queue, queue_properties, sizeof properties, &properties, nullptr));
        if (context != context_ || device != device_)
            return fail(HALATION_INVALID_ARGUMENT,
                        "native_queue: is of another cl_context or device than the device that was opened");
        if (properties & queue_out_of_order)
            return fail(HALATION_INVALID_ARGUMENT, "native_queue: runs out of order; must be an in-order queue");
        return HALATION_OK;
    }

    halation_status find_kernel(const halation_launch &launch, Kernel *kernel) {
        const auto loaded = programs_.find(launch.code);
        if (loaded == programs_.end())
            return fail(HALATION_INTERNAL_ERROR, "opencl: %s is launched before its code is loaded", launch.entry);
        Kernel &found = loaded->second.kernels[launch.entry];
        Code code = 0;
        if (!found) found = api().create_kernel(loaded->second.program, launch.entry, &code);
        if (!found)
            return fail(HALATION_INTERNAL_ERROR, "opencl: a program has no %s: %s", launch.entry, code_name(code).c_str());
        *kernel = found;
        return HALATION_OK;
    }

    static Code set_argument(Kernel kernel, uint32_t index, const halation_launch &launch, int argument) {
        if (!launch.is_buffer[argument])
            return api().set_argument(kernel, index, launch.argument_bytes[argument], launch.arguments[argument]);
        uint64_t handle;
        memcpy(&handle, launch.arguments[argument], sizeof handle);
        auto *memory = reinterpret_cast<Memory>(static_cast<uintptr_t>(handle));
        return api().set_argument(kernel, index, sizeof memory, &memory);
    }

    static bool done(const Staged &staged) {
        int32_t status = 1;
        return !staged.event ||
               (api().get_event_info(staged.event, event_status, sizeof status, &status, nullptr) == 0 && status <= 0);
    }

    Context context_ = nullptr;
    DeviceId device_ = nullptr;
    Queue queue_ = nullptr, own_queue_ = nullptr;
    size_t alignment_ = 0;
    std::map<const void *, Loaded> programs_;
    std::vector<Staged> staged_;
};

halation_status count_devices(int32_t *count) {
    std::vector<Found> found;
    HALATION_TRY(find_devices(&found));
    *count = static_cast<int32_t>(found.size());
    return HALATION_OK;
}

halation_status describe(int32_t ordinal, halation_device_info *info) {
    std::vector<Found> found;
    HALATION_TRY(find_devices(&found));
    return describe_device(found.at(static_cast<size_t>(ordinal)).device, info);
}

halation_status open_device(const halation_device_options &options, std::unique_ptr<Device> *device) {
    auto made = std::make_unique<OpenclDevice>();
    HALATION_TRY(made->open(options));
    *device = std::move(made);
    return HALATION_OK;
}

}  // namespace

const Backend opencl_backend = {"opencl", kDLOpenCL, count_devices, describe, open_device};

}  // namespace halation::runtime
