"""Every call from a lower room into a higher one, and every one into Python: fields of one object.

Imports run downwards, so who asks does not know who answers. Each field is filled once, while the module that answers is imported, and no
tensor needs it before. A field says: who asks <- who answers, and what.
"""
from cpython.object cimport PyObject

ctypedef bint (*compute_function)() noexcept
ctypedef void (*forget_function)(object storage) noexcept
ctypedef int (*share_function)(object view, object source) except -1
ctypedef int (*accumulate_function)(object leaf, PyObject* arrived) except -1
ctypedef object (*special_function)(object op, void* values, const double* params, object target, bint in_place)

cdef class Upward:
    cdef compute_function compute_waiting       # memory.storage <- compute.deferred: compute all results that wait; False if none did
    cdef forget_function forget_waiting         # memory.storage <- compute.deferred: take note of the death of a result that waits
    cdef share_function share                   # graph.tensor <- levels.levels: have a view share the tangents of its base
    cdef object refuse_special                  # graph.tensor <- levels.levels: refuse to give away the values of a special tensor
    cdef object tangents_of                     # graph.saved <- levels.levels: all tangents of a tensor
    cdef object with_tangents                   # graph.saved <- levels.levels: a tensor of the same value that has tangents
    cdef accumulate_function accumulate         # graph.node <- engine.accumulation: add what arrived at a leaf to its gradient
    cdef special_function special_elementwise   # compute.dispatch <- entry.special: an elementwise operator with a special operand

cdef Upward upward
