#include "work_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/file.h>
#include <unistd.h>

namespace halation::lab {
namespace {

constexpr const char *folder_start = "halation-lab-", *lock_name = "/lock";

// Those of processes that were killed: their locks are free.
void remove_abandoned(const std::filesystem::path &where) {
    std::error_code ignored;
    for (const auto &entry : std::filesystem::directory_iterator(where, ignored)) {
        if (entry.path().filename().string().rfind(folder_start, 0) != 0) continue;
        const int lock = open((entry.path().string() + lock_name).c_str(), O_RDWR | O_CLOEXEC);
        if (lock < 0) continue;
        if (flock(lock, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(entry.path(), ignored);
        close(lock);
    }
}

}  // namespace

WorkFolder::WorkFolder() {
    const std::filesystem::path where = std::filesystem::temp_directory_path();
    remove_abandoned(where);
    std::string name = (where / (std::string(folder_start) + "XXXXXX")).string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder " + name + ": " + std::strerror(errno));
    path_ = name;
    lock_ = open((path_ + lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ >= 0) flock(lock_, LOCK_EX);
}

WorkFolder::~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    if (lock_ >= 0) close(lock_);
}

std::string WorkFolder::sub(const std::string &name) const {
    std::filesystem::create_directories(path_ + "/" + name);
    return path_ + "/" + name;
}

}  // namespace halation::lab
