#include "errors.h"

namespace nb = nanobind;

namespace halation::python {
namespace {

struct Kind {
    halation_status status;
    const char *name;
    PyObject *&builtin;  // that it is also caught as
    const char *doc;
};

const Kind kinds[] = {
    {HALATION_INVALID_ARGUMENT, "InvalidArgument", PyExc_ValueError,
     "The caller can mend it: a name, shape, type, stride or value."},
    {HALATION_UNSUPPORTED, "Unsupported", PyExc_NotImplementedError,
     "Understood, but no kernel here can do it; the message says why."},
    {HALATION_OUT_OF_MEMORY, "OutOfMemory", PyExc_MemoryError, "No memory for the library's own bookkeeping or scratch."},
    {HALATION_INTERNAL_ERROR, "InternalError", PyExc_RuntimeError, "A fault of the library."},
};

// Classes live as long as the process: exceptions may be raised until its end.
PyObject *base_class, *class_of[HALATION_INTERNAL_ERROR + 1];

PyObject *new_class(nb::module_ &module, const char *name, const char *doc, PyObject *bases) {
    const std::string full_name = std::string(nb::str(module.attr("__name__")).c_str()) + "." + name;
    PyObject *made = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, bases, nullptr);
    if (!made) throw nb::python_error();
    module.attr(name) = nb::borrow(made);
    return made;
}

}  // namespace

void add_errors(nb::module_ &module) {
    base_class = new_class(module, "Error", "What a call that fails raises.", PyExc_Exception);
    for (const Kind &kind : kinds) {
        const nb::tuple bases = nb::make_tuple(nb::handle(base_class), nb::handle(kind.builtin));
        class_of[kind.status] = new_class(module, kind.name, kind.doc, bases.ptr());
    }
}

void raise(halation_status status, const std::string &message) {
    PyErr_SetString(class_of[status], message.c_str());
    throw nb::python_error();
}

void raise_type_error(const std::string &message) {
    PyErr_SetString(PyExc_TypeError, message.c_str());
    throw nb::python_error();
}

void raise_invalid_from(nb::python_error &cause, const char *name) {
    const std::string why = nb::str(cause.value()).c_str();
    nb::raise_from(cause, class_of[HALATION_INVALID_ARGUMENT], "%s: %s", name, why.c_str());
    throw nb::python_error();
}

bool is_error(const nb::python_error &error) {
    return error.matches(base_class);
}

std::string shown(nb::handle value) {
    const std::string type = nb::type_name(value.type()).c_str();
    const std::string text = nb::repr(value).c_str();
    const bool is_short = text.size() <= 60 && text.find('\n') == std::string::npos;
    return (is_short ? text + ", " : "an object ") + "of type " + type;
}

}  // namespace halation::python
