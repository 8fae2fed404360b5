"""Sums of multiples: one loop for some terms, with the bits of steps that add, subtract and scale one array after the other.

    scale * (carried[3] * (carried[2] * (start + factors[0] * x0 + factors[1] * x1) + factors[2] * x2) + factors[3] * x3)

Of a few doubles, an `x` may be the product of two operands. Loops have no scale but 1.

There are no tensors here. All code is `noexcept nogil`.
"""
from cygrad._kernels.drivers.elementwise cimport cg_kernel, cg_number

cdef enum:
    NONE = -1
    MAX_TERMS = 4       # for so many there are rows in `cygrad/ops/sums.py`

cdef struct Sum:
    int terms
    int operands[MAX_TERMS + 1]     # the caller's numbers of the arrays, and room for the result's
    int seconds[MAX_TERMS]          # of the arrays that multiply them, or NONE
    double start                    # -0, to which every number is added exactly, or 0
    double factors[MAX_TERMS]
    double carried[MAX_TERMS]       # from the third term on
    double scale

# The numbers that the loop takes besides the arrays.
ctypedef cg_number[2 * MAX_TERMS] SumNumbers

cdef void begin_sum(Sum* sum) noexcept nogil
cdef void add_term(Sum* sum, int operand, double factor) noexcept nogil
# Read the formula of a kernel as a sum of its operands, of which one may be a number (its place, or NONE); False: it is another formula.
# `products`: a product of operands is a sum of one term.
cdef bint read_formula(const cg_kernel* kernel, int dtype, const int* operands, int number_at, const void* number, const void* params,
                       bint products, Sum* sum) noexcept nogil
# Leave out a term that is 0; False, and nothing has changed, where it is the only one or its factor is not finite. For sums of a formula.
cdef bint drop_zero(Sum* sum, int term) noexcept nogil
# Multiply a factor by the one of a sum of one term; False, and nothing has changed, where that is no such sum or the bits would differ.
cdef bint multiply_by(double* factor, const Sum* sum) noexcept nogil
# Put a sum in place of an operand of another one; False, and nothing has changed, where the bits would differ or terms are too many. The
# sum may have a scale then.
cdef bint put_in(Sum* outer, int operand, const Sum* inner) noexcept nogil
cdef const cg_kernel* loop_of_sum(int terms) noexcept nogil
# In float32 or float64; the scale is the last one.
cdef void write_numbers(const Sum* sum, int dtype, void* numbers) noexcept nogil
# Write the start and the factors alone; False, and nothing is written, where more is needed: a sum or a product is multiplied.
cdef bint write_factors(const Sum* sum, double* numbers) noexcept nogil
