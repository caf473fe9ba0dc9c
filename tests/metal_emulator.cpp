#include "metal_emulator.h"
#include "kernel_memory.h"
#include "metal_library.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>

namespace metal_emulator {
namespace {

using namespace halation::runtime::metal;
using namespace metal_objects;

std::mutex mutex;  // of what follows
Order &current_order() {
    static Order order = [] {
        const char *name = std::getenv("HALATION_METAL_ORDER");
        return Order::named(name ? name : "forward");
    }();
    return order;
}

Object retained(Object object) {
    return api().retain(object);
}

// An object that owns others.
struct Owner : ObjectiveObject {
    using ObjectiveObject::ObjectiveObject;
    ~Owner() override {
        for (const Object object : owned) api().release(object);
    }
    Object own(Object object) {
        owned.push_back(retained(object));
        return object;
    }
    std::vector<Object> owned;
};

struct EmulatedDevice : ObjectiveObject {
    explicit EmulatedDevice(const std::string &name) : ObjectiveObject(class_named("MTLDevice")), name(name) {}
    std::string name;
};

// Ends where the next page may not be touched, has such a page or bytes of NaN before it, and is full of NaN at first.
struct EmulatedBuffer : Owner {
    EmulatedBuffer(Object device, size_t bytes, bool is_private = false)
        : Owner(class_named("MTLBuffer")), bytes(bytes), is_private(is_private),
          memory((bytes + 15) / 16 * 16, kernels::Meets::end) {
        own(device);
        const std::lock_guard<std::mutex> lock(mutex);
        all().insert(this);
    }
    ~EmulatedBuffer() override {
        const std::lock_guard<std::mutex> lock(mutex);
        all().erase(this);
    }
    Object device() const { return owned[0]; }
    static std::set<EmulatedBuffer *> &all() {
        static auto *buffers = new std::set<EmulatedBuffer *>;
        return *buffers;
    }

    size_t bytes;
    bool is_private;
    kernels::Guarded memory;
};

std::string describe_address(const void *address) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto at = reinterpret_cast<uintptr_t>(address);
    constexpr uintptr_t near = 4096;
    for (const EmulatedBuffer *buffer : EmulatedBuffer::all()) {
        const auto begin = reinterpret_cast<uintptr_t>(buffer->memory.data()), end = begin + buffer->bytes;
        if (at >= end && at - end < near)
            return std::to_string(at - end) + " bytes behind a buffer of " + std::to_string(buffer->bytes);
        if (at < begin && begin - at < 2 * near)
            return std::to_string(begin - at) + " bytes before a buffer of " + std::to_string(buffer->bytes);
    }
    return "not near any buffer";
}

struct Options : ObjectiveObject {
    Options() : ObjectiveObject(class_named("MTLCompileOptions")) {}
    bool is_exact = false;
};

struct LibraryObject : ObjectiveObject {
    explicit LibraryObject(const Library *code) : ObjectiveObject(class_named("MTLLibrary")), code(code) {}
    const Library *code;
};

// An MTLFunction, and the pipeline of one.
struct FunctionObject : ObjectiveObject {
    FunctionObject(const char *of, const std::string &name, const Function &code)
        : ObjectiveObject(class_named(of)), name(name), code(code) {}
    std::string name;
    const Function &code;
};

// One call of a function, as its encoder was told.
struct Dispatch {
    struct Argument {
        EmulatedBuffer *buffer = nullptr;
        size_t offset = 0;
        std::string bytes;  // instead of a buffer
    };
    const FunctionObject *pipeline = nullptr;
    std::vector<Argument> arguments = std::vector<Argument>(most_buffers);
    size_t threadgroup_bytes = 0;
    Size groups{}, threads{};

    void check() const {
        const std::string &name = pipeline ? pipeline->name : "a kernel";
        if (!pipeline) throw Violation("threadgroups are dispatched without a pipeline");
        const size_t count = threads.width * threads.height * threads.depth;
        if (count > std::min(most_threads, limits().pipeline_threads))
            throw Violation(name + " is dispatched with " + std::to_string(count) + " threads in a threadgroup");
        if (threadgroup_bytes > most_threadgroup_bytes)
            throw Violation(name + " is dispatched with " + std::to_string(threadgroup_bytes) + " bytes of threadgroup memory");
        const Function &code = pipeline->code;
        for (size_t i = 0; i < most_buffers; i++) {
            const Argument &argument = arguments[i];
            const bool given = argument.buffer || !argument.bytes.empty();
            if (given != (i < static_cast<size_t>(code.buffers)))
                throw Violation(name + " has " + std::to_string(code.buffers) + " buffers, and buffer " + std::to_string(i) +
                                (given ? " is given" : " is not given"));
            if (argument.buffer && argument.offset % code.pointee_bytes[i] != 0)
                throw Violation(name + " has elements of " + std::to_string(code.pointee_bytes[i]) + " bytes in buffer " +
                                std::to_string(i) + ", and is given offset " + std::to_string(argument.offset));
        }
        if (code.has_scalars && code.pointee_bytes[0] != arguments[0].bytes.size())
            throw Violation("the scalars of " + name + " are a struct of " + std::to_string(code.pointee_bytes[0]) +
                            " bytes, and given as " + std::to_string(arguments[0].bytes.size()));
    }

    // What is wrong with the kernel; empty: nothing.
    std::string run() const {
        const kernels::Guarded shared(std::max<size_t>(threadgroup_bytes, 16), kernels::Meets::end);
        std::vector<void *> pointers;
        for (int i = 0; i < pipeline->code.buffers; i++) {
            const Argument &argument = arguments[static_cast<size_t>(i)];
            pointers.push_back(argument.buffer ? static_cast<void *>(argument.buffer->memory.data() + argument.offset)
                                               : const_cast<char *>(argument.bytes.data()));
        }
        pointers.push_back(shared.data());
        const auto small = [](size_t extent) { return static_cast<unsigned>(extent); };
        const Grid grid = {{small(groups.width), small(groups.height), small(groups.depth)},
                           {small(threads.width), small(threads.height), small(threads.depth)}};
        GridCall call{pipeline->code.run, pipeline->code.has_barriers, pointers.data(), nullptr, describe_address};
        call.before_group = [&] { memset(shared.data(), kernels::untouched_byte, threadgroup_bytes); };
        Order order;
        {
            const std::lock_guard<std::mutex> lock(mutex);
            order = current_order();
        }
        const std::string wrong = run_grid(grid, order, call);
        if (!wrong.empty()) return pipeline->name + ": " + wrong;
        if (!shared.surroundings_are_untouched()) return pipeline->name + ": writes before its threadgroup memory";
        for (size_t i = 0; i < most_buffers; i++)
            if (arguments[i].buffer && !arguments[i].buffer->memory.surroundings_are_untouched())
                return pipeline->name + ": writes before buffer " + std::to_string(i);
        return "";
    }
};

struct CommandBuffer : Owner {
    enum Status : size_t { not_enqueued = 0, committed = 2, completed = 4, error = 5 };

    explicit CommandBuffer(Object queue) : Owner(class_named("MTLCommandBuffer")), queue(queue) {}
    void run() {
        status = completed;
        for (const auto &command : commands) {
            if (fault.empty()) fault = command();
            if (!fault.empty()) status = error;
        }
        commands.clear();
    }

    const Object queue;  // which owns those that were committed and have not run
    std::vector<std::function<std::string()>> commands;
    Object encoder = nullptr;  // one that has not ended
    Status status = not_enqueued;
    std::string fault;
};

struct Queue : Owner {
    explicit Queue(Object device) : Owner(class_named("MTLCommandQueue")) { own(device); }
    Object device() const { return owned[0]; }
    void run_first() {
        const Object first = pending.front();
        pending.erase(pending.begin());
        as<CommandBuffer>(first).run();
        api().release(first);
    }
    ~Queue() override {
        while (!pending.empty()) run_first();
    }
    std::vector<Object> pending;  // committed, in order
};

struct Encoder : Owner {
    Encoder(const char *of, CommandBuffer &commands) : Owner(class_named(of)), commands(commands) {
        if (commands.encoder) throw Violation("a command buffer has two encoders at once");
        if (commands.status != CommandBuffer::not_enqueued) throw Violation("a command buffer that was committed is filled");
        own(&commands);
        commands.encoder = this;
    }
    ~Encoder() override {
        if (commands.encoder == this) commands.encoder = nullptr;
        if (!ended) std::abort();  // Metal does, too
    }
    void end() {
        if (ended) throw Violation("an encoder ends twice");
        ended = true;
        commands.encoder = nullptr;
    }
    void require_open() const {
        if (ended) throw Violation("an encoder that has ended is used");
    }
    CommandBuffer &commands;
    bool ended = false;
    Dispatch dispatch;
};

Encoder &open_encoder(Object self) {
    auto &encoder = as<Encoder>(self);
    encoder.require_open();
    return encoder;
}

Dispatch::Argument &argument(Object encoder, size_t index) {
    if (index >= most_buffers) throw Violation("a kernel is given buffer " + std::to_string(index));
    return open_encoder(encoder).dispatch.arguments[index];
}

void add_device() {
    const Class device = class_named("MTLDevice");
    add_method(
        device, "name", +[](Object self, Selector) -> Object { return autoreleased(new_string(as<EmulatedDevice>(self).name)); });
    add_method(
        device, "recommendedMaxWorkingSetSize", +[](Object, Selector) -> uint64_t { return uint64_t(8) << 30; });
    add_method(
        device, "maxThreadgroupMemoryLength", +[](Object, Selector) -> size_t { return most_threadgroup_bytes; });
    add_method(
        device, "maxThreadsPerThreadgroup", +[](Object, Selector) -> Size {
            return {most_threads, most_threads, most_threads};
        });
    add_method(
        device, "newCommandQueue",
        +[](Object self, Selector) -> Object { return limits().has_queues ? new_queue(self) : nullptr; });
    add_method(
        device, "newBufferWithLength:options:", +[](Object self, Selector, size_t bytes, size_t options) -> Object {
            if (options != storage_shared || bytes == 0) throw Violation("a buffer of no bytes, or not shared");
            return bytes > limits().buffer_bytes ? nullptr : new EmulatedBuffer(self, bytes);
        });
    add_method(
        device, "newBufferWithBytes:length:options:",
        +[](Object self, Selector, const void *from, size_t bytes, size_t options) -> Object {
            if (options != storage_shared || bytes == 0) throw Violation("a buffer of no bytes, or not shared");
            if (bytes > limits().buffer_bytes) return nullptr;
            auto *made = new EmulatedBuffer(self, bytes);
            memcpy(made->memory.data(), from, bytes);
            return made;
        });
    add_method(
        device,
        "newLibraryWithSource:options:error:", +[](Object, Selector, Object source, Object options, Object *error) -> Object {
            if (!as<Options>(options).is_exact) throw Violation("a library is compiled with fast arithmetic");
            std::string fault;
            const Library *code = compile(string_value(source), &fault);
            if (code) return new LibraryObject(code);
            *error = autoreleased(new_error(fault));
            return nullptr;
        });
    add_method(
        class_named("MTLLibrary"), "newFunctionWithName:", +[](Object self, Selector, Object name) -> Object {
            const auto &functions = as<LibraryObject>(self).code->functions;
            const auto found = functions.find(string_value(name));
            return found == functions.end() ? nullptr : new FunctionObject("MTLFunction", found->first, found->second);
        });
    add_method(
        device, "newComputePipelineStateWithFunction:error:", +[](Object, Selector, Object function, Object *error) -> Object {
            const auto &of = as<FunctionObject>(function);
            if (static_cast<size_t>(of.code.buffers) <= most_buffers)
                return new FunctionObject("MTLComputePipelineState", of.name, of.code);
            *error = autoreleased(new_error("the function has " + std::to_string(of.code.buffers) + " buffers"));
            return nullptr;
        });
    add_method(
        class_named("MTLComputePipelineState"), "maxTotalThreadsPerThreadgroup",
        +[](Object, Selector) -> size_t { return limits().pipeline_threads; });
    add_method(
        metaclass_of("MTLCompileOptions"), "alloc", +[](Object, Selector) -> Object { return new Options; });
    add_method(
        class_named("MTLCompileOptions"), "init", +[](Object self, Selector) -> Object { return self; });
    add_method(
        class_named("MTLCompileOptions"),
        "setFastMathEnabled:", +[](Object self, Selector, Boolean fast) { as<Options>(self).is_exact = !fast; });
    add_method(
        class_named("MTLCompileOptions"),
        "setMathMode:", +[](Object self, Selector, intptr_t mode) { as<Options>(self).is_exact = mode == 0; });
}

void add_buffer() {
    const Class buffer = class_named("MTLBuffer");
    add_method(
        buffer, "device", +[](Object self, Selector) -> Object { return as<EmulatedBuffer>(self).device(); });
    add_method(
        buffer, "length", +[](Object self, Selector) -> size_t { return as<EmulatedBuffer>(self).bytes; });
    add_method(
        buffer, "contents", +[](Object self, Selector) -> void * {
            auto &of = as<EmulatedBuffer>(self);
            return of.is_private ? nullptr : of.memory.data();
        });
}

void add_queue() {
    add_method(
        class_named("MTLCommandQueue"), "device", +[](Object self, Selector) -> Object { return as<Queue>(self).device(); });
    add_method(
        class_named("MTLCommandQueue"), "commandBuffer", +[](Object self, Selector) -> Object {
            if (!limits().has_command_buffers) return nullptr;
            return autoreleased(new CommandBuffer(self));
        });
    const Class commands = class_named("MTLCommandBuffer");
    add_method(
        commands, "commit", +[](Object self, Selector) {
            auto &of = as<CommandBuffer>(self);
            if (of.encoder) throw Violation("a command buffer is committed before its encoder has ended");
            if (of.status != CommandBuffer::not_enqueued) throw Violation("a command buffer is committed twice");
            of.status = CommandBuffer::committed;
            as<Queue>(of.queue).pending.push_back(retained(self));
        });
    add_method(
        commands, "waitUntilCompleted", +[](Object self, Selector) {
            auto &of = as<CommandBuffer>(self);
            if (of.status == CommandBuffer::not_enqueued)
                throw Violation("a command buffer is waited for that was not committed");
            while (of.status == CommandBuffer::committed) as<Queue>(of.queue).run_first();
        });
    add_method(
        commands, "status", +[](Object self, Selector) -> size_t { return as<CommandBuffer>(self).status; });
    add_method(
        commands, "error", +[](Object self, Selector) -> Object {
            const auto &of = as<CommandBuffer>(self);
            return of.fault.empty() ? nullptr : autoreleased(new_error(of.fault));
        });
    add_method(
        commands, "computeCommandEncoder", +[](Object self, Selector) -> Object {
            if (!limits().has_encoders) return nullptr;
            return autoreleased(new Encoder("MTLComputeCommandEncoder", as<CommandBuffer>(self)));
        });
    add_method(
        commands, "blitCommandEncoder", +[](Object self, Selector) -> Object {
            if (!limits().has_encoders) return nullptr;
            return autoreleased(new Encoder("MTLBlitCommandEncoder", as<CommandBuffer>(self)));
        });
}

void add_encoders() {
    const Class compute = class_named("MTLComputeCommandEncoder"), blit = class_named("MTLBlitCommandEncoder");
    for (const Class encoder : {compute, blit})
        add_method(
            encoder, "endEncoding", +[](Object self, Selector) { open_encoder(self).end(); });
    add_method(
        compute, "setComputePipelineState:", +[](Object self, Selector, Object pipeline) {
            Encoder &encoder = open_encoder(self);
            encoder.dispatch = {};
            encoder.dispatch.pipeline = &as<FunctionObject>(encoder.commands.own(pipeline));
        });
    add_method(
        compute, "setBytes:length:atIndex:", +[](Object self, Selector, const void *from, size_t bytes, size_t index) {
            if (bytes > most_inline_bytes) throw Violation("a kernel is given more than 4096 bytes without a buffer");
            argument(self, index).bytes.assign(static_cast<const char *>(from), bytes);
        });
    add_method(
        compute, "setBuffer:offset:atIndex:", +[](Object self, Selector, Object buffer, size_t offset, size_t index) {
            auto &of = as<EmulatedBuffer>(open_encoder(self).commands.own(buffer));
            if (offset >= of.bytes) throw Violation("a kernel is pointed to byte " + std::to_string(offset));
            argument(self, index).buffer = &of;
            argument(self, index).offset = offset;
        });
    add_method(
        compute, "setThreadgroupMemoryLength:atIndex:", +[](Object self, Selector, size_t bytes, size_t index) {
            if (bytes % 16 != 0 || index != 0) throw Violation("threadgroup memory of " + std::to_string(bytes) + " bytes");
            open_encoder(self).dispatch.threadgroup_bytes = bytes;
        });
    add_method(
        compute, "dispatchThreadgroups:threadsPerThreadgroup:", +[](Object self, Selector, Size groups, Size threads) {
            Encoder &encoder = open_encoder(self);
            encoder.dispatch.groups = groups;
            encoder.dispatch.threads = threads;
            encoder.dispatch.check();
            encoder.commands.commands.push_back([dispatch = encoder.dispatch] { return dispatch.run(); });
        });
    add_method(
        blit, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
        +[](Object self, Selector, Object from, size_t from_offset, Object to, size_t to_offset, size_t bytes) {
            CommandBuffer &commands = open_encoder(self).commands;
            auto &source = as<EmulatedBuffer>(commands.own(from)), &sink = as<EmulatedBuffer>(commands.own(to));
            if (from_offset + bytes > source.bytes || to_offset + bytes > sink.bytes)
                throw Violation("a copy beyond the end of a buffer");
            if ((from_offset | to_offset | bytes) % 4 != 0)
                throw Violation("a copy of parts of words, which macOS makes none of");
            commands.commands.push_back([&source, &sink, from_offset, to_offset, bytes] {
                memcpy(sink.memory.data() + to_offset, source.memory.data() + from_offset, bytes);
                return std::string();
            });
        });
}

Object the_device() {
    static const Object device = new_device("emulated Metal");
    return retained(device);
}

const bool added = [] {
    add_device();
    add_buffer();
    add_queue();
    add_encoders();
    set_devices(the_device, nullptr);
    return true;
}();

}  // namespace

void set_order(const Order &order) {
    const std::lock_guard<std::mutex> lock(mutex);
    current_order() = order;
}

Object new_device(const std::string &name) {
    return new EmulatedDevice(name);
}

Object new_queue(Object device) {
    return new Queue(device);
}

Object new_private_buffer(Object device, size_t bytes) {
    return new EmulatedBuffer(device, bytes, true);
}

Limits &limits() {
    static Limits all;
    return all;
}

}  // namespace metal_emulator
