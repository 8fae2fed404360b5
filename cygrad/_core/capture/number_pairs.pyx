# cython: cdivision=True
"""Operators of two floats of Python as kernels, for functions that are captured: with Python's bits (CPython, Objects/floatobject.c)."""
from libc.math cimport copysign, floor, fmod, isfinite, pow

from cygrad._core.graph.launches cimport (STEADY, Launch, add_input, add_output, begin_launch, clear_arguments, run_decision, run_launch)
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT64

ctypedef enum PairOperation:
    POWER
    FLOOR_QUOTIENT
    REMAINDER

cdef struct Pair:
    PairOperation operation

cdef dict OPERATIONS = {"pow": POWER, "floordiv": FLOOR_QUOTIENT, "mod": REMAINDER}


cdef double python_remainder(double a, double b) noexcept nogil:
    cdef double remainder = fmod(a, b)
    if remainder == 0:
        return copysign(0, b)
    return remainder + b if (b < 0) != (remainder < 0) else remainder


cdef double floor_quotient(double a, double b) noexcept nogil:
    cdef double remainder = fmod(a, b), quotient = (a - remainder) / b, result
    if remainder != 0 and (b < 0) != (remainder < 0):
        quotient -= 1
    if quotient == 0:
        return copysign(0, a / b)
    result = floor(quotient)
    return result + 1 if quotient - result > 0.5 else result


cdef int compute_pair(void* arguments, char** data) noexcept nogil:
    """Write the result, and 1, or 0 where Python raises or the result is complex."""
    cdef double a = (<double*>data[0])[0], b = (<double*>data[1])[0], result
    cdef bint is_float = b != 0
    if (<Pair*>arguments).operation == POWER:
        result = pow(a, b)
        is_float = not (isfinite(a) and isfinite(b) and (a < 0 and b != floor(b) or not isfinite(result)))
    else:
        result = floor_quotient(a, b) if (<Pair*>arguments).operation == FLOOR_QUOTIENT else python_remainder(a, b)
    (<double*>data[2])[0], (<double*>data[3])[0] = result, is_float
    return 0


cdef int find_outcome(void* arguments, char** data) noexcept nogil:
    return (<double*>data[0])[0] != 0


def number_of_pair(str name, TensorImpl a not None, TensorImpl b not None):
    """Return the 0-d tensor of a number that Python computes from the numbers of two; None where it raises, or the number is complex."""
    cdef Launch launch
    cdef Pair pair
    cdef TensorImpl result = empty(CG_FLOAT64, 0, NULL), outcome = empty(CG_FLOAT64, 0, NULL)
    if not a.dtype_nr == b.dtype_nr == CG_FLOAT64 or a.ndim or b.ndim:
        raise TypeError("number_of_pair: 0-d tensors of float64 are needed")
    clear_arguments(&pair, sizeof(pair))
    pair.operation = OPERATIONS[name]
    begin_launch(&launch, "number of two", compute_pair, &pair, sizeof(pair))
    launch.traits = &STEADY
    add_input(&launch, a)
    add_input(&launch, b)
    add_output(&launch, result)
    add_output(&launch, outcome)
    run_launch(&launch, False)
    return result if run_decision("number of two", find_outcome, &pair, sizeof(pair), outcome) else None
