#include "safetensors.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace safetensors {
namespace {

[[noreturn]] void refuse(const std::string &path, const std::string &action, int error) {
    throw Error(path + ": " + action + ": " + std::strerror(error));
}

// A file that is written and then kept, or else removed.
class Output {
public:
    explicit Output(const std::string &path) : path_(path), target_(path) {
        struct stat status;
        const bool exists = stat(path.c_str(), &status) == 0;
        if (exists && S_ISDIR(status.st_mode)) refuse(path_, "cannot be written", EISDIR);
        if (exists && !S_ISREG(status.st_mode)) {  // renaming would replace the device itself
            descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
            if (descriptor_ < 0) refuse(path_, "cannot be written", errno);
            return;
        }
        if (exists) {  // a link stays one: what it points to is replaced
            if (char *real = realpath(path.c_str(), nullptr)) {
                target_ = real;
                std::free(real);
            }
        }
        temporary_ = target_ + ".XXXXXX";
        descriptor_ = mkstemp(temporary_.data());
        if (descriptor_ < 0) {
            temporary_.clear();
            refuse(path_, "cannot be written", errno);
        }
        const mode_t mask = umask(0);  // mkstemp's mode is for secrets; an output has that of any new file
        umask(mask);
        fchmod(descriptor_, exists ? status.st_mode & 0777 : 0666 & ~mask);
    }
    ~Output() {
        if (descriptor_ >= 0) close(descriptor_);
        if (!temporary_.empty()) unlink(temporary_.c_str());
    }
    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;

    void write(const void *from, size_t count) {
        const auto *next = static_cast<const uint8_t *>(from);
        while (count > 0) {
            const ssize_t done = ::write(descriptor_, next, count);
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) refuse(path_, "cannot be written", errno);
            next += done;
            count -= static_cast<size_t>(done);
        }
    }

    void keep() {
        // Some file systems report a full disk only now.
        if (!temporary_.empty() && fsync(descriptor_) != 0) refuse(path_, "cannot be written", errno);
        const int closed = close(descriptor_);
        descriptor_ = -1;
        if (closed != 0) refuse(path_, "cannot be written", errno);
        if (temporary_.empty()) return;
        if (rename(temporary_.c_str(), target_.c_str()) != 0) refuse(path_, "cannot be written", errno);
        temporary_.clear();
    }

private:
    std::string path_, target_, temporary_;
    int descriptor_ = -1;
};

std::string header_of(const std::string &path, const File &file) {
    nlohmann::json header = nlohmann::json::object();
    if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
    uint64_t offset = 0;
    for (const auto &[name, tensor] : file.tensors) {
        uint64_t size = static_cast<uint64_t>(bytes(tensor.type));
        for (int64_t extent : tensor.shape) size *= static_cast<uint64_t>(extent);
        if (size != tensor.data.size())
            throw Error(path + ": tensor " + in_quotes(name) + ": " + std::to_string(tensor.data.size()) +
                        " bytes of data where dtype and shape make " + std::to_string(size));
        header[name] = {
            {"dtype", safetensors::name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + size}}};
        offset += size;
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception &) {
        throw Error(path + ": a name or metadata to be written is not valid UTF-8");
    }
    text.append((8 - text.size() % 8) % 8, ' ');  // tensors start aligned
    return text;
}

}  // namespace

void write(const std::string &path, const File &file) {
    const std::string header = header_of(path, file);
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = static_cast<uint8_t>(header.size() >> (8 * i));
    Output output(path);
    output.write(prefix, 8);
    output.write(header.data(), header.size());
    for (const auto &[name, tensor] : file.tensors) output.write(tensor.data.data(), tensor.data.size());
    output.keep();
}

}  // namespace safetensors
