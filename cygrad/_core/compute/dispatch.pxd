"""Elementwise operators: from a row of the table and operands to a result and, if needed, a node.

`map_kernel` computes, `elementwise` promotes, computes and records.
The GIL is released for large results only that no other thread can see. Needs the GIL.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.operands.operands cimport Value
from cygrad._kernels.drivers.elementwise cimport MAX_PARAMS, cg_kernel

cdef enum:
    OPERANDS = 3        # of a row; RESULT is the place after them
    NO_PARTIAL = 0
    KERNEL = 1          # g * partial, by a loop
    IDENTITY = 2        # the partial is 1: the gradient passes

cdef class Op:
    cdef readonly str name
    cdef readonly str node_name
    cdef readonly object row
    cdef readonly tuple arguments       # public names of operands, then of parameters
    cdef const cg_kernel* kernel
    cdef const cg_kernel* partial_kernel[OPERANDS]
    cdef int partial_reads[OPERANDS]    # bit k: operand k, bit OPERANDS: the result
    cdef char partial_form[OPERANDS]
    cdef int arity, params, masks, bounds, cost
    cdef bint bools, integers, floats, bool_result, checks_integers, refuses_bools, counts_bools
    cdef bint plain                     # at most two operands, nothing special
    cdef bint differentiable
    cdef bint computes[8]               # by dtype: no conversion needed
    cdef double defaults[MAX_PARAMS]
    cdef int takes_numbers[OPERANDS]      # bit j: operand j, if a number, stays one in the tensor reading
    cdef list partial_readings
    cdef object reading(self, int k)
    cdef object run(self, tuple arguments, dict keywords, object out, bint in_place)

cdef class ElementwiseNode(Node):
    """Its `params` are the shapes of the operands where one was broadcast, else None."""
    cdef int dtype                      # that the operator computed in
    cdef int input_dtypes[OPERANDS]
    cdef double scalars[OPERANDS]       # in the bytes of `dtype`
    cdef double constants[MAX_PARAMS]       # parameters of the row, likewise
    cdef int read_saved(self, int k, Value* value, list unpacked) except -1
    cdef TensorImpl scalar_tensor(self, int place)
    cdef bint saved_special(self)
    cdef TensorImpl fused(self, Op op, int k, TensorImpl g, TensorImpl target, list unpacked)
    cdef TensorImpl differentiable(self, Op op, int k, TensorImpl g, list unpacked)

cdef TensorImpl map_kernel(const cg_kernel* kernel, int dtype, int out_dtype, int masks, int count, Value* values,
                           const void* params, int cost, TensorImpl target, bint private=*)
cdef int result_dtype(Op op, const Value* values) except -1
cdef TensorImpl in_dtype(TensorImpl tensor, int dtype)
cdef bint any_needs_grad(int count, const Value* values) noexcept
cdef int pack_params(Op op, const double* params, int dtype, double* packed) except -1
cdef TensorImpl elementwise(Op op, Value* values, const double* params, TensorImpl target, bint in_place)
