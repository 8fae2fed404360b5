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
    ADD_MULTIPLE
    SUBTRACT_MULTIPLE
    SUM             # of multiples
    MOVE            # of 8 bytes
    KERNEL
    OUTCOME         # a kernel whose result must be the one that was noted
    PYTHON          # no kernel: the caller runs it
    MEMBER          # of a group, which the first of them runs

cdef enum:
    STEPS_BETWEEN_SIGNALS = 64
    MAX_PLACES = MAX_TERMS + 1      # of a loop

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

cdef struct Address:
    int base
    intptr_t offset         # bytes

cdef struct Kernel:
    kernel_function run
    void* arguments
    size_t argument_bytes   # 0: the kernel does not change them
    int first, count        # its addresses
    int outcome

cdef struct LinkedStep:     # 40 bytes, so that long programs stay in the caches
    void* content           # a Loop, which many steps may share, a Kernel, or nothing
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
cdef int run_loop(void* arguments, char** data) noexcept nogil
# Run steps from `first` on, and return the number of the first one that was not run, or failed: `last` if there is none. `scratch` has room
# for the arguments of a step.
cdef Py_ssize_t run_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                           void* scratch) noexcept nogil
