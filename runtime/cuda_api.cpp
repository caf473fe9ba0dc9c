#include "cuda_api.h"

namespace halation::runtime::cuda {

// The names with _v2 are those that CUDA's own headers call by the names without.
Api::Api() {
    library.find("cuInit", &init);
    library.find("cuGetErrorName", &get_error_name);
    library.find("cuGetErrorString", &get_error_string);
    library.find("cuDeviceGetCount", &get_device_count);
    library.find("cuDeviceGet", &get_device);
    library.find("cuDeviceGetName", &get_device_name);
    library.find("cuDeviceTotalMem_v2", &get_total_memory);
    library.find("cuDeviceGetAttribute", &get_device_attribute);
    library.find("cuDevicePrimaryCtxRetain", &retain_primary_context);
    library.find("cuDevicePrimaryCtxRelease_v2", &release_primary_context);
    library.find("cuCtxPushCurrent_v2", &push_context);
    library.find("cuCtxPopCurrent_v2", &pop_context);
    library.find("cuCtxGetDevice", &get_context_device);
    library.find("cuModuleLoadDataEx", &load_module);
    library.find("cuModuleUnload", &unload_module);
    library.find("cuModuleGetFunction", &get_function);
    library.find("cuFuncGetAttribute", &get_function_attribute);
    library.find("cuFuncSetAttribute", &set_function_attribute);
    library.find("cuLaunchKernel", &launch_kernel);
    library.find("cuMemAlloc_v2", &allocate);
    library.find("cuMemFree_v2", &release);
    library.find("cuMemGetAddressRange_v2", &get_range);
    library.find("cuMemcpyHtoDAsync_v2", &copy_to);
    library.find("cuMemcpyDtoHAsync_v2", &copy_from);
    library.find("cuStreamSynchronize", &synchronize);
    library.find("cuStreamIsCapturing", &is_capturing);
    library.find("cuStreamGetCtx", &get_stream_context);
    if (library.usable()) started = init(0);
}

const Api &api() {
    static const Api *loaded = new Api;  // for as long as the process lives: contexts may be destroyed at its end
    return *loaded;
}

Text<200> code_text(Code code) {
    const char *name = nullptr, *meaning = nullptr;
    if (api().get_error_name(code, &name) != 0 || !name) return Text<200>().add("error %d", code);
    api().get_error_string(code, &meaning);
    return Text<200>().add("%s (%s)", name, meaning ? meaning : "no description");
}

}  // namespace halation::runtime::cuda
