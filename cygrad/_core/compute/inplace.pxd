"""In-place changes: which are allowed, and the histories of bases and views after them.

A base that was changed through a view gets a CopySlices node, which applies the operator's node to the view's part of the
gradient. Other views notice by the version that their node is out of date and get a new one when it is read.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.rules cimport RuleOp
from cygrad._core.graph.tensor cimport TensorImpl

cdef class CopySlices(Node):
    """Its `op` is the node of the operator that changed the view, its `params` the geometry of base and view."""
    cdef int view_edge      # of the operator's edges, the one to the view
    cdef TensorImpl put(self, TensorImpl g, TensorImpl part, PyObject** whole)

cpdef object write_values(TensorImpl target, write)
cdef int check_history(TensorImpl target, bint recorded) except -1
cdef int check_in_place(TensorImpl target, bint recorded) except -1
cdef int rebase(TensorImpl target, Node node, int view_edge=*, int output_nr=*) except -1
cdef int record_in_place(RuleOp op, TensorImpl target, TensorImpl source, tuple params) except -1
cdef int take_history(TensorImpl copy, TensorImpl tensor) except -1
cdef TensorImpl as_before(TensorImpl operand, TensorImpl target)
cdef int record_copy(TensorImpl target, TensorImpl source) except -1
cdef int cut_history(TensorImpl target, bint zero=*) except -1
