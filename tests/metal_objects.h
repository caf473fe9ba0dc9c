// As much of an Objective-C runtime as runtime/metal_device.cpp asks for, for tests: classes whose methods are C++ functions,
// counts of references, pools. What would be a crash or a leak there is noticed: a message to an object that is gone, a method
// that a class has not, something autoreleased without a pool. The definition of halation::runtime::metal::api() takes the place
// of the runtime's own.
#ifndef HALATION_TESTS_METAL_OBJECTS_H
#define HALATION_TESTS_METAL_OBJECTS_H

#include "metal_api.h"

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace halation::runtime::metal {

struct ObjectiveSelector {
    std::string name;
};

struct ObjectiveObject {
    explicit ObjectiveObject(Class of);
    virtual ~ObjectiveObject();
    ObjectiveObject(const ObjectiveObject &) = delete;
    ObjectiveObject &operator=(const ObjectiveObject &) = delete;

    const Class isa;
    int references = 1;
};

struct ObjectiveClass : ObjectiveObject {
    ObjectiveClass(const std::string &name, Class meta) : ObjectiveObject(meta), name(name) {}
    std::string name;
    std::map<std::string, Method> methods;
};

}  // namespace halation::runtime::metal

namespace metal_objects {

using halation::runtime::metal::Class;
using halation::runtime::metal::Object;
using halation::runtime::metal::Selector;

// A program that breaks a rule for which Metal would end it.
struct Violation : std::logic_error {
    using std::logic_error::logic_error;
};

Class class_named(const std::string &name);
Class metaclass_of(const std::string &name);

// A method is a function of the object, the selector and the arguments.
template<typename Result, typename... Arguments>
void add_method(Class of, const std::string &selector, Result (*function)(Object, Selector, Arguments...)) {
    of->methods[selector] = reinterpret_cast<halation::runtime::metal::Method>(function);
}

// The object as what it is. What is not, or is gone, is a Violation.
void require_alive(Object object);
template<typename T> T &as(Object object) {
    require_alive(object);
    auto *found = dynamic_cast<T *>(object);
    if (!found) throw Violation("an object of class " + object->isa->name + " is taken for another");
    return *found;
}

Object autoreleased(Object object);
Object new_string(const std::string &text);
const std::string &string_value(Object string);
Object new_error(const std::string &description);
Object new_array(const std::vector<Object> &objects);

// Objects that there are.
size_t live_objects();

// The messages sent since the last call of this, "class selector" each; the first call gives none.
std::vector<std::string> take_messages();

// As if the system had no Metal, for this reason; empty: it has.
void set_fault(const std::string &fault);
// What the system's functions give: the default device, and all of them, retained. Without `all` the system has no such function.
void set_devices(Object (*default_device)(), Object (*all)());

}  // namespace metal_objects
#endif
