// Where kernels are made.
#ifndef HALATION_LAB_WORK_FOLDER_H
#define HALATION_LAB_WORK_FOLDER_H

#include <string>

namespace halation::lab {

// A folder that is gone when this is; those of processes that were killed go when another is made.
class WorkFolder {
public:
    WorkFolder();
    ~WorkFolder();
    WorkFolder(const WorkFolder &) = delete;
    WorkFolder &operator=(const WorkFolder &) = delete;
    const std::string &path() const { return path_; }
    std::string sub(const std::string &name) const;  // makes it

private:
    std::string path_;
    int lock_ = -1;
};

}  // namespace halation::lab
#endif
