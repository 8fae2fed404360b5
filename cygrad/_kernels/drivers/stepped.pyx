# cython: cdivision=True
"""Functions of numbers that take a number of steps, element by element: they are no rows, as vectors are of no use to them."""
cimport numpy
from libc.stdint cimport intptr_t
from libc.string cimport strcmp

from cygrad._kernels.system.threads cimport COST_HEAVY, run_in_parts, threads_for

import numpy

numpy.import_array()

cdef extern from "drivers/stepped.h" nogil:
    ctypedef double (*number_function "cg_number_function")(double a, double b, double parameter) noexcept nogil
    ctypedef struct Function "cg_stepped_function":
        const char* name
        number_function compute
    const Function functions "cg_stepped_functions"[]

cdef enum:
    CHUNK = 256     # numbers


cdef number_function function_of(str name) except NULL:
    cdef const Function* row = functions
    encoded = name.encode()
    while row.name is not NULL:
        if strcmp(row.name, encoded) == 0:
            return row.compute
        row += 1
    raise LookupError(f"there is no function of numbers named {name!r}")


cdef struct Numbers:
    number_function compute
    const double* a
    const double* b
    double* y
    double parameter


cdef void compute_range(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef const Numbers* numbers = <const Numbers*>job
    cdef intptr_t i
    for i in range(first, last):
        numbers.y[i] = numbers.compute(numbers.a[i], numbers.b[i], numbers.parameter)


def stepped(str name not None, a not None, b not None, double parameter=0):
    """Return the function of that name of two arrays of one shape, as float64."""
    cdef numpy.ndarray first = numpy.asarray(a, numpy.float64, "C"), second = numpy.asarray(b, numpy.float64, "C")
    cdef numpy.ndarray result = numpy.empty_like(first)
    cdef Numbers numbers
    cdef intptr_t n = numpy.PyArray_SIZE(result)
    if numpy.PyArray_SIZE(second) != n:
        raise ValueError(f"{name}: {n} numbers beside {numpy.PyArray_SIZE(second)}")
    numbers.compute, numbers.parameter = function_of(name), parameter
    numbers.a, numbers.b = <const double*>numpy.PyArray_DATA(first), <const double*>numpy.PyArray_DATA(second)
    numbers.y = <double*>numpy.PyArray_DATA(result)
    with nogil:     # in more parts than there are threads: some numbers take many steps
        run_in_parts(compute_range, &numbers, n, CHUNK, threads_for(n, COST_HEAVY), True)
    return result
