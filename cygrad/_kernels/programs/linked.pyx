"""Linked programs (see linked.pxd for the contract)."""
from libc.string cimport memcpy

from cygrad._kernels.programs.steps cimport MAX_SLOTS


cdef int run_loop(void* arguments, char** data) noexcept nogil:
    cdef Loop* each = <Loop*>arguments
    cdef char* pointers[3]
    pointers[0], pointers[1], pointers[2] = data[0], data[1], data[2]
    put_number(each, pointers)
    each.loop(pointers, each.strides, each.n, each.params)
    return 0


cdef Py_ssize_t run_linked(const LinkedStep* steps, Py_ssize_t first, Py_ssize_t last, const Address* addresses, char** bases,
                           void* scratch) noexcept nogil:
    cdef const LinkedStep* step
    cdef const Kernel* kernel
    cdef const Address* place
    cdef Loop* each
    cdef void* arguments
    cdef char* data[MAX_SLOTS]      # of a group as well as of a launch
    cdef Py_ssize_t k
    cdef int j, outcome
    for k in range(first, last):
        step = &steps[k]
        if step.kind == LOOP:
            each = <Loop*>step.content
            data[0], data[1] = bases[step.bases[0]] + step.offsets[0], bases[step.bases[1]] + step.offsets[1]
            data[2] = bases[step.bases[2]] + step.offsets[2]
            put_number(each, data)
            each.loop(data, each.strides, each.n, each.params)
            continue
        if step.kind == MEMBER:
            continue
        kernel = <const Kernel*>step.content
        if step.kind == PYTHON:
            return k
        place = &addresses[kernel.first]
        for j in range(kernel.count):
            data[j] = bases[place[j].base] + place[j].offset
        arguments = kernel.arguments
        if kernel.argument_bytes:
            memcpy(scratch, arguments, kernel.argument_bytes)
            arguments = scratch
        outcome = kernel.run(arguments, data)
        if outcome < 0 or step.kind == OUTCOME and outcome != kernel.outcome:
            return k
    return last
