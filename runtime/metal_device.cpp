// Metal: a device and a command queue, the caller's or ours. Memory is MTLBuffers; kernels are pointed into the middle of one by
// an offset. What a run starts is encoded into one command buffer, which is committed at its end and not waited for.
#include "device.h"
#include "metal_api.h"
#include "status.h"
#include "text.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace halation::runtime {
namespace {

using namespace metal;

// Of the addresses that Locations get: an MTLBuffer has none that counts, and 0 would be NULL.
constexpr uintptr_t first_address = uintptr_t(1) << 20;

// macOS copies from buffer to buffer no less.
constexpr size_t word = 4;

Object object_of(void *native) {
    return static_cast<Object>(native);
}

// Those of an NSString, and of an NSError.
std::string text_of(Object string) {
    const char *text = send<const char *>(string, "UTF8String");
    return text ? text : "";
}
std::string error_text(Object error) {
    const std::string text = text_of(send<Object>(error, "localizedDescription"));
    return text.empty() ? "an error without a description" : text;
}

Owned string_of(const char *text, size_t bytes) {
    const auto string = send<Object>(reinterpret_cast<Object>(api().get_class("NSString")), "alloc");
    return Owned(send<Object>(string, "initWithBytes:length:encoding:", static_cast<const void *>(text), bytes, encoding_utf8));
}

halation_status no_memory(size_t bytes) {
    return fail(HALATION_OUT_OF_MEMORY, "metal: no memory for %zu bytes", bytes);
}

// All devices of the system; where it does not list them, its default one.
halation_status find_devices(std::vector<Owned> *found) {
    if (api().fault) return fail(HALATION_UNSUPPORTED, "metal is not there: %s", api().fault);
    const Pool pool;
    if (api().all_devices) {
        const Owned all(api().all_devices());
        const auto count = send<size_t>(all.get(), "count");
        for (size_t i = 0; i < count; i++) found->push_back(Owned::retained(send<Object>(all.get(), "objectAtIndex:", i)));
    }
    if (!found->empty()) return HALATION_OK;
    Owned only(api().default_device());
    if (!only) return fail(HALATION_UNSUPPORTED, "metal is not there: the system has no device for it");
    found->push_back(std::move(only));
    return HALATION_OK;
}

void describe_device(Object device, halation_device_info *info) {
    const Pool pool;
    copy_text(info->name, text_of(send<Object>(device, "name")).c_str());
    const char *working_set = "recommendedMaxWorkingSetSize";
    info->memory_bytes = responds(device, working_set) ? send<uint64_t>(device, working_set) : 0;
}

// Where a kernel is pointed to.
struct Handle {
    Owned buffer;
    size_t offset;
};

class MetalDevice : public Device {
public:
    ~MetalDevice() override {
        const Pool pool;
        abandon();
    }

    halation_status open(const halation_device_options &options) {
        const Pool pool;
        info_ = HALATION_INIT(halation_device_info);
        copy_text(info_.backend, "metal");
        info_.device = {kDLMetal, options.ordinal};
        const Object queue = object_of(options.native_queue), device = object_of(options.native_context);
        if (queue || device) {
            const auto of_queue = queue ? send<Object>(queue, "device") : device;
            if (device && device != of_queue)
                return fail(HALATION_INVALID_ARGUMENT, "native_queue: is of another MTLDevice than native_context");
            device_ = Owned::retained(of_queue);
        } else {
            std::vector<Owned> found;
            HALATION_TRY(find_devices(&found));
            if (options.ordinal < 0 || static_cast<size_t>(options.ordinal) >= found.size())
                return fail(HALATION_INVALID_ARGUMENT, "ordinal: got %d; there are %zu metal devices", options.ordinal,
                            found.size());
            device_ = std::move(found[static_cast<size_t>(options.ordinal)]);
        }
        describe_device(device_.get(), &info_);
        info_.native_context = device_.get();
        limits_.shared_bytes = static_cast<int64_t>(send<size_t>(device_.get(), "maxThreadgroupMemoryLength"));
        const auto most = send<Size>(device_.get(), "maxThreadsPerThreadgroup");
        limits_.threads = static_cast<int64_t>(most.width);
        const size_t block[] = {most.width, most.height, most.depth};
        for (int d = 0; d < 3; d++) {
            limits_.grid[d] = INT32_MAX;  // Metal names none
            limits_.block[d] = static_cast<int64_t>(block[d]);
        }
        return set_queue(queue);
    }

    halation_status set_queue(void *native_queue) override {
        const Pool pool;
        commit();  // to the queue that it was made for
        const Object queue = object_of(native_queue);
        if (queue && send<Object>(queue, "device") != device_.get())
            return fail(HALATION_INVALID_ARGUMENT, "native_queue: is of another MTLDevice than the one that was opened");
        if (!queue && !own_queue_) own_queue_.reset(send<Object>(device_.get(), "newCommandQueue"));
        if (!queue && !own_queue_) return fail(HALATION_INTERNAL_ERROR, "metal: %s makes no command queue", info_.name);
        queue_ = Owned::retained(queue ? queue : own_queue_.get());
        info_.native_queue = queue_.get();
        return HALATION_OK;
    }

    halation_status load(const void *code, size_t bytes) override {
        if (libraries_.count(code)) return HALATION_OK;
        const Pool pool;
        const char *text = static_cast<const char *>(code);
        const Owned source = string_of(text, strnlen(text, bytes)), options = exact_options();
        Object error = nullptr;
        Owned library(send<Object>(device_.get(), "newLibraryWithSource:options:error:", source.get(), options.get(), &error));
        if (!library)
            return fail(HALATION_INTERNAL_ERROR, "metal: %s did not compile a kernel: %.600s", info_.name,
                        error_text(error).c_str());
        libraries_[code].library = std::move(library);
        return HALATION_OK;
    }

    halation_status prepare(const halation_launch &launch) override {
        const Pool pool;
        Object pipeline = nullptr;
        HALATION_TRY(find_pipeline(launch, &pipeline));
        const auto most_threads = send<size_t>(pipeline, "maxTotalThreadsPerThreadgroup");
        const int64_t threads = int64_t(1) * launch.block[0] * launch.block[1] * launch.block[2];
        if (static_cast<uint64_t>(threads) > most_threads)
            return fail(HALATION_UNSUPPORTED, "metal: %s takes blocks of %lld threads; of this function %s takes up to %zu",
                        launch.entry, static_cast<long long>(threads), info_.name, most_threads);
        return check_arguments(launch);
    }

    halation_status launch(const halation_launch &launch) override {
        const Pool pool;
        const halation_status status = encode(launch);
        if (status != HALATION_OK) abandon();  // nothing of a run that failed is done
        return status;
    }

    halation_status submit() override {
        const Pool pool;
        commit();
        return HALATION_OK;
    }

    halation_status allocate(size_t bytes, void **data) override {
        const Pool pool;
        const size_t whole = (bytes + word - 1) / word * word;
        *data = send<Object>(device_.get(), "newBufferWithLength:options:", whole, storage_shared);
        return *data ? HALATION_OK : no_memory(bytes);
    }

    // What was encoded with it keeps it.
    halation_status release(void *data) override {
        const Pool pool;
        api().release(object_of(data));
        return HALATION_OK;
    }

    // Through memory that host and device share, since a buffer of the caller's may be the device's alone.
    halation_status copy_to(void *data, size_t offset, const void *from, size_t bytes) override {
        const Pool pool;
        const Object buffer = object_of(data);
        Words words;
        HALATION_TRY(find_words(buffer, offset, bytes, &words));
        if (words.bytes == bytes) {
            HALATION_TRY(encode_write(buffer, offset, from, bytes));
            return finish();
        }
        Owned staged;  // with what lies beside it in its first and last word
        HALATION_TRY(fetch(buffer, words, &staged));
        memcpy(send<char *>(staged.get(), "contents") + (offset - words.begin), from, bytes);
        HALATION_TRY(encode_copy(staged.get(), 0, buffer, words.begin, words.bytes));
        return finish();
    }

    halation_status copy_from(const void *data, size_t offset, void *to, size_t bytes) override {
        const Pool pool;
        const Object buffer = object_of(const_cast<void *>(data));
        Words words;
        HALATION_TRY(find_words(buffer, offset, bytes, &words));
        Owned staged;
        HALATION_TRY(fetch(buffer, words, &staged));
        memcpy(to, send<char *>(staged.get(), "contents") + (offset - words.begin), bytes);
        return HALATION_OK;
    }

    halation_status synchronize() override {
        const Pool pool;
        return finish();
    }

    halation_status put(void *data, const int32_t *words, size_t count) override {
        const Pool pool;
        return encode_write(object_of(data), 0, words, count * sizeof *words);
    }

    bool capturing() override { return false; }

    halation_status locate(const char *name, void *data, uint64_t offset, const Access &, Location *location) override {
        const Pool pool;
        const Object buffer = object_of(data);
        if (send<Object>(buffer, "device") != device_.get())
            return fail(HALATION_INVALID_ARGUMENT, "%s: its MTLBuffer is of another MTLDevice than the one that was opened",
                        name);
        const auto bytes = send<size_t>(buffer, "length");
        if (offset > bytes)
            return fail(HALATION_INVALID_ARGUMENT, "%s: byte_offset is %llu; its MTLBuffer has %zu bytes", name,
                        static_cast<unsigned long long>(offset), bytes);
        *location = {buffer, reinterpret_cast<char *>(first_address + offset), bytes - offset};
        return HALATION_OK;
    }

    halation_status point_to(const char *name, const Location &location, uint64_t bytes, uint64_t *handle) override {
        const size_t offset = reinterpret_cast<uintptr_t>(location.address) - first_address;
        if (bytes > location.bytes)
            return fail(HALATION_INVALID_ARGUMENT, "%s: takes %llu bytes of its MTLBuffer, which has %llu from there on", name,
                        static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(location.bytes));
        const Object buffer = object_of(const_cast<void *>(location.memory));
        *handle = reinterpret_cast<uintptr_t>(new Handle{Owned::retained(buffer), offset});
        return HALATION_OK;
    }

    void let_go(uint64_t handle) override {
        const Pool pool;
        delete reinterpret_cast<Handle *>(static_cast<uintptr_t>(handle));
    }

    // Of `device` memory kernels take any offset that is aligned to the elements, as tensors are (tensors.cpp).
    size_t alignment() const override { return word; }
    bool reaches_back() const override { return false; }

private:
    struct Loaded {
        Owned library;
        std::map<std::string, Owned> pipelines;
    };

    // Arithmetic as the text says it: without, infinities and NaNs are taken not to be.
    static Owned exact_options() {
        Owned options(
            send<Object>(send<Object>(reinterpret_cast<Object>(api().get_class("MTLCompileOptions")), "alloc"), "init"));
        if (responds(options.get(), "setMathMode:"))
            send(options.get(), "setMathMode:", intptr_t(0));  // MTLMathModeSafe
        else
            send(options.get(), "setFastMathEnabled:", Boolean(0));
        return options;
    }

    halation_status find_pipeline(const halation_launch &launch, Object *pipeline) {
        const auto loaded = libraries_.find(launch.code);
        if (loaded == libraries_.end())
            return fail(HALATION_INTERNAL_ERROR, "metal: %s is launched before its code is loaded", launch.entry);
        Owned &found = loaded->second.pipelines[launch.entry];
        if (!found) {
            const Owned name = string_of(launch.entry, strlen(launch.entry));
            const Owned function(send<Object>(loaded->second.library.get(), "newFunctionWithName:", name.get()));
            if (!function) return fail(HALATION_INTERNAL_ERROR, "metal: a library has no %s", launch.entry);
            Object error = nullptr;
            found.reset(send<Object>(device_.get(), "newComputePipelineStateWithFunction:error:", function.get(), &error));
            if (!found)
                return fail(HALATION_INTERNAL_ERROR, "metal: %s makes no pipeline of %s: %.600s", info_.name, launch.entry,
                            error_text(error).c_str());
        }
        *pipeline = found.get();
        return HALATION_OK;
    }

    // Scalars come as one struct, in their order, each at a multiple of its size; Metal's compiler pads it to 4 bytes.
    static std::string scalars_of(const halation_launch &launch) {
        std::string all;
        for (int i = 0; i < launch.argument_count; i++) {
            if (launch.is_buffer[i]) continue;
            const size_t bytes = launch.argument_bytes[i];
            all.resize((all.size() + bytes - 1) / bytes * bytes);
            all.append(static_cast<const char *>(launch.arguments[i]), bytes);
        }
        all.resize((all.size() + 3) / 4 * 4);
        return all;
    }

    static halation_status check_arguments(const halation_launch &launch) {
        const size_t scalars = scalars_of(launch).size();
        if (scalars > most_inline_bytes)
            return fail(HALATION_UNSUPPORTED, "metal: %s takes %zu bytes of scalars; at most %zu can be given", launch.entry,
                        scalars, most_inline_bytes);
        int buffers = scalars > 0 ? 1 : 0;
        for (int i = 0; i < launch.argument_count; i++) buffers += launch.is_buffer[i] ? 1 : 0;
        if (buffers > most_buffers)
            return fail(HALATION_UNSUPPORTED, "metal: %s takes %d buffers; a function has up to %d", launch.entry, buffers,
                        most_buffers);
        return HALATION_OK;
    }

    halation_status encode(const halation_launch &launch) {
        Object pipeline = nullptr;
        HALATION_TRY(find_pipeline(launch, &pipeline));
        HALATION_TRY(check_arguments(launch));
        for (const int32_t blocks : launch.grid)
            if (blocks == 0) return HALATION_OK;
        HALATION_TRY(begin_compute());
        const Object encoder = encoder_.get();
        send(encoder, "setComputePipelineState:", pipeline);
        size_t index = 0;
        const std::string scalars = scalars_of(launch);
        if (!scalars.empty())
            send(encoder, "setBytes:length:atIndex:", static_cast<const void *>(scalars.data()), scalars.size(), index++);
        for (int i = 0; i < launch.argument_count; i++) {
            if (!launch.is_buffer[i]) continue;
            uint64_t word;
            memcpy(&word, launch.arguments[i], sizeof word);
            const auto *handle = reinterpret_cast<const Handle *>(static_cast<uintptr_t>(word));
            send(encoder, "setBuffer:offset:atIndex:", handle->buffer.get(), handle->offset, index++);
        }
        // Halide's kernels take their threadgroup memory, whether they use it or not; lengths are multiples of 16.
        const size_t shared = (static_cast<size_t>(std::max(launch.shared_bytes, 1)) + 15) / 16 * 16;
        send(encoder, "setThreadgroupMemoryLength:atIndex:", shared, size_t(0));
        send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", size_of(launch.grid), size_of(launch.block));
        return HALATION_OK;
    }

    static Size size_of(const int32_t (&extents)[3]) {
        return {static_cast<size_t>(extents[0]), static_cast<size_t>(extents[1]), static_cast<size_t>(extents[2])};
    }

    // `from` is read before this returns.
    halation_status encode_write(Object buffer, size_t offset, const void *from, size_t bytes) {
        const Owned staged(send<Object>(device_.get(), "newBufferWithBytes:length:options:", from, bytes, storage_shared));
        return staged ? encode_copy(staged.get(), 0, buffer, offset, bytes) : no_memory(bytes);
    }

    halation_status encode_copy(Object from, size_t from_offset, Object to, size_t to_offset, size_t bytes) {
        HALATION_TRY(begin());
        end_compute();
        const auto encoder = send<Object>(commands_.get(), "blitCommandEncoder");
        if (!encoder) return fail(HALATION_INTERNAL_ERROR, "metal: a command buffer of %s makes no encoder", info_.name);
        send(encoder, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", from, from_offset, to, to_offset, bytes);
        send(encoder, "endEncoding");
        return HALATION_OK;
    }

    // ---- the command buffer that is being filled, and the encoder of its launches, one after the other

    halation_status begin() {
        if (!commands_) commands_ = Owned::retained(send<Object>(queue_.get(), "commandBuffer"));
        return commands_ ? HALATION_OK : fail(HALATION_INTERNAL_ERROR, "metal: the command queue makes no command buffer");
    }

    halation_status begin_compute() {
        HALATION_TRY(begin());
        if (!encoder_) encoder_ = Owned::retained(send<Object>(commands_.get(), "computeCommandEncoder"));
        return encoder_ ? HALATION_OK
                        : fail(HALATION_INTERNAL_ERROR, "metal: a command buffer of %s makes no encoder", info_.name);
    }

    void end_compute() {
        send(encoder_.get(), "endEncoding");
        encoder_.reset();
    }

    void abandon() {
        end_compute();
        commands_.reset();
    }

    void commit() {
        if (!commands_) return;
        end_compute();
        send(commands_.get(), "commit");
        committed_.push_back(std::move(commands_));
        forget_completed();
    }

    // Keeps the first fault until it can be told.
    void forget_completed() {
        const auto pending = std::find_if(committed_.begin(), committed_.end(), [&](const Owned &commands) {
            const auto status = send<size_t>(commands.get(), "status");
            if (status == command_buffer_error && fault_.empty()) fault_ = error_text(send<Object>(commands.get(), "error"));
            return status < command_buffer_completed;
        });
        committed_.erase(committed_.begin(), pending);
    }

    // Waits for all work in the queue, which includes what others have put into it.
    halation_status finish() {
        HALATION_TRY(begin());
        commit();
        for (const Owned &commands : committed_) send(commands.get(), "waitUntilCompleted");
        forget_completed();
        const std::string fault = std::move(fault_);
        fault_.clear();
        return fault.empty() ? HALATION_OK : fail(HALATION_INTERNAL_ERROR, "metal: a kernel failed: %.600s", fault.c_str());
    }

    // Those of a buffer that some bytes lie in.
    struct Words {
        size_t begin = 0, bytes = 0;
    };
    static halation_status find_words(Object buffer, size_t offset, size_t bytes, Words *words) {
        const auto all = send<size_t>(buffer, "length");
        if (offset > all || bytes > all - offset)
            return fail(HALATION_INVALID_ARGUMENT, "bytes: got %zu at offset %zu; the MTLBuffer has %zu", bytes, offset, all);
        words->begin = offset / word * word;
        words->bytes = (offset + bytes + word - 1) / word * word - words->begin;
        if (words->begin + words->bytes > all)
            return fail(HALATION_INVALID_ARGUMENT,
                        "bytes: got %zu at offset %zu; Metal copies whole words of %zu bytes, and the MTLBuffer has %zu", bytes,
                        offset, word, all);
        return HALATION_OK;
    }

    halation_status fetch(Object buffer, const Words &words, Owned *staged) {
        staged->reset(send<Object>(device_.get(), "newBufferWithLength:options:", words.bytes, storage_shared));
        if (!*staged) return no_memory(words.bytes);
        HALATION_TRY(encode_copy(buffer, words.begin, staged->get(), 0, words.bytes));
        return finish();
    }

    Owned device_, queue_, own_queue_, commands_, encoder_;
    std::vector<Owned> committed_;  // and not known to be completed
    std::string fault_;
    std::map<const void *, Loaded> libraries_;
};

halation_status count_devices(int32_t *count) {
    std::vector<Owned> found;
    HALATION_TRY(find_devices(&found));
    *count = static_cast<int32_t>(found.size());
    return HALATION_OK;
}

halation_status describe(int32_t ordinal, halation_device_info *info) {
    std::vector<Owned> found;
    HALATION_TRY(find_devices(&found));
    describe_device(found.at(static_cast<size_t>(ordinal)).get(), info);
    return HALATION_OK;
}

halation_status open_device(const halation_device_options &options, std::unique_ptr<Device> *device) {
    auto made = std::make_unique<MetalDevice>();
    HALATION_TRY(made->open(options));
    *device = std::move(made);
    return HALATION_OK;
}

}  // namespace

const Backend metal_backend = {"metal", kDLMetal, count_devices, describe, open_device};

}  // namespace halation::runtime
