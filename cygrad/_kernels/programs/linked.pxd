"""Linked programs: steps whose operands are places relative to bases, so that threads share one program, each with bases of its own.

There are no tensors here, and no GIL is held.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport cg_kernel, cg_loop, cg_number
from cygrad._kernels.drivers.sums cimport MAX_TERMS, SumNumbers
from cygrad._kernels.programs.kernel cimport kernel_function

cdef enum LinkedKind:
    LOOP            # one loop over at most two dense operands
    SUM_LOOP        # of more
    # In place of the loop of one double: a call of it takes longer than the operation.
    ADD
    SUBTRACT
    MULTIPLY
    NEGATE
    ADD_NUMBER
    SUBTRACT_NUMBER
    SUBTRACT_FROM_NUMBER
    MULTIPLY_BY_NUMBER
    MOVE            # of 8 bytes
    KERNEL
    OUTCOME         # a kernel whose result must be the one that was noted
    PYTHON          # no kernel: the caller runs it
    MEMBER          # of a group, which the first of them runs
    SUM = 16        # of one double: this and greater numbers are its form
    SUM_OF_MORE = 80        # so much greater: of a few doubles, one by one
    CARRIED_SUM = 160       # so much greater: of one or more, not plain

cdef enum:
    STEPS_BETWEEN_SIGNALS = 64
    ELEMENTS_PER_STEP = 1 << 11     # of loops that count as one of these

# One loop over dense operands of one shape, of which one may be a number.
cdef struct Loop:
    cg_loop loop
    intptr_t n
    intptr_t strides[MAX_TERMS]
    int number_at           # which operand is a number; -1: none
    int dtype, out_dtype, inputs
    bint has_params
    const cg_kernel* kernel     # of the loop
    cg_number number
    SumNumbers params           # of a row, or the numbers of a sum

cdef extern from "programs/element_sums.h" nogil:
    enum:
        MAX_PLACES "CG_MAX_PLACES"      # of a loop
    # Compute a sum of a form, of operands at places: numbers of bases, and offsets. `plain`: the numbers are the start and the factors, of
    # products 1.
    void cg_run_sum(int form, const double* numbers, const unsigned short* places, const int* offsets, char** bases, int n, bint plain)

# A sum of multiples of a few doubles, one by one.
cdef struct ElementSum:
    double numbers[2 * MAX_TERMS - 1]
    int n
    unsigned char form      # 16 times the terms, and a bit for each term that is a product of two operands
    bint plain              # nothing is carried by a factor, nor is a product multiplied by one

cdef struct Address:
    int base
    intptr_t offset         # bytes

cdef struct Kernel:
    kernel_function run
    void* arguments
    size_t argument_bytes   # 0: the kernel does not change them
    int first, count        # its addresses
    int outcome

cdef struct LinkedStep:     # 48 bytes, so that long programs stay in the caches
    void* content           # a Loop or a sum, which many steps may share, a Kernel, or nothing
    int offsets[MAX_PLACES]     # of the operands of a loop
    unsigned short bases[MAX_PLACES]
    unsigned char kind, count

cdef inline void put_number(Loop* each, char** pointers) noexcept nogil:
    """Put a number in its place among the operands."""
    if each.number_at >= 0:
        pointers[2] = pointers[1]
        if each.number_at == 0:
            pointers[1] = pointers[0]
        pointers[each.number_at] = <char*>&each.number

# How to run a loop: an operation of one double, or LOOP.
cdef int kind_of_loop(const Loop* each) noexcept nogil
cdef inline int kind_of_sum(const ElementSum* sum) noexcept nogil:
    return sum.form + (CARRIED_SUM if not sum.plain else SUM_OF_MORE if sum.n > 1 else 0)

cdef int run_loop(void* arguments, char** data) noexcept nogil
cdef int run_element_sum(void* arguments, char** data) noexcept nogil
# Run steps from `first` on, and return the number of the first one that was not run, or failed: `last` if there is none. Each takes 1 of
# `work`, a loop its elements, a kernel ELEMENTS_PER_STEP besides; where it is used up, the steps so far were run. `scratch` has room for
# the arguments of a step.
cdef Py_ssize_t run_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                           void* scratch, intptr_t* work) noexcept nogil
# Run steps, however long they take; False: one has failed.
cdef bint run_all_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                         void* scratch) noexcept nogil
