#include "kernel_memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace kernels {

Guarded::Guarded(size_t bytes, Meets meets) : bytes_(bytes), page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    usable_bytes_ = std::max<size_t>(1, (bytes + page_ - 1) / page_) * page_;
    void *pages = mmap(nullptr, usable_bytes_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    pages_ = static_cast<uint8_t *>(pages);
    usable_ = pages_ + page_;
    if (mprotect(usable_, usable_bytes_, PROT_READ | PROT_WRITE)) throw std::bad_alloc();
    std::memset(usable_, untouched_byte, usable_bytes_);
    data_ = meets == Meets::end ? usable_ + usable_bytes_ - bytes : usable_;
}

Guarded::~Guarded() {
    munmap(pages_, usable_bytes_ + 2 * page_);
}

void Guarded::make_read_only() {
    mprotect(usable_, usable_bytes_, PROT_READ);
}

bool Guarded::surroundings_are_untouched() const {
    const auto untouched = [](uint8_t byte) { return byte == untouched_byte; };
    return std::all_of(usable_, data_, untouched) && std::all_of(data_ + bytes_, usable_ + usable_bytes_, untouched);
}

}  // namespace kernels
