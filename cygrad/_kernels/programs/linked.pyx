"""Linked programs (see linked.pxd for the contract)."""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport (CG_DIFFERENCE, CG_FLOAT64, CG_NEGATIVE, CG_PRODUCT, CG_SCALED_DIFFERENCE, CG_SCALED_SUM,
                                                  CG_SUM)
from cygrad._kernels.drivers.sums cimport loop_of_sum
from cygrad._kernels.programs.steps cimport MAX_SLOTS


cdef int kind_of_loop(const Loop* each) noexcept nogil:
    cdef int form = each.kernel.form
    cdef bint is_sum = each.kernel == loop_of_sum(each.inputs)
    if each.n != 1 or each.dtype != CG_FLOAT64 or each.out_dtype != CG_FLOAT64:
        return SUM_LOOP if is_sum else LOOP
    if is_sum:
        return SUM
    if each.number_at < 0:
        return (ADD if form == CG_SUM else SUBTRACT if form == CG_DIFFERENCE else MULTIPLY if form == CG_PRODUCT else
                NEGATE if form == CG_NEGATIVE else ADD_MULTIPLE if form == CG_SCALED_SUM else
                SUBTRACT_MULTIPLE if form == CG_SCALED_DIFFERENCE else LOOP)
    return (ADD_NUMBER if form == CG_SUM else MULTIPLY_BY_NUMBER if form == CG_PRODUCT else LOOP if form != CG_DIFFERENCE else
            SUBTRACT_NUMBER if each.number_at == 1 else SUBTRACT_FROM_NUMBER)


cdef inline double operand_of(const LinkedStep* step, char** bases, int k) noexcept nogil:
    return (<const double*>(bases[step.bases[k]] + step.offsets[k]))[0]


cdef inline double scalar_sum(const LinkedStep* step, char** bases, const double* numbers) noexcept nogil:
    """Return a sum of multiples of doubles (drivers.sums)."""
    cdef double value = numbers[0] + numbers[1] * operand_of(step, bases, 0)
    if step.count > 2:
        value += numbers[2] * operand_of(step, bases, 1)
    if step.count > 3:
        value = numbers[3] * value + numbers[4] * operand_of(step, bases, 2)
    if step.count > 4:
        value = numbers[5] * value + numbers[6] * operand_of(step, bases, 3)
    return value


cdef inline void run_scalar(const LinkedStep* step, char** bases) noexcept nogil:
    """Run an operation of one double."""
    cdef const Loop* each = <const Loop*>step.content
    cdef int kind = step.kind
    cdef const double* a = <const double*>(bases[step.bases[0]] + step.offsets[0])
    cdef double* b = <double*>(bases[step.bases[1]] + step.offsets[1])      # the result where there is one operand in memory
    cdef double* result = <double*>(bases[step.bases[2]] + step.offsets[2])
    if kind == ADD:
        result[0] = a[0] + b[0]
    elif kind == SUBTRACT:
        result[0] = a[0] - b[0]
    elif kind == MULTIPLY:
        result[0] = a[0] * b[0]
    elif kind == NEGATE:
        b[0] = -a[0]
    elif kind == ADD_NUMBER:
        b[0] = a[0] + (<const double*>&each.number)[0]
    elif kind == SUBTRACT_NUMBER:
        b[0] = a[0] - (<const double*>&each.number)[0]
    elif kind == SUBTRACT_FROM_NUMBER:
        b[0] = (<const double*>&each.number)[0] - a[0]
    elif kind == MULTIPLY_BY_NUMBER:
        b[0] = a[0] * (<const double*>&each.number)[0]
    elif kind == ADD_MULTIPLE:
        result[0] = a[0] + (<const double*>each.params)[0] * b[0]
    elif kind == SUBTRACT_MULTIPLE:
        result[0] = a[0] - (<const double*>each.params)[0] * b[0]
    elif kind == SUM:
        result = <double*>(bases[step.bases[step.count - 1]] + step.offsets[step.count - 1])
        result[0] = scalar_sum(step, bases, <const double*>each.params)
    else:
        (<int64_t*>b)[0] = (<const int64_t*>a)[0]


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
        if step.kind == SUM_LOOP:
            each = <Loop*>step.content
            for j in range(step.count):
                data[j] = bases[step.bases[j]] + step.offsets[j]
            each.loop(data, each.strides, each.n, each.params)
            continue
        if step.kind <= MOVE:
            run_scalar(step, bases)
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
