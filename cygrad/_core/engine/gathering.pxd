"""Gathering: the parts of one gradient that arrive one after the other are added together.

A part that overlaps others, as the places of a stencil do, is kept until the gradient is needed: then each element is written once.
"""
from cpython.object cimport PyObject

from cygrad._core.engine.run cimport Run
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._kernels.drivers.boxes cimport MAX_BOXES, Boxes

cdef enum:
    NONE = -1

cdef class Gathering:
    cdef Py_ssize_t target          # the state whose gradient is gathered, or NONE
    cdef PyObject* whole            # the gradient, which the state has; its memory is set when the parts are added
    cdef list parts
    cdef Boxes boxes

    cdef void begin(self, Py_ssize_t target, TensorImpl whole, bint fresh) noexcept

# Parts of a gradient of a state are kept.
cdef inline bint gathers(Run* run, Py_ssize_t target) noexcept:
    return run.gathering is not NULL and (<Gathering>run.gathering).target == target

# Keep a part of a gradient; False where it is better added at once. `place`: the view of it in the whole.
cdef bint keep_part(Run* run, Py_ssize_t target, TensorImpl whole, TensorImpl place, TensorImpl part, bint fresh) except -1
# Add the parts that are kept. Before code that may read the gradient, or change the parts.
cdef int add_parts(Run* run) except -1

cdef inline int add_parts_of(Run* run, Py_ssize_t target) except -1:
    """Add the parts that are kept of a state's gradient, if there are any."""
    return add_parts(run) if gathers(run, target) else 0
