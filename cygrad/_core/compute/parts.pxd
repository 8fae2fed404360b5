"""Parts of a tensor by basic indices (ints, slices, None, ...): views, and the nodes that have their places."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.rule_nodes cimport RuleNode
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS

cdef enum:
    FEW = 4         # dims up to which a node has room

cdef struct Cut:    # of a dim
    intptr_t start, length, step        # length -1: one place, and the dim is dropped

cdef struct Cuts:
    Cut dims[MAX_DIMS]
    int sources[2 * MAX_DIMS]       # the dim that each one of the view was, -1: it is new
    int ndim                        # of the view
    bint adds_dims                  # some are new

cdef class PartNode(RuleNode):
    """Of a tensor of few dims: it has its parameters, the tensor's shape and the index, without objects of Python."""
    cdef intptr_t sizes[FEW]
    cdef Cut cuts[FEW]
    cdef int ndim

cdef TensorImpl basic_view(TensorImpl x, tuple key, Cuts* cuts)
cdef TensorImpl view_along(TensorImpl x, int d, intptr_t start, intptr_t length)
cdef int record_part(TensorImpl x, TensorImpl part, tuple items, const Cuts* cuts) except -1
cdef void zero_outside(TensorImpl whole, TensorImpl part) noexcept
