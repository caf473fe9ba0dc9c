// The part of the Objective-C runtime and of Metal that the runtime uses, declared here, so that neither headers nor frameworks
// are needed to build.
#ifndef HALATION_RUNTIME_METAL_API_H
#define HALATION_RUNTIME_METAL_API_H

#include <cstddef>
#include <cstdint>

namespace halation::runtime::metal {

struct ObjectiveObject;
struct ObjectiveClass;
struct ObjectiveSelector;
using Object = ObjectiveObject *;  // id
using Class = ObjectiveClass *;
using Selector = ObjectiveSelector *;
using Method = void (*)();    // IMP: to be cast to the method's own type
using Boolean = signed char;  // BOOL

struct Size {  // MTLSize
    size_t width, height, depth;
};

constexpr size_t storage_shared = 0;                                      // MTLResourceOptions
constexpr size_t encoding_utf8 = 4;                                       // NSStringEncoding
constexpr size_t command_buffer_completed = 4, command_buffer_error = 5;  // MTLCommandBufferStatus: those that last
constexpr size_t most_inline_bytes = 4096;                                // that a kernel is given without a buffer
constexpr int most_buffers = 31;                                          // of a kernel

struct Api {
    const char *fault = nullptr;  // NULL: the functions may be called

    Class (*get_class)(const char *name) = nullptr;
    Selector (*get_selector)(const char *name) = nullptr;
    Class (*class_of)(Object) = nullptr;
    Boolean (*responds)(Class, Selector) = nullptr;
    Method (*find_method)(Class, Selector) = nullptr;
    Object (*retain)(Object) = nullptr;
    void (*release)(Object) = nullptr;
    void *(*push_pool)() = nullptr;
    void (*pop_pool)(void *) = nullptr;
    Object (*default_device)() = nullptr;  // retained
    Object (*all_devices)() = nullptr;     // an array, retained; NULL: this system has no such function (iOS)
};

// Loaded once.
const Api &api();

// [object selector: arguments ...]; the result of nil is 0. The types must be those of the method: size_t for NSUInteger. A
// method is looked up and called as the function that it is, which is the same on all processors; objc_msgSend is another
// function for some types on some.
template<typename Result = void, typename... Arguments> Result send(Object object, const char *selector, Arguments... arguments) {
    if (!object) return Result();
    const Selector name = api().get_selector(selector);
    const auto method =
        reinterpret_cast<Result (*)(Object, Selector, Arguments...)>(api().find_method(api().class_of(object), name));
    return method(object, name, arguments...);
}

inline bool responds(Object object, const char *selector) {
    return object && api().responds(api().class_of(object), api().get_selector(selector));
}

// What is autoreleased while one lives, is released at its end.
class Pool {
public:
    Pool() : pool_(api().push_pool()) {}
    ~Pool() { api().pop_pool(pool_); }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

private:
    void *pool_;
};

// An object that is released at the end.
class Owned {
public:
    Owned() = default;
    explicit Owned(Object retained) : object_(retained) {}
    Owned(Owned &&other) noexcept : object_(other.give()) {}
    Owned &operator=(Owned &&other) noexcept {
        if (this != &other) reset(other.give());
        return *this;
    }
    ~Owned() { reset(); }

    // Of one that something else owns.
    static Owned retained(Object object) { return Owned(object ? api().retain(object) : nullptr); }

    Object get() const { return object_; }
    explicit operator bool() const { return object_; }
    void reset(Object retained = nullptr) {
        if (object_) api().release(object_);
        object_ = retained;
    }

private:
    Object give() {
        const Object object = object_;
        object_ = nullptr;
        return object;
    }
    Object object_ = nullptr;
};

}  // namespace halation::runtime::metal
#endif
