#include "metal_objects.h"

#include <memory>
#include <mutex>
#include <set>

namespace metal_objects {

using namespace halation::runtime::metal;

namespace {

std::recursive_mutex mutex;  // of what follows: objects that are released release others

std::set<Object> &alive() {
    static auto *objects = new std::set<Object>;
    return *objects;
}

std::map<std::string, ObjectiveClass *> &classes() {
    static auto *all = new std::map<std::string, ObjectiveClass *>;
    return *all;
}

std::vector<std::string> messages;
bool messages_are_kept = false;
std::string fault_text;

// Of this thread: what is to be released, and how much there was when each pool began.
struct Pools {
    std::vector<Object> objects;
    std::vector<size_t> begins;
};
thread_local Pools pools;

struct String : ObjectiveObject {
    explicit String(const std::string &text) : ObjectiveObject(class_named("NSString")), text(text) {}
    std::string text;
};
struct Error : ObjectiveObject {
    explicit Error(const std::string &text) : ObjectiveObject(class_named("NSError")), description(text) {}
    std::string description;
};
struct Array : ObjectiveObject {
    explicit Array(const std::vector<Object> &objects) : ObjectiveObject(class_named("NSArray")), objects(objects) {}
    ~Array() override {
        for (const Object object : objects) api().release(object);
    }
    std::vector<Object> objects;
};

Object retain(Object object) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    require_alive(object);
    object->references++;
    return object;
}

void release(Object object) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    require_alive(object);
    if (--object->references == 0) delete object;
}

void *push_pool() {
    pools.begins.push_back(pools.objects.size());
    return reinterpret_cast<void *>(pools.begins.size());
}

void pop_pool(void *pool) {
    if (reinterpret_cast<size_t>(pool) != pools.begins.size()) throw Violation("pools are popped out of order");
    while (pools.objects.size() > pools.begins.back()) {
        const Object object = pools.objects.back();
        pools.objects.pop_back();
        release(object);
    }
    pools.begins.pop_back();
}

Selector selector_named(const char *name) {
    static auto *selectors = new std::map<std::string, std::unique_ptr<ObjectiveSelector>>;
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    std::unique_ptr<ObjectiveSelector> &selector = (*selectors)[name];
    if (!selector) selector.reset(new ObjectiveSelector{name});
    return selector.get();
}

Method find_method(Class of, Selector selector) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    if (messages_are_kept) messages.push_back(of->name + " " + selector->name);
    const auto found = of->methods.find(selector->name);
    if (found == of->methods.end()) throw Violation(of->name + " has no method " + selector->name);
    return found->second;
}

void add_foundation() {
    add_method(
        metaclass_of("NSString"), "alloc", +[](Object, Selector) -> Object { return new String(""); });
    add_method(
        class_named("NSString"), "initWithBytes:length:encoding:",
        +[](Object self, Selector, const void *bytes, size_t length, size_t encoding) -> Object {
            if (encoding != encoding_utf8) throw Violation("a string of an encoding other than UTF-8");
            as<String>(self).text.assign(static_cast<const char *>(bytes), length);
            return self;
        });
    add_method(
        class_named("NSString"), "UTF8String",
        +[](Object self, Selector) -> const char * { return as<String>(self).text.c_str(); });
    add_method(
        class_named("NSError"), "localizedDescription",
        +[](Object self, Selector) -> Object { return autoreleased(new_string(as<Error>(self).description)); });
    add_method(
        class_named("NSArray"), "count", +[](Object self, Selector) -> size_t { return as<Array>(self).objects.size(); });
    add_method(
        class_named("NSArray"),
        "objectAtIndex:", +[](Object self, Selector, size_t index) -> Object { return as<Array>(self).objects.at(index); });
}

Api made_api() {
    add_foundation();
    Api made;
    made.get_class = [](const char *name) { return class_named(name); };
    made.get_selector = selector_named;
    made.class_of = [](Object object) {
        require_alive(object);
        return object->isa;
    };
    made.responds = [](Class of, Selector selector) { return Boolean(of->methods.count(selector->name) ? 1 : 0); };
    made.find_method = find_method;
    made.retain = retain;
    made.release = release;
    made.push_pool = push_pool;
    made.pop_pool = pop_pool;
    return made;
}

Api &own_api() {
    static Api made = made_api();
    return made;
}

}  // namespace

Class metaclass_of(const std::string &name) {
    return class_named(name)->isa;
}

Class class_named(const std::string &name) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    ObjectiveClass *&found = classes()[name];
    if (!found) found = new ObjectiveClass(name, new ObjectiveClass(name + " class", nullptr));
    return found;
}

void require_alive(Object object) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    if (!alive().count(object)) throw Violation("a message to an object that is gone, or never was one");
}

Object autoreleased(Object object) {
    if (pools.begins.empty()) throw Violation("an object of class " + object->isa->name + " is autoreleased without a pool");
    pools.objects.push_back(object);
    return object;
}

Object new_string(const std::string &text) {
    return new String(text);
}

const std::string &string_value(Object string) {
    return as<String>(string).text;
}

Object new_error(const std::string &description) {
    return new Error(description);
}

Object new_array(const std::vector<Object> &objects) {
    return new Array(objects);
}

size_t live_objects() {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    return alive().size() - 2 * classes().size();
}

std::vector<std::string> take_messages() {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    messages_are_kept = true;
    std::vector<std::string> taken;
    taken.swap(messages);
    return taken;
}

void set_fault(const std::string &fault) {
    fault_text = fault;
    own_api().fault = fault.empty() ? nullptr : fault_text.c_str();
}

void set_devices(Object (*default_device)(), Object (*all)()) {
    own_api().default_device = default_device;
    own_api().all_devices = all;
}

}  // namespace metal_objects

namespace halation::runtime::metal {

ObjectiveObject::ObjectiveObject(Class of) : isa(of) {
    const std::lock_guard<std::recursive_mutex> lock(metal_objects::mutex);
    metal_objects::alive().insert(this);
}

ObjectiveObject::~ObjectiveObject() {
    const std::lock_guard<std::recursive_mutex> lock(metal_objects::mutex);
    metal_objects::alive().erase(this);
}

const Api &api() {
    return metal_objects::own_api();
}

}  // namespace halation::runtime::metal
