"""Linked programs: steps whose operands are places relative to bases, so that threads share one program, each with bases of its own.

There are no tensors here, and no GIL is held.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport cg_kernel, cg_loop, cg_number
from cygrad._kernels.drivers.sums cimport MAX_TERMS, SumNumbers
from cygrad._kernels.programs.kernel cimport kernel_function

cdef extern from "programs/element_steps.h" nogil:
    enum:
        MAX_PLACES "CG_MAX_PLACES"      # of a loop
        # In place of the loop of a few doubles: a call of it takes longer than the operation.
        ADD "CG_ADD"
        SUBTRACT "CG_SUBTRACT"
        MULTIPLY "CG_MULTIPLY"
        NEGATE "CG_NEGATE"
        ADD_NUMBER "CG_ADD_NUMBER"
        SUBTRACT_NUMBER "CG_SUBTRACT_NUMBER"
        SUBTRACT_FROM_NUMBER "CG_SUBTRACT_FROM_NUMBER"
        MULTIPLY_BY_NUMBER "CG_MULTIPLY_BY_NUMBER"
        MOVE "CG_MOVE"                  # of 8 bytes
        OF_FEW "CG_OF_FEW"
        SUM_OF_MORE "CG_SUM_OF_MORE"
        CARRIED_SUM "CG_CARRIED_SUM"
        ELEMENT_KINDS "CG_ELEMENT_KINDS"
    ctypedef struct LinkedStep "cg_linked_step":
        void* content       # a number, a sum, a Loop or a Kernel, which many steps may share; or nothing
        int offsets[MAX_PLACES]     # of the operands
        unsigned short bases[MAX_PLACES]
        unsigned char kind, count   # of operands, 0 if they are apart; the place that calls a loop; the doubles of an operation
    ctypedef struct ElementSum "cg_element_sum":    # a sum of multiples of a few doubles
        double numbers[2 * MAX_TERMS]
        int n, paired           # the first of them go in pairs
        unsigned char form      # 16 times the terms, and a bit for each term that is a product of two operands
        bint plain              # no sum and no product is multiplied
    # Run a step of a kind below ELEMENT_KINDS.
    void cg_run_element_step(const LinkedStep* step, char** bases)

cdef extern from "programs/call_sites.h" nogil:
    enum:
        CALL_SITES "CG_CALL_SITES"
    void cg_call_loop(int site, cg_loop loop, char** data, const intptr_t* strides, intptr_t n, const void* params)

cdef enum LinkedKind:
    LOOP = ELEMENT_KINDS    # a loop over dense operands, of which one may be a number
    KERNEL
    APART           # a kernel that changes its arguments, or whose operands are addresses apart, offsets[1] of them from offsets[0] on
    PYTHON          # no kernel: the caller runs it
    MEMBER          # of a group, which the first of them runs

cdef enum:
    NO_OUTCOME = -1         # of a kernel that is no decision
    STEPS_BETWEEN_SIGNALS = 64
    FEW_DOUBLES = 8         # an operation or a sum of so many is no call of a loop
    ELEMENTS_PER_STEP = 1 << 11     # of loops that count as one of these
    NANOSECONDS_BETWEEN_SIGNALS = 1000000

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

cdef struct Kernel:         # which many steps may share
    kernel_function run
    void* arguments
    size_t argument_bytes   # 0: the kernel does not change them
    int outcome             # that it must have, or NO_OUTCOME

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
# Run steps from `first` on, and return the number of the first one that was not run: `last`, or an earlier one where `work` is used up.
# Each takes 1 of it, a loop its elements, a kernel ELEMENTS_PER_STEP besides. -1: one has failed. `scratch` has room for the arguments of
# a step.
cdef Py_ssize_t run_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                           void* scratch, intptr_t work) noexcept nogil
# Run steps as run_linked does, for a millisecond, or for STEPS_BETWEEN_SIGNALS that take longer.
cdef Py_ssize_t run_linked_between_signals(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses,
                                           char** bases, void* scratch) noexcept nogil
# Run steps, however long they take; False: one has failed.
cdef bint run_all_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                         void* scratch) noexcept nogil
