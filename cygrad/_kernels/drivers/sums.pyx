# cython: cdivision=True, initializedcheck=False
"""Sums of multiples (see sums.pxd for the contract)."""
from libc.math cimport signbit

from cygrad._kernels.drivers.elementwise cimport (CG_DIFFERENCE, CG_FLOAT32, CG_FLOAT64, CG_NEGATIVE, CG_PRODUCT, CG_SCALED_DIFFERENCE,
                                                  CG_SCALED_SUM, CG_SUM, elementwise_kernel)

cdef const cg_kernel* LOOPS[MAX_TERMS + 1]

for _terms in range(1, MAX_TERMS + 1):
    LOOPS[<int>_terms] = elementwise_kernel(f"sum_{_terms}")


cdef const cg_kernel* loop_of_sum(int terms) noexcept nogil:
    return LOOPS[terms]


cdef void begin_sum(Sum* sum) noexcept nogil:
    sum.terms, sum.start, sum.scale = 0, -0.0, 1


cdef void add_term(Sum* sum, int operand, double factor) noexcept nogil:
    sum.operands[sum.terms], sum.seconds[sum.terms], sum.factors[sum.terms], sum.carried[sum.terms] = operand, NONE, factor, 1
    sum.terms += 1


cdef inline double factor_at(const void* data, int dtype) noexcept nogil:
    return (<const float*>data)[0] if dtype == CG_FLOAT32 else (<const double*>data)[0]


cdef bint read_formula(const cg_kernel* kernel, int dtype, const int* operands, int number_at, const void* number, const void* params,
                       bint products, Sum* sum) noexcept nogil:
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
    if form == CG_PRODUCT and products:
        add_term(sum, operands[0], 1)
        sum.seconds[0] = operands[1]
        return True
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


cdef inline bint multiply_exactly(double* factor, double other) noexcept nogil:
    """Multiply a factor by another one, where one product has the bits of two."""
    if not is_unit(factor[0]) and not is_unit(other):
        return False
    factor[0] *= other
    return True


cdef inline void copy_term(Sum* sum, int term, const Sum* source, int k) noexcept nogil:
    sum.operands[term], sum.seconds[term], sum.factors[term] = source.operands[k], source.seconds[k], source.factors[k]
    sum.carried[term] = source.carried[k]


cdef bint drop_zero(Sum* sum, int term) noexcept nogil:
    cdef int k
    if sum.terms == 1 or sum.factors[term] * 0 != 0:
        return False
    if not signbit(sum.factors[term]):
        sum.start = 0       # to -0 nothing but -0 would have been added
    sum.terms -= 1
    for k in range(term, sum.terms):
        copy_term(sum, k, sum, k + 1)
    return True


cdef bint is_carried_whole(const Sum* sum) noexcept nogil:
    cdef int k
    for k in range(2, sum.terms):
        if sum.carried[k] != 1:
            return False
    return True


cdef bint multiply_by(double* factor, const Sum* sum) noexcept nogil:
    return sum.terms == 1 and signbit(sum.start) and sum.scale == 1 and multiply_exactly(factor, sum.factors[0])


cdef bint put_in(Sum* outer, int operand, const Sum* inner) noexcept nogil:
    cdef Sum joined = inner[0]
    cdef int place = NONE, k
    cdef double factor
    for k in range(outer.terms):
        if outer.seconds[k] == operand or outer.operands[k] == operand and (place != NONE or outer.seconds[k] != NONE):
            return False
        if outer.operands[k] == operand:
            place = k
    if place == NONE:
        return False
    factor = outer.factors[place]
    if inner.terms == 1 and signbit(inner.start):
        if multiply_by(&outer.factors[place], inner):
            outer.operands[place], outer.seconds[place] = inner.operands[0], inner.seconds[0]
            return True
        return False
    if outer.terms == 1 and signbit(outer.start):
        if outer.scale != 1 or not multiply_exactly(&joined.scale, factor):
            return False
        outer[0] = joined
        return True
    if inner.terms + outer.terms - 1 > MAX_TERMS or place and (place > 1 or outer.terms > 2):
        return False
    if not multiply_exactly(&factor, inner.scale) or factor != 1 and inner.terms == 1:
        return False
    joined.scale = outer.scale
    if not signbit(outer.start):
        if factor != 1 or not is_carried_whole(inner):
            return False
        joined.start = 0    # a sum is -0 where the start and all terms are
    for k in range(outer.terms):
        if k != place:
            copy_term(&joined, joined.terms, outer, k)
            if k < 2 and inner.terms > 1:
                joined.carried[joined.terms] = factor
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
    values[count] = sum.scale
    for k in range(count + 1):
        if dtype == CG_FLOAT32:
            (<float*>numbers)[k] = <float>values[k]
        else:
            (<double*>numbers)[k] = values[k]


cdef bint write_factors(const Sum* sum, double* numbers) noexcept nogil:
    cdef int k
    for k in range(sum.terms):
        if sum.seconds[k] != NONE and sum.factors[k] != 1:
            return False
    if not is_carried_whole(sum) or sum.scale != 1:
        return False
    numbers[0] = sum.start
    for k in range(sum.terms):
        numbers[1 + k] = sum.factors[k]
    return True
