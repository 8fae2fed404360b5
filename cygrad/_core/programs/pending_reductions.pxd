"""Reductions of pending results, which need not be written to memory for that."""
from cpython.object cimport PyObject

from cygrad._core.graph.tensor cimport SAVED, TensorImpl
from cygrad._kernels.drivers.elementwise cimport Operand
from cygrad._kernels.drivers.reduction cimport cg_reduction

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept

cdef inline bint is_alone(TensorImpl x, int references) noexcept:
    """Return True if no node saved a tensor, and its memory has no references but its own and some of the caller's."""
    return not x.flags & SAVED and Py_REFCNT(<PyObject*>x.storage) == 1 + references

# Describe the factors of a pending product, whose memory `storages` keep; False if x is none.
cdef bint pending_product(TensorImpl x, Operand* factors, list storages) except -1
# Reduce dims of a dense pending result; False if it is not pending, was reduced before, or its program does not suit. A single result may
# be pending itself if it `waits`. Releases the GIL.
cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result, bint waits) except -1
