// What device_bench asks of CUDA's driver beside Halation: the speed of a copy, and a graph of calls.
#ifndef HALATION_BENCH_CUDA_DRIVER_H
#define HALATION_BENCH_CUDA_DRIVER_H

#include <halation.hpp>

#include <functional>

namespace bench {

// Of a context whose device is one of CUDA; it gets a stream of the bench's own. Throws std::runtime_error where the driver
// fails.
class CudaDriver {
public:
    explicit CudaDriver(halation::Context &context);
    ~CudaDriver();
    CudaDriver(const CudaDriver &) = delete;
    CudaDriver &operator=(const CudaDriver &) = delete;

    // A call that copies so many bytes within the device's memory: what a decode, which reads and writes each state once, is
    // held against. `from` and `to` must last as long.
    std::function<void()> copy(const halation::DeviceMemory &from, halation::DeviceMemory &to, size_t bytes) const;

    // A call that puts a kernel into the stream which only loads and stores `states` [128, 128] of floats in place, a block of it
    // rows of so many floats (32, 64 or 128) of a state: what a decode with such tiles can reach.
    std::function<void()> in_place(halation::DeviceMemory &states, int64_t count, int row) const;

    // Calls something some times while the stream is captured in a graph, and returns what launches that graph.
    std::function<void()> captured(int calls, const std::function<void()> &call) const;

private:
    halation::Context &context_;
    void *library_, *stream_ = nullptr;

    template<typename... Values> void call(const char *name, Values... values) const;
};

}  // namespace bench
#endif
