#include "metal_api.h"
#include "driver_library.h"

namespace halation::runtime::metal {
namespace {

struct Libraries {
    DriverLibrary objective{"/usr/lib/libobjc.A.dylib"};
    DriverLibrary metal{"/System/Library/Frameworks/Metal.framework/Metal"};
    Api api;

    Libraries() {
        objective.find("objc_getClass", &api.get_class);
        objective.find("sel_registerName", &api.get_selector);
        objective.find("object_getClass", &api.class_of);
        objective.find("class_respondsToSelector", &api.responds);
        objective.find("class_getMethodImplementation", &api.find_method);
        objective.find("objc_retain", &api.retain);
        objective.find("objc_release", &api.release);
        objective.find("objc_autoreleasePoolPush", &api.push_pool);
        objective.find("objc_autoreleasePoolPop", &api.pop_pool);
        metal.find("MTLCreateSystemDefaultDevice", &api.default_device);
        metal.find_optional("MTLCopyAllDevices", &api.all_devices);
        if (!metal.usable())
            api.fault = metal.fault();
        else if (!objective.usable())
            api.fault = objective.fault();
    }
};

}  // namespace

const Api &api() {
    static const Libraries *loaded = new Libraries;  // for as long as the process lives: contexts may be destroyed at its end
    return loaded->api;
}

}  // namespace halation::runtime::metal
