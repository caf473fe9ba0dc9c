#include "context.h"
#include "rows.h"
#include "status.h"

#include <memory>

using namespace halation::runtime;

namespace {

constexpr int most_threads = 1024;

halation_status check_options(const halation_context_options &options) {
    if (options.threads < 0 || options.threads > most_threads)
        return fail(HALATION_INVALID_ARGUMENT, "options.threads: got %d; may be 0 (one per processor) to %d", options.threads,
                    most_threads);
    if (!options.allocate != !options.release)
        return fail(HALATION_INVALID_ARGUMENT, "options.%s: is NULL; allocate and release are given both or neither",
                    options.allocate ? "release" : "allocate");
    return HALATION_OK;
}

}  // namespace

namespace halation::runtime {

void retain(halation_context *context) {
    context->references.fetch_add(1, std::memory_order_relaxed);
}

void release(halation_context *context) {
    if (context->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete context;
}

}  // namespace halation::runtime

extern "C" halation_status halation_context_create(const halation_context_options *options, halation_context **context) {
    return guarded([&]() -> halation_status {
        if (!context) return fail(HALATION_INVALID_ARGUMENT, "context: is NULL");
        *context = nullptr;
        int threads = 0;
        Allocator allocator = default_allocator();
        if (options) {
            HALATION_TRY(check_struct(options, "halation_context_options"));
            HALATION_TRY(check_options(*options));
            threads = options->threads;
            if (options->allocate) allocator = {options->allocate, options->release, options->allocator_user};
        }
        if (threads == 0) threads = processor_count() < most_threads ? processor_count() : most_threads;
        *context = new halation_context(allocator, threads);
        return HALATION_OK;
    });
}

extern "C" void halation_context_destroy(halation_context *context) {
    if (context) release(context);
}

extern "C" halation_status halation_context_add_kernels(halation_context *context, const halation_kernel_table *kernels) {
    return guarded([&]() -> halation_status {
        if (!context) return fail(HALATION_INVALID_ARGUMENT, "context: is NULL");
        HALATION_TRY(check_struct(kernels, "halation_kernel_table"));
        std::lock_guard<std::mutex> lock(context->mutex);
        for (const halation_kernel_table *table : context->tables)
            if (table == kernels) return HALATION_OK;  // once is enough
        HALATION_TRY(check_table(context->tables, *kernels));
        context->tables.push_back(kernels);
        return HALATION_OK;
    });
}
