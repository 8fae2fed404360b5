"""Sums of gradients: in the buffers of a backward, and in the `.grad` of leaves.

The GIL is the lock of `.grad`: nothing lets it go between reading one and writing it back.
"""
from cpython.object cimport PyObject

from cygrad._core.compute.dispatch cimport Op
from cygrad._core.graph.tensor cimport TensorImpl

cdef Op add
cdef TensorImpl sum_of(TensorImpl a, TensorImpl b, TensorImpl target, bint private=*, bint waits=*)
cdef bint has_layout_of(TensorImpl grad, TensorImpl variable) noexcept
cdef TensorImpl laid_out_as(TensorImpl variable, TensorImpl grad)
cdef int check_arrival(TensorImpl variable, TensorImpl grad) except -1
cdef int collect(PyObject** reference, PyObject* grad) except -1
