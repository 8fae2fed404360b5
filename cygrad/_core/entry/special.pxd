from cpython.object cimport PyObject

cdef int any_special(PyObject** arguments, Py_ssize_t count) except -1
cdef object call_special(object op, object arguments, object keywords)
