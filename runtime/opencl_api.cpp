#include "opencl_api.h"

namespace halation::runtime::opencl {

Api::Api() {
    library.find("clGetPlatformIDs", &get_platforms);
    library.find("clGetDeviceIDs", &get_devices);
    library.find("clGetDeviceInfo", &get_device_info);
    library.find("clCreateContext", &create_context);
    library.find("clRetainContext", &retain_context);
    library.find("clReleaseContext", &release_context);
    library.find("clGetContextInfo", &get_context_info);
    library.find("clCreateCommandQueue", &create_queue);
    library.find("clRetainCommandQueue", &retain_queue);
    library.find("clReleaseCommandQueue", &release_queue);
    library.find("clGetCommandQueueInfo", &get_queue_info);
    library.find("clCreateBuffer", &create_buffer);
    library.find("clCreateSubBuffer", &create_sub_buffer);
    library.find("clRetainMemObject", &retain_memory);
    library.find("clReleaseMemObject", &release_memory);
    library.find("clGetMemObjectInfo", &get_memory_info);
    library.find("clCreateProgramWithSource", &create_program);
    library.find("clBuildProgram", &build_program);
    library.find("clGetProgramBuildInfo", &get_build_info);
    library.find("clReleaseProgram", &release_program);
    library.find("clCreateKernel", &create_kernel);
    library.find("clGetKernelWorkGroupInfo", &get_kernel_info);
    library.find("clReleaseKernel", &release_kernel);
    library.find("clSetKernelArg", &set_argument);
    library.find("clEnqueueNDRangeKernel", &enqueue_kernel);
    library.find("clEnqueueWriteBuffer", &enqueue_write);
    library.find("clEnqueueReadBuffer", &enqueue_read);
    library.find("clGetEventInfo", &get_event_info);
    library.find("clWaitForEvents", &wait_for_events);
    library.find("clReleaseEvent", &release_event);
    library.find("clFlush", &flush);
    library.find("clFinish", &finish);
}

const Api &api() {
    static const Api *loaded = new Api;  // for as long as the process lives: contexts may be destroyed at its end
    return *loaded;
}

Text<40> code_name(Code code) {
    static const struct {
        Code code;
        const char *name;
    } names[] = {{-1, "CL_DEVICE_NOT_FOUND"},
                 {-2, "CL_DEVICE_NOT_AVAILABLE"},
                 {-3, "CL_COMPILER_NOT_AVAILABLE"},
                 {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
                 {-5, "CL_OUT_OF_RESOURCES"},
                 {-6, "CL_OUT_OF_HOST_MEMORY"},
                 {-11, "CL_BUILD_PROGRAM_FAILURE"},
                 {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
                 {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS"},
                 {-30, "CL_INVALID_VALUE"},
                 {-33, "CL_INVALID_DEVICE"},
                 {-34, "CL_INVALID_CONTEXT"},
                 {-36, "CL_INVALID_COMMAND_QUEUE"},
                 {-38, "CL_INVALID_MEM_OBJECT"},
                 {-46, "CL_INVALID_KERNEL_NAME"},
                 {-48, "CL_INVALID_KERNEL"},
                 {-49, "CL_INVALID_ARG_INDEX"},
                 {-50, "CL_INVALID_ARG_VALUE"},
                 {-51, "CL_INVALID_ARG_SIZE"},
                 {-52, "CL_INVALID_KERNEL_ARGS"},
                 {-54, "CL_INVALID_WORK_GROUP_SIZE"},
                 {-55, "CL_INVALID_WORK_ITEM_SIZE"},
                 {-61, "CL_INVALID_BUFFER_SIZE"},
                 {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
                 {-1001, "CL_PLATFORM_NOT_FOUND_KHR"}};
    for (const auto &known : names)
        if (known.code == code) return Text<40>().add("%s", known.name);
    return Text<40>().add("error %d", code);
}

}  // namespace halation::runtime::opencl
