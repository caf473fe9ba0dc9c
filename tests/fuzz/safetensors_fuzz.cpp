// libFuzzer: any bytes are a file that is read, or refused with one line; what is read is the same when written and read
// again.
#include "safetensors/safetensors.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

// A file that is only in memory, with a path.
class MemoryFile {
public:
    MemoryFile() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {
        if (descriptor_ < 0) std::abort();
    }
    void fill(const uint8_t *data, size_t size) {
        if (ftruncate(descriptor_, 0) || pwrite(descriptor_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
    }
    const std::string &path() const { return path_; }

private:
    int descriptor_;
    std::string path_;
};

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static MemoryFile file;
    static const std::string copy = "/tmp/safetensors_fuzz." + std::to_string(getpid());
    file.fill(data, size);
    try {
        const safetensors::File first = safetensors::read(file.path());
        safetensors::write(copy, first);
        const safetensors::File second = safetensors::read(copy);
        unlink(copy.c_str());
        require(first.metadata == second.metadata && first.tensors.size() == second.tensors.size());
        for (const auto &[name, tensor] : first.tensors) {
            const safetensors::Tensor &again = second.tensors.at(name);
            require(tensor.type == again.type && tensor.shape == again.shape && tensor.data == again.data);
            safetensors::values(tensor);
        }
    } catch (const safetensors::Error &error) {
        require(*error.what() && !std::strchr(error.what(), '\n'));
    }
    return 0;
}
