// A file that is written whole or not at all.
#ifndef HALATION_SAFETENSORS_OUTPUT_FILE_H
#define HALATION_SAFETENSORS_OUTPUT_FILE_H

#include <cstddef>
#include <string>

namespace safetensors {

// Written beside its place and renamed by keep(); without keep(), what was there before stays. A link is followed. Whatever
// else the path names (a device, a pipe) is written directly. What goes wrong is a safetensors::Error of one line.
class OutputFile {
public:
    explicit OutputFile(const std::string &path);
    ~OutputFile();
    OutputFile(const OutputFile &) = delete;
    OutputFile &operator=(const OutputFile &) = delete;

    void write(const void *from, size_t count);
    void keep();

private:
    std::string path_, target_, temporary_;
    int descriptor_ = -1;
};

// Throws if a file could not be written there, so that it is said before the work and not after it. Pipes and devices are not
// opened for that: who reads them would take it for the end.
void check_writable(const std::string &path);

// A file of this content, whole or not at all.
void write_whole(const std::string &path, const std::string &content);

}  // namespace safetensors
#endif
