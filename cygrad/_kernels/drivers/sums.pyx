# cython: cdivision=True, initializedcheck=False
"""Sums of multiples (see sums.pxd for the contract)."""
from cygrad._kernels.drivers.elementwise cimport (CG_DIFFERENCE, CG_FLOAT32, CG_FLOAT64, CG_NEGATIVE, CG_PRODUCT, CG_SCALED_DIFFERENCE,
                                                  CG_SCALED_SUM, CG_SUM, elementwise_kernel)

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


cdef inline double factor_at(const void* data, int dtype) noexcept nogil:
    return (<const float*>data)[0] if dtype == CG_FLOAT32 else (<const double*>data)[0]


cdef bint read_formula(const cg_kernel* kernel, int dtype, const int* operands, int number_at, const void* number, const void* params,
                       Sum* sum) noexcept nogil:
    cdef int form = 0 if kernel is NULL else kernel.form
    cdef double factor = 1
    begin_sum(sum)
    if dtype != CG_FLOAT32 and dtype != CG_FLOAT64:
        return False
    if form == CG_PRODUCT and number_at >= 0:
        add_term(sum, operands[1 - number_at], factor_at(number, dtype))
        return True
    if number_at >= 0:
        return False
    if form == CG_NEGATIVE:
        add_term(sum, operands[0], -1)
        return True
    if form == CG_SCALED_SUM or form == CG_SCALED_DIFFERENCE:
        factor = factor_at(params, dtype)
    if form == CG_DIFFERENCE or form == CG_SCALED_DIFFERENCE:
        factor = -factor
    elif form != CG_SUM and form != CG_SCALED_SUM:
        return False
    add_term(sum, operands[0], 1)
    add_term(sum, operands[1], factor)
    return True


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
