"""Every call from a lower room into a higher one, and every one into Python: fields of one object.

Imports run downwards, so a caller does not import the function that answers. Each field is filled once, while the module that answers is
imported, and no tensor needs it before. A field names the caller <- the module that answers, and the result. Besides, `set_tensor_type`
takes the class that results have.
"""
from cpython.object cimport PyObject

ctypedef bint (*run_function)(object storage, bint changes) noexcept
ctypedef void (*forget_function)(object storage) noexcept
ctypedef int (*share_function)(object view, object source) except -1
ctypedef int (*accumulate_function)(object leaf, PyObject* arrived) except -1
ctypedef object (*special_function)(object op, void* values, const void* params, object target, bint in_place)

cdef class Upward:
    cdef run_function run_pending               # memory.storage <- programs.pending: see run_pending there
    cdef forget_function forget_pending         # memory.storage <- programs.pending: take note of the death of a pending result
    cdef share_function share                   # graph.tensor <- levels.tangents: have a view share the tangents of its base
    cdef object refuse_special                  # graph.tensor <- levels.batches: refuse to give away the values of a special tensor
    cdef object tangents_of                     # graph.saved <- levels.tangents: all tangents of a tensor
    cdef object with_tangents                   # graph.saved <- levels.tangents: a tensor of the same value that has tangents
    cdef accumulate_function accumulate         # graph.history <- engine.accumulation: add an arrived gradient to a leaf's
    cdef special_function special_elementwise   # compute.dispatch <- entry.special: an elementwise operator with a special operand
    # From Python, by fill().
    cdef public object prepare          # graph.rules <- cygrad.tensor: import a rule's declaration and the operators it calls
    cdef public object functions        # compute.rows <- cygrad.operators.elementwise: operators that formulas call, by name
    cdef public object explain          # compute.dispatch <- cygrad.operators.elementwise: the argument that an error comes of
    cdef public object declaration_of   # entry.special <- cygrad.tensor: the declaration of an operator of the core, by name
    cdef public object override         # levels.overrides <- cygrad.tensor: the answer of a class that overrides, or of a rule of `_sparse`
    cdef public object forward_rules    # entry.special <- cygrad.autograd.tangents: rules of forward mode that declarations name

cdef Upward upward
