"""Elementwise operators in the graph: a node that multiplies the gradient by the partials of its row, in one pass each."""
from cygrad._core.compute.rows cimport OPERANDS, Row
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport INFERENCE, TensorImpl, needs_grad
from cygrad._core.operands.operands cimport Value, any_followed
from cygrad._kernels.drivers.elementwise cimport MAX_PARAMS, cg_number

cdef class ElementwiseNode(Node):
    """Its `params` are the shapes of the operands where one was broadcast, else None."""
    cdef int dtype                      # that the operator computed in
    cdef int input_dtypes[OPERANDS]
    cdef cg_number scalars[OPERANDS]        # in `dtype`
    cdef cg_number constants[MAX_PARAMS]    # parameters of the row: an array of `dtype`
    cdef int read_saved(self, int k, Value* value, list unpacked) except -1
    cdef TensorImpl scalar_tensor(self, int number)
    cdef int scalar_dtype(self, int number) noexcept
    cdef bint saved_special(self)
    cdef TensorImpl fused(self, Row op, int k, TensorImpl g, TensorImpl target, list unpacked)
    cdef TensorImpl differentiable(self, Row op, int k, TensorImpl g, list unpacked)

cdef ElementwiseNode elementwise_node(Row op, int dtype, Value* values, TensorImpl result, const cg_number* params, bint one_shape)
cdef TensorImpl in_dtype(TensorImpl tensor, int dtype)

cdef inline bint any_needs_grad(int count, const Value* values) noexcept:
    """Return True if an operator on these operands is to be recorded, in grad mode."""
    cdef int k
    for k in range(count):
        if values[k].tensor is not NULL and needs_grad(<TensorImpl>values[k].tensor):
            return not (<TensorImpl>values[k].tensor).flags & INFERENCE or any_followed(count, values)
    return False
