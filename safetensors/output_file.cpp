#include "output_file.h"
#include "safetensors.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace safetensors {
namespace {

[[noreturn]] void refuse(const std::string &path, int error, const char *what = "cannot be written") {
    throw Error((path.empty() ? "''" : path) + ": " + what + ": " + std::strerror(error));
}

// Where links lead, be it there or not.
std::filesystem::path end_of_links(std::filesystem::path path) {
    std::error_code error;
    for (int links = 0; links < 40 && std::filesystem::is_symlink(path, error); links++) {
        const std::filesystem::path next = std::filesystem::read_symlink(path, error);
        if (error) break;
        path = next.is_absolute() ? next : path.parent_path() / next;
    }
    return path;
}

}  // namespace

OutputFile::OutputFile(const std::string &path) : path_(path) {
    if (path.empty()) refuse(path, ENOENT);
    struct stat status;
    const bool exists = stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) refuse(path, EISDIR);
    if (exists && !S_ISREG(status.st_mode)) {  // renaming would replace the device itself
        descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (descriptor_ < 0) refuse(path, errno);
        return;
    }
    if (exists && access(path.c_str(), W_OK) != 0) refuse(path, errno);
    const std::filesystem::path target = end_of_links(path);
    target_ = target.string();
    temporary_ = (target.parent_path() / ".halation-XXXXXX").string();
    descriptor_ = mkstemp(temporary_.data());
    if (descriptor_ < 0) {
        temporary_.clear();
        refuse(path, errno, exists ? "cannot be written, since no file can be made beside it" : "cannot be written");
    }
    const mode_t mask = umask(0);  // mkstemp's mode is for secrets; an output has that of any new file
    umask(mask);
    fchmod(descriptor_, exists ? status.st_mode & 0777 : 0666 & ~mask);
}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(const void *from, size_t count) {
    const auto *next = static_cast<const uint8_t *>(from);
    while (count > 0) {
        const ssize_t done = ::write(descriptor_, next, count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) refuse(path_, errno);
        next += done;
        count -= static_cast<size_t>(done);
    }
}

void OutputFile::keep() {
    // Some file systems report a full disk only now.
    if (!temporary_.empty() && fsync(descriptor_) != 0) refuse(path_, errno);
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) refuse(path_, errno);
    if (temporary_.empty()) return;
    if (rename(temporary_.c_str(), target_.c_str()) != 0) refuse(path_, errno);
    temporary_.clear();
}

void check_writable(const std::string &path) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status) || std::filesystem::is_directory(status))
        OutputFile{path};
}

void write_whole(const std::string &path, const std::string &content) {
    OutputFile output(path);
    output.write(content.data(), content.size());
    output.keep();
}

}  // namespace safetensors
