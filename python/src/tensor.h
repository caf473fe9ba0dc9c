// A caller's array as a DLTensor, for the length of one call. Nothing is copied.
#ifndef HALATION_PYTHON_TENSOR_H
#define HALATION_PYTHON_TENSOR_H

#include <dlpack/dlpack.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

namespace halation::python {

enum class Access { read, write };

class Tensor {
public:
    // Raises if `array` is no array, is not on the CPU, or is read-only and to be written.
    Tensor(const char *name, nanobind::handle array, Access access);

    const DLTensor &view() const { return view_; }
    size_t bytes() const;
    bool is_compact() const;

private:
    // What another object shows through the buffer protocol, with the strides DLPack wants.
    struct Buffer {
        Py_buffer view{};
        std::vector<int64_t> shape, strides;
        ~Buffer() { PyBuffer_Release(&view); }
    };

    void take_capsule(const char *name, nanobind::handle array, Access access);
    bool take_buffer(const char *name, nanobind::handle array, Access access);

    DLTensor view_{};
    // Whichever of the two the memory came by. A capsule that nobody takes apart releases it by itself.
    nanobind::object capsule_;
    std::unique_ptr<Buffer> buffer_;
};

}  // namespace halation::python
#endif
