#include "tensor.h"
#include "errors.h"

#include <string>

namespace nb = nanobind;

namespace halation::python {
namespace {

// DLManagedTensorVersioned and DLManagedTensor of DLPack 1; Debian's header is older.
struct Versioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(Versioned *);
    uint64_t flags;
    DLTensor tensor;
};
struct Unversioned {
    DLTensor tensor;
    void *manager;
    void (*deleter)(Unversioned *);
};
constexpr uint64_t is_read_only = 1, is_copied = 2;
constexpr int is_bool = 6;  // kDLBool

[[noreturn]] void refuse(const char *name, const std::string &why) {
    raise(HALATION_INVALID_ARGUMENT, std::string(name) + ": " + why);
}

[[noreturn]] void refuse_read_only(const char *name) {
    refuse(name, "is read-only; must be writable, it is an output");
}

// Asked before the data, which may be made to wait for a device.
void check_device(const char *name, nb::handle array) {
    const nb::object device = array.attr("__dlpack_device__")();
    const int type = nb::cast<int>(nb::int_(device[0]));
    if (type != kDLCPU)
        refuse(name, "is on another device (DLPack device type " + std::to_string(type) + "); must be on the CPU");
}

nb::object capsule_of(nb::handle array) {
    // Types of before DLPack 1, which do not know the argument. Raising that anew costs as much as a small kernel. Never freed.
    static PyObject *const unversioned_types = PySet_New(nullptr);
    const nb::object method = array.attr("__dlpack__");
    if (PySet_Contains(unversioned_types, array.type().ptr()) != 1) {
        try {
            return method(nb::arg("max_version") = nb::make_tuple(1, 0));
        } catch (nb::python_error &error) {
            if (!error.matches(PyExc_TypeError)) throw;
        }
    }
    nb::object capsule = method();
    PySet_Add(unversioned_types, array.type().ptr());
    return capsule;
}

// NumPy has no bfloat16 of its own, only that of ml_dtypes, which it exports in no way.
bool is_numpy_bfloat16(nb::handle array) {
    return nb::hasattr(array, "__array_interface__") && nb::str(array.attr("dtype")).equal(nb::str("bfloat16"));
}

// Of the formats of the struct module those that halation.h takes. Both byte orders that are marked so are this machine's.
bool type_of(const Py_buffer &view, DLDataType *type) {
    const char *format = view.format ? view.format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (!*format || format[1]) return false;
    const std::string letter(format);
    int code = -1;
    if (std::string("bhilqn").find(letter) != std::string::npos) code = kDLInt;
    if (std::string("BHILQN").find(letter) != std::string::npos) code = kDLUInt;
    if (letter == "?") code = is_bool;
    if (std::string("efd").find(letter) != std::string::npos) code = kDLFloat;
    if (code < 0) return false;
    *type = {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * view.itemsize), 1};
    return true;
}

bool is_writable_buffer(nb::handle array) {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDED)) {
        PyErr_Clear();
        return false;
    }
    PyBuffer_Release(&view);
    return true;
}

}  // namespace

Tensor::Tensor(const char *name, nb::handle array, Access access) {
    if (!nb::hasattr(array, "__dlpack__")) {
        if (!take_buffer(name, array, access))
            raise_type_error(std::string(name) + ": got " + shown(array) +
                             "; must be an array: NumPy's, PyTorch's, any with __dlpack__");
        return;
    }
    try {
        if (nb::hasattr(array, "__dlpack_device__")) check_device(name, array);
        take_capsule(name, array, access);
    } catch (nb::python_error &error) {
        if (!error.matches(PyExc_Exception) || is_error(error)) throw;
        if (is_numpy_bfloat16(array)) {
            *this = Tensor(name, array.attr("view")("uint16"), access);
            view_.dtype = {kDLBfloat, 16, 1};
        } else if (!take_buffer(name, array, access)) {  // by which NumPy 1 gives bool and what is read-only
            raise_invalid_from(error, name);
        }
    }
}

void Tensor::take_capsule(const char *name, nb::handle array, Access access) {
    capsule_ = capsule_of(array);
    if (PyCapsule_IsValid(capsule_.ptr(), "dltensor_versioned")) {
        const auto *managed = static_cast<Versioned *>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor_versioned"));
        if (managed->major != 1) refuse(name, "comes by DLPack " + std::to_string(managed->major) + "; may come by 0 or 1");
        if (access == Access::write && managed->flags & is_read_only) refuse_read_only(name);
        if (access == Access::write && managed->flags & is_copied)
            refuse(name, "comes as a copy, so nothing can be written to it");
        view_ = managed->tensor;
    } else if (PyCapsule_IsValid(capsule_.ptr(), "dltensor")) {
        view_ = static_cast<Unversioned *>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor"))->tensor;
        // Such a capsule cannot say that it is read-only, as JAX's arrays are; a buffer can.
        if (access == Access::write && PyObject_CheckBuffer(array.ptr()) && !is_writable_buffer(array)) refuse_read_only(name);
    } else {
        refuse(name, "its __dlpack__ returned " + shown(capsule_));
    }
}

bool Tensor::take_buffer(const char *name, nb::handle array, Access access) {
    if (!PyObject_CheckBuffer(array.ptr())) return false;
    auto buffer = std::make_unique<Buffer>();
    if (PyObject_GetBuffer(array.ptr(), &buffer->view, PyBUF_RECORDS_RO)) {
        PyErr_Clear();
        return false;
    }
    const Py_buffer &given = buffer->view;
    if (!type_of(given, &view_.dtype)) return false;
    for (int axis = 0; axis < given.ndim; axis++) {
        if (given.strides[axis] % given.itemsize) return false;
        buffer->shape.push_back(given.shape[axis]);
        buffer->strides.push_back(given.strides[axis] / given.itemsize);
    }
    if (access == Access::write && given.readonly) refuse_read_only(name);
    view_.data = given.buf;
    view_.device = {kDLCPU, 0};
    view_.ndim = given.ndim;
    view_.shape = buffer->shape.data();
    view_.strides = buffer->strides.data();
    buffer_ = std::move(buffer);
    return true;
}

size_t Tensor::bytes() const {
    size_t count = (view_.dtype.bits * view_.dtype.lanes + 7) / 8;
    for (int axis = 0; axis < view_.ndim; axis++) count *= static_cast<size_t>(view_.shape[axis]);
    return count;
}

bool Tensor::is_compact() const {
    int64_t compact = 1;
    for (int axis = view_.ndim - 1; axis >= 0; axis--) {
        if (view_.strides && view_.shape[axis] > 1 && view_.strides[axis] != compact) return false;
        compact *= view_.shape[axis];
    }
    return true;
}

}  // namespace halation::python
