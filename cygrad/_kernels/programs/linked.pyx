"""Linked programs (see linked.pxd for the contract)."""
from libc.stdint cimport INTPTR_MAX, int64_t, intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport CG_DIFFERENCE, CG_FLOAT64, CG_NEGATIVE, CG_PRODUCT, CG_SUM
from cygrad._kernels.programs.steps cimport MAX_SLOTS

cdef extern from "system/clock.h" nogil:
    int64_t cg_nanoseconds() noexcept


cdef int kind_of_loop(const Loop* each) noexcept nogil:
    cdef int form = each.kernel.form, kind
    if each.n > FEW_DOUBLES or each.dtype != CG_FLOAT64 or each.out_dtype != CG_FLOAT64:
        return LOOP
    if each.number_at < 0:
        kind = (ADD if form == CG_SUM else SUBTRACT if form == CG_DIFFERENCE else MULTIPLY if form == CG_PRODUCT else
                NEGATE if form == CG_NEGATIVE else LOOP)
    else:
        kind = (ADD_NUMBER if form == CG_SUM else MULTIPLY_BY_NUMBER if form == CG_PRODUCT else LOOP if form != CG_DIFFERENCE else
                SUBTRACT_NUMBER if each.number_at == 1 else SUBTRACT_FROM_NUMBER)
    return kind if each.n == 1 or kind == LOOP else OF_FEW + kind


cdef int run_loop(void* arguments, char** data) noexcept nogil:
    cdef Loop* each = <Loop*>arguments
    cdef char* pointers[MAX_PLACES]
    cdef int k
    for k in range(each.inputs + 1 - (each.number_at >= 0)):
        pointers[k] = data[k]
    put_number(each, pointers)
    each.loop(pointers, each.strides, each.n, each.params)
    return 0


cdef inline int run_apart(const LinkedStep* step, const Address* addresses, char** bases, char** data, void* scratch) noexcept nogil:
    cdef const Kernel* kernel = <const Kernel*>step.content
    cdef const Address* place
    cdef int j
    for j in range(step.count):
        data[j] = bases[step.bases[j]] + step.offsets[j]
    for j in range(0 if step.count else step.offsets[1]):
        place = &addresses[step.offsets[0] + j]
        data[j] = bases[place.base] + place.offset
    if not kernel.argument_bytes:
        return kernel.run(kernel.arguments, data)
    memcpy(scratch, kernel.arguments, kernel.argument_bytes)
    return kernel.run(scratch, data)


cdef Py_ssize_t run_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                           void* scratch, intptr_t work) noexcept nogil:
    cdef const LinkedStep* step
    cdef const Kernel* kernel
    cdef Loop* each
    cdef char* data[MAX_SLOTS]      # of a group as well as of a launch
    cdef Py_ssize_t k = first, limit = first + work     # of small steps alone
    cdef int j, kind, outcome
    while k < last and k < limit:
        step = &steps[k]
        k += 1
        kind = step.kind
        if kind < ELEMENT_KINDS:
            cg_run_element_step(step, bases)
            continue
        if kind == MEMBER:
            continue
        if kind == PYTHON:
            return -1
        for j in range(MAX_PLACES):     # some, where a step has fewer
            data[j] = bases[step.bases[j]] + step.offsets[j]
        if kind >= KERNEL:
            kernel = <const Kernel*>step.content
            outcome = kernel.run(kernel.arguments, data) if kind == KERNEL else run_apart(step, addresses, bases, data, scratch)
            if outcome < 0 or kernel.outcome != NO_OUTCOME and outcome != kernel.outcome:
                return -1
            limit -= ELEMENTS_PER_STEP
            continue
        each = <Loop*>step.content
        put_number(each, data)
        cg_call_loop(step.count, each.loop, data, each.strides, each.n, each.params)
        limit -= each.n
    return k


cdef Py_ssize_t run_linked_between_signals(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses,
                                           char** bases, void* scratch) noexcept nogil:
    cdef int64_t start = cg_nanoseconds() if last - first > STEPS_BETWEEN_SIGNALS else 0
    cdef Py_ssize_t k = first
    while True:
        k = run_linked(steps, k, last, addresses, bases, scratch, STEPS_BETWEEN_SIGNALS * ELEMENTS_PER_STEP)
        if k < 0 or k >= last or cg_nanoseconds() - start >= NANOSECONDS_BETWEEN_SIGNALS:
            return k


cdef bint run_all_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                         void* scratch) noexcept nogil:
    return run_linked(steps, first, last, addresses, bases, scratch, <intptr_t>(INTPTR_MAX // 2)) == last


cdef int run_element_sum(void* arguments, char** data) noexcept nogil:
    cdef LinkedStep step
    cdef int k
    step.content, step.kind = arguments, kind_of_sum(<const ElementSum*>arguments)
    for k in range(MAX_PLACES):
        step.bases[k], step.offsets[k] = k, 0
    return 0 if run_all_linked(&step, 0, 1, NULL, data, NULL) else -1
