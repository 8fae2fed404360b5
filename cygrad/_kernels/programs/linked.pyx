"""Linked programs (see linked.pxd for the contract)."""
from libc.stdint cimport INTPTR_MAX, int64_t, intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport CG_DIFFERENCE, CG_FLOAT64, CG_NEGATIVE, CG_PRODUCT, CG_SUM
from cygrad._kernels.drivers.sums cimport loop_of_sum
from cygrad._kernels.programs.steps cimport MAX_SLOTS


cdef int kind_of_loop(const Loop* each) noexcept nogil:
    cdef int form = each.kernel.form
    if each.n != 1 or each.dtype != CG_FLOAT64 or each.out_dtype != CG_FLOAT64:
        return SUM_LOOP if each.kernel == loop_of_sum(each.inputs) else LOOP
    if each.number_at < 0:
        return (ADD if form == CG_SUM else SUBTRACT if form == CG_DIFFERENCE else MULTIPLY if form == CG_PRODUCT else
                NEGATE if form == CG_NEGATIVE else LOOP)
    return (ADD_NUMBER if form == CG_SUM else MULTIPLY_BY_NUMBER if form == CG_PRODUCT else LOOP if form != CG_DIFFERENCE else
            SUBTRACT_NUMBER if each.number_at == 1 else SUBTRACT_FROM_NUMBER)


cdef inline double* place_of(const LinkedStep* step, char** bases, int k) noexcept nogil:
    return <double*>(bases[step.bases[k]] + step.offsets[k])


cdef int run_loop(void* arguments, char** data) noexcept nogil:
    cdef Loop* each = <Loop*>arguments
    cdef char* pointers[MAX_PLACES]
    cdef int k
    for k in range(each.inputs + 1 - (each.number_at >= 0)):
        pointers[k] = data[k]
    put_number(each, pointers)
    each.loop(pointers, each.strides, each.n, each.params)
    return 0


cdef Py_ssize_t run_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                           void* scratch, intptr_t* work) noexcept nogil:
    cdef const LinkedStep* step
    cdef const Kernel* kernel
    cdef const Address* place
    cdef Loop* each
    cdef const ElementSum* sum
    cdef void* arguments
    cdef char* data[MAX_SLOTS]      # of a group as well as of a launch
    cdef intptr_t left = work[0]
    cdef Py_ssize_t k
    cdef int j, kind, outcome
    for k in range(first, last):
        step = &steps[k]
        each, sum, kind = <Loop*>step.content, <const ElementSum*>step.content, step.kind
        if kind == ADD:
            place_of(step, bases, 2)[0] = place_of(step, bases, 0)[0] + place_of(step, bases, 1)[0]
        elif kind == SUBTRACT:
            place_of(step, bases, 2)[0] = place_of(step, bases, 0)[0] - place_of(step, bases, 1)[0]
        elif kind == MULTIPLY:
            place_of(step, bases, 2)[0] = place_of(step, bases, 0)[0] * place_of(step, bases, 1)[0]
        elif kind == NEGATE:
            place_of(step, bases, 1)[0] = -place_of(step, bases, 0)[0]
        elif kind == ADD_NUMBER:
            place_of(step, bases, 1)[0] = place_of(step, bases, 0)[0] + (<const double*>&each.number)[0]
        elif kind == SUBTRACT_NUMBER:
            place_of(step, bases, 1)[0] = place_of(step, bases, 0)[0] - (<const double*>&each.number)[0]
        elif kind == SUBTRACT_FROM_NUMBER:
            place_of(step, bases, 1)[0] = (<const double*>&each.number)[0] - place_of(step, bases, 0)[0]
        elif kind == MULTIPLY_BY_NUMBER:
            place_of(step, bases, 1)[0] = place_of(step, bases, 0)[0] * (<const double*>&each.number)[0]
        elif kind == MOVE:
            (<int64_t*>place_of(step, bases, 1))[0] = (<const int64_t*>place_of(step, bases, 0))[0]
        elif kind == MEMBER:
            pass
        elif kind == PYTHON:
            return k
        elif kind == LOOP:
            for j in range(3):      # some, where there are fewer
                data[j] = <char*>place_of(step, bases, j)
            put_number(each, data)
            each.loop(data, each.strides, each.n, each.params)
            left -= each.n
        elif kind == SUM_LOOP:
            for j in range(step.count):
                data[j] = <char*>place_of(step, bases, j)
            each.loop(data, each.strides, each.n, each.params)
            left -= each.n
        elif kind >= CARRIED_SUM:
            cg_run_sum(kind - CARRIED_SUM, sum.numbers, step.bases, step.offsets, bases, sum.n, False)
        elif kind >= SUM_OF_MORE:
            cg_run_sum(kind - SUM_OF_MORE, sum.numbers, step.bases, step.offsets, bases, sum.n, True)
        elif kind >= SUM:
            cg_run_sum(kind, sum.numbers, step.bases, step.offsets, bases, 1, True)
        else:
            kernel = <const Kernel*>step.content
            place = &addresses[kernel.first]
            for j in range(kernel.count):
                data[j] = bases[place[j].base] + place[j].offset
            arguments = kernel.arguments
            if kernel.argument_bytes:
                memcpy(scratch, arguments, kernel.argument_bytes)
                arguments = scratch
            outcome = kernel.run(arguments, data)
            if outcome < 0 or kind == OUTCOME and outcome != kernel.outcome:
                return k
            left -= ELEMENTS_PER_STEP
        left -= 1
        if left <= 0:
            work[0] = left
            return k + 1
    return last


cdef bint run_all_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                         void* scratch) noexcept nogil:
    cdef intptr_t work = <intptr_t>INTPTR_MAX
    return run_linked(steps, first, last, addresses, bases, scratch, &work) == last


cdef int run_element_sum(void* arguments, char** data) noexcept nogil:
    cdef LinkedStep step
    cdef int k
    step.content, step.kind = arguments, kind_of_sum(<const ElementSum*>arguments)
    for k in range(MAX_PLACES):
        step.bases[k], step.offsets[k] = k, 0
    return 0 if run_all_linked(&step, 0, 1, NULL, data, NULL) else -1
