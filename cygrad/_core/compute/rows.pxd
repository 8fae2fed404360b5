"""Rows of the table of elementwise operators, as the core uses them: kernels of an operator and its partials, and the values these read."""
from cygrad._core.operands.operands cimport Value
from cygrad._kernels.drivers.elementwise cimport CG_DTYPES, cg_kernel, cg_number

cdef enum:
    OPERANDS = 3        # of a row; RESULT is the place after them
    NO_PARTIAL = 0
    KERNEL = 1          # g * partial, by a loop
    IDENTITY = 2        # the partial is 1: the gradient passes
    OF_REAL = 0         # readings of a partial: of real numbers, of which gradients and tangents are products with the same
    OF_COMPLEX = 1      # of complex ones, the product with a gradient
    OF_TANGENT = 2      # and the one with a tangent

cdef class Row:
    cdef readonly str name
    cdef readonly str node_name
    cdef readonly str title             # torch's name in messages: the one of its `special`, where it is nothing else there
    cdef readonly object row
    cdef readonly tuple arguments       # public names of operands, then of parameters
    cdef const cg_kernel* kernel
    cdef const cg_kernel* partial_kernel[OPERANDS]
    cdef int partial_reads[OPERANDS]    # bit k: operand k, bit OPERANDS: the result
    cdef char partial_form[OPERANDS]
    cdef int arity, params, masks, bounds, tensors, cost
    cdef bint converts                  # bools and integers, to floats
    cdef bint bool_result, checks_integers, checks_params, refuses_bools, counts_bools
    cdef bint simple                    # at most two operands, nothing special
    cdef bint differentiable
    cdef bint computes[CG_DTYPES]               # by dtype: no conversion needed
    cdef int results[CG_DTYPES]                 # by that dtype: of the result
    cdef tuple defaults                 # of the parameters
    cdef int takes_numbers[OPERANDS]      # bit j: operand j, if a number, stays one in the tensor reading
    cdef list partial_readings
    cdef object reading(self, int k, int form)

cdef bint reads_operand(Row op, int operand) noexcept
cdef bint read_param(object argument, Value* value) except -1
cdef int pack_params(Row op, const Value* params, int dtype, cg_number* packed) except -1
