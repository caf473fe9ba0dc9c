// Memory for the tensors of a test, between pages that nobody may touch.
#ifndef HALATION_TESTS_KERNEL_MEMORY_H
#define HALATION_TESTS_KERNEL_MEMORY_H

#include <cstddef>
#include <cstdint>

namespace kernels {

// Which end of the data meets a page that cannot be accessed: a read or write past it ends the program. What is left of
// the page at the other end holds NaN of every type (bytes of 0xff).
enum class Meets { end, start };

class Guarded {
public:
    Guarded(size_t bytes, Meets meets);
    ~Guarded();
    Guarded(const Guarded &) = delete;
    Guarded &operator=(const Guarded &) = delete;

    uint8_t *data() const { return data_; }
    void make_read_only();
    // Whether the bytes around the data are as they were.
    bool surroundings_are_untouched() const;

private:
    uint8_t *pages_, *usable_, *data_;
    size_t bytes_, usable_bytes_, page_;
};

constexpr uint8_t untouched_byte = 0xff;

}  // namespace kernels
#endif
