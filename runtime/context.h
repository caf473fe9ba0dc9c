// A context: what one caller owns. Everything a call needs beyond its arguments hangs here.
#ifndef HALATION_RUNTIME_CONTEXT_H
#define HALATION_RUNTIME_CONTEXT_H

#include "device.h"
#include "halation_kernels.h"
#include "memory.h"
#include "thread_pool.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

struct halation_context {
    halation_context(halation::runtime::Allocator given, int threads)
        : allocator(given), pool(threads), scratch(new halation::runtime::Scratch[static_cast<size_t>(threads)]) {
        for (int i = 0; i < threads; i++) scratch[static_cast<size_t>(i)].set_allocator(&allocator);
    }

    halation::runtime::Scratch &scratch_of(int worker) { return scratch[static_cast<size_t>(worker)]; }

    std::mutex mutex;  // held by every call on this context
    const halation::runtime::Allocator allocator;
    halation::runtime::ThreadPool pool;
    std::unique_ptr<halation::runtime::Scratch[]> scratch;  // one per worker
    std::vector<const halation_kernel_table *> tables;
    std::unique_ptr<halation::runtime::Device> device;  // NULL: none was opened

    // Plans keep their context alive, so the two may be destroyed in either order.
    std::atomic<int> references{1};
};

namespace halation::runtime {

void retain(halation_context *context);
void release(halation_context *context);

}  // namespace halation::runtime
#endif
