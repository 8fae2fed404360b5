# cython: cdivision=True
"""Functions of numbers that take a number of steps, element by element: they are no rows, as vectors are of no use to them."""
cimport numpy
from cython.parallel cimport prange
from libc.stdint cimport intptr_t
from libc.string cimport strcmp

from cygrad._kernels.drivers.elementwise cimport cg_team_size
from cygrad._kernels.system.threads cimport COST_HEAVY, note_threads, thread_limit, threads_for

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


cdef void compute_range(number_function compute, const double* a, const double* b, double parameter, double* y, intptr_t n) noexcept nogil:
    cdef intptr_t i
    for i in range(n):
        y[i] = compute(a[i], b[i], parameter)


cdef void run_all(number_function compute, const double* a, const double* b, double parameter, double* y, intptr_t n) noexcept nogil:
    """Share the numbers among threads, in more parts than there are: some take many steps."""
    cdef intptr_t chunk = CHUNK, c
    if threads_for(n, COST_HEAVY) <= 1:
        compute_range(compute, a, b, parameter, y, n)
        return
    for c in prange((n + chunk - 1) // chunk, schedule="dynamic", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        compute_range(compute, a + c * chunk, b + c * chunk, parameter, y + c * chunk, min(chunk, n - c * chunk))


def stepped(str name not None, a not None, b not None, double parameter=0):
    """Return the function of that name of two arrays of one shape, as float64."""
    cdef numpy.ndarray first = numpy.asarray(a, numpy.float64, "C"), second = numpy.asarray(b, numpy.float64, "C")
    cdef numpy.ndarray result = numpy.empty_like(first)
    cdef number_function compute = function_of(name)
    cdef const double* x = <const double*>numpy.PyArray_DATA(first)
    cdef const double* z = <const double*>numpy.PyArray_DATA(second)
    cdef double* y = <double*>numpy.PyArray_DATA(result)
    cdef intptr_t n = numpy.PyArray_SIZE(result)
    if numpy.PyArray_SIZE(second) != n:
        raise ValueError(f"{name}: {n} numbers beside {numpy.PyArray_SIZE(second)}")
    with nogil:
        run_all(compute, x, z, parameter, y, n)
    return result
