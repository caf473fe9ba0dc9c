// The C interface of devices: which there are, the one of a context, memory on it.
#include "device.h"
#include "context.h"
#include "status.h"
#include "text.h"

#include <cstring>

using namespace halation::runtime;

namespace halation::runtime {

const Backend *find_backend(const char *name) {
    for (const Backend *backend : {&cuda_backend, &opencl_backend, &metal_backend})
        if (name && !strcmp(name, backend->name)) return backend;
    return nullptr;
}

}  // namespace halation::runtime

namespace {

halation_status known_backend(const char *name, const Backend **backend) {
    *backend = find_backend(name);
    if (*backend) return HALATION_OK;
    return fail(HALATION_INVALID_ARGUMENT, "backend: got '%s'; may be cuda, opencl or metal", name ? name : "(NULL)");
}

// The device of a context, which is locked from here on.
template<typename Body> halation_status with_device(halation_context *context, Body body) {
    return guarded([&]() -> halation_status {
        if (!context) return fail(HALATION_INVALID_ARGUMENT, "context: is NULL");
        std::lock_guard<std::mutex> lock(context->mutex);
        if (!context->device)
            return fail(HALATION_INVALID_ARGUMENT, "context: has no device; open one with halation_context_open_device");
        return body(*context->device);
    });
}

halation_status check_memory(const void *data, const void *host, const char *host_name, size_t bytes) {
    if (!data) return fail(HALATION_INVALID_ARGUMENT, "data: is NULL");
    if (!host && bytes > 0) return fail(HALATION_INVALID_ARGUMENT, "%s: is NULL", host_name);
    return HALATION_OK;
}

}  // namespace

extern "C" halation_status halation_backend_devices(const char *name, int32_t *count) {
    return guarded([&]() -> halation_status {
        if (!count) return fail(HALATION_INVALID_ARGUMENT, "count: is NULL");
        *count = 0;
        const Backend *backend;
        HALATION_TRY(known_backend(name, &backend));
        return backend->count(count);
    });
}

extern "C" halation_status halation_backend_device(const char *name, int32_t ordinal, halation_device_info *info) {
    return guarded([&]() -> halation_status {
        HALATION_TRY(check_struct(info, "halation_device_info"));
        const Backend *backend;
        int32_t count;
        HALATION_TRY(known_backend(name, &backend));
        HALATION_TRY(backend->count(&count));
        if (ordinal < 0 || ordinal >= count)
            return fail(HALATION_INVALID_ARGUMENT, "ordinal: got %d; may be 0 to %d, the last %s device", ordinal, count - 1,
                        name);
        auto found = HALATION_INIT(halation_device_info);
        copy_text(found.backend, backend->name);
        found.device = {backend->type, ordinal};
        HALATION_TRY(backend->describe(ordinal, &found));
        *info = found;
        return HALATION_OK;
    });
}

extern "C" halation_status halation_context_open_device(halation_context *context, const halation_device_options *options) {
    return guarded([&]() -> halation_status {
        if (!context) return fail(HALATION_INVALID_ARGUMENT, "context: is NULL");
        HALATION_TRY(check_struct(options, "halation_device_options"));
        const Backend *backend;
        HALATION_TRY(known_backend(options->backend, &backend));
        std::lock_guard<std::mutex> lock(context->mutex);
        if (context->device) {
            const halation_device_info &info = context->device->info();
            return fail(HALATION_INVALID_ARGUMENT, "context: has a device already, %s:%d; another takes a context of its own",
                        info.backend, info.device.device_id);
        }
        int32_t count;
        HALATION_TRY(backend->count(&count));
        const bool given = options->native_context || options->native_queue;
        if (!given && (options->ordinal < 0 || options->ordinal >= count))
            return fail(HALATION_INVALID_ARGUMENT, "ordinal: got %d; may be 0 to %d, the last %s device", options->ordinal,
                        count - 1, backend->name);
        return backend->open(*options, &context->device);
    });
}

extern "C" halation_status halation_context_set_queue(halation_context *context, void *native_queue) {
    return with_device(context, [&](Device &device) { return device.set_queue(native_queue); });
}

extern "C" halation_status halation_context_device(halation_context *context, halation_device_info *info) {
    return with_device(context, [&](Device &device) -> halation_status {
        HALATION_TRY(check_struct(info, "halation_device_info"));
        *info = device.info();
        return HALATION_OK;
    });
}

extern "C" halation_status halation_device_allocate(halation_context *context, size_t bytes, void **data) {
    return with_device(context, [&](Device &device) -> halation_status {
        if (!data) return fail(HALATION_INVALID_ARGUMENT, "data: is NULL");
        *data = nullptr;
        if (bytes == 0) return fail(HALATION_INVALID_ARGUMENT, "bytes: got 0; must be 1 or more");
        return device.allocate(bytes, data);
    });
}

extern "C" halation_status halation_device_release(halation_context *context, void *data) {
    if (!data) return HALATION_OK;
    return with_device(context, [&](Device &device) { return device.release(data); });
}

extern "C" halation_status halation_device_copy_to(halation_context *context, void *data, size_t offset, const void *from,
                                                   size_t bytes) {
    return with_device(context, [&](Device &device) -> halation_status {
        HALATION_TRY(check_memory(data, from, "from", bytes));
        return bytes == 0 ? HALATION_OK : device.copy_to(data, offset, from, bytes);
    });
}

extern "C" halation_status halation_device_copy_from(halation_context *context, const void *data, size_t offset, void *to,
                                                     size_t bytes) {
    return with_device(context, [&](Device &device) -> halation_status {
        HALATION_TRY(check_memory(data, to, "to", bytes));
        return bytes == 0 ? HALATION_OK : device.copy_from(data, offset, to, bytes);
    });
}

extern "C" halation_status halation_device_synchronize(halation_context *context) {
    return with_device(context, [&](Device &device) { return device.synchronize(); });
}
