# cython: cdivision=True, initializedcheck=False
"""Sums of multiples (see sums.pxd for the contract)."""
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, elementwise_kernel

cdef const cg_kernel* LOOPS[MAX_TERMS + 1]

for _terms in range(1, MAX_TERMS + 1):
    LOOPS[<int>_terms] = elementwise_kernel(f"sum_{_terms}")


cdef const cg_kernel* loop_of_sum(int terms) noexcept nogil:
    return LOOPS[terms]


cdef void begin_sum(Sum* sum) noexcept nogil:
    sum.terms, sum.start = 0, -0.0


cdef void add_term(Sum* sum, int operand, double factor) noexcept nogil:
    sum.operands[sum.terms], sum.factors[sum.terms], sum.carried[sum.terms] = operand, factor, 1
    sum.terms += 1


cdef inline bint is_unit(double factor) noexcept nogil:
    """Return True if any product with a factor is exact."""
    return factor == 1 or factor == -1


cdef bint put_in(Sum* outer, int operand, const Sum* inner) noexcept nogil:
    cdef Sum joined = inner[0]
    cdef int place = -1, k
    cdef double factor
    for k in range(outer.terms):
        if outer.operands[k] == operand:
            if place >= 0 or k > 1 or k and outer.terms > 2:
                return False
            place = k
    if place < 0 or inner.terms + outer.terms - 1 > MAX_TERMS:
        return False
    factor = outer.factors[place]
    if inner.terms > 1 and outer.terms > 1:
        joined.carried[inner.terms] = factor        # of the first further term
    elif inner.terms == 1 and (is_unit(factor) or is_unit(inner.factors[0])):
        joined.factors[0] *= factor
    else:
        return False        # nor the negative of a sum, which is -0 where the sum is 0
    for k in range(outer.terms):
        if k != place:
            joined.operands[joined.terms], joined.factors[joined.terms] = outer.operands[k], outer.factors[k]
            if k > 1 or inner.terms == 1:
                joined.carried[joined.terms] = outer.carried[k]
            joined.terms += 1
    outer[0] = joined
    return True


cdef void write_numbers(const Sum* sum, int dtype, void* numbers) noexcept nogil:
    cdef double[2 * MAX_TERMS] values
    cdef int count = 2, k
    values[0], values[1] = sum.start, sum.factors[0]
    for k in range(1, sum.terms):
        if k > 1:
            values[count] = sum.carried[k]
            count += 1
        values[count] = sum.factors[k]
        count += 1
    for k in range(count):
        if dtype == CG_FLOAT32:
            (<float*>numbers)[k] = <float>values[k]
        else:
            (<double*>numbers)[k] = values[k]
