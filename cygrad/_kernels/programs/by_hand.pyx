# cython: cdivision=True
"""Programs put together by hand, of numbers that are addresses and dtypes: for tests of the executors."""
from libc.stdint cimport intptr_t, uintptr_t
from libc.stdlib cimport free, malloc

from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, MAX_OPERANDS, Operand, cg_kernel, elementwise_kernel
from cygrad._kernels.drivers.reduction cimport reduction
from cygrad._kernels.programs.running cimport Plan, plan_blocks, plan_program, run_program
from cygrad._kernels.programs.steps cimport (MAX_STEPS, NONE, Extent, Program, add_array, add_block, add_copy, add_map, add_operand,
                                             add_reduction, begin_program, cut_back, dtype_of, extent_of, has_room, read_as)


cdef inline char* address_of(object number) except? NULL:
    return <char*><uintptr_t>number


cdef int add_input(Program* program, tuple arrays, const int* results, int place, int dtype) except -2:
    """Return the slot of an array, or (-1 and below) of the result of a step, in the dtype of a loop; NONE where there is no room."""
    cdef Operand operand
    cdef int d
    if place < 0:
        return read_as(program, results[-1 - place], dtype)
    address, operand.dtype, strides, operand.padded = arrays[place]
    operand.data, operand.loop_dtype = address_of(address), dtype
    for d in range(program.ndim):
        operand.strides[d] = strides[d]
    return add_operand(program, &operand)


def run_steps(tuple shape not None, tuple arrays not None, tuple steps not None, int cost=0, tuple reduced=None):
    """Run steps as one program, as many as it has room for, and return how many. A reduction needs room for all, else nothing runs.

    An array is (address, dtype, strides in bytes over the shape, whether memory after it may be read). A step is (name or None for a copy,
    dtype of its loop, masks, address of the parameters or 0, inputs, dtype of the loop's result, dtype of the result, address of the
    result or 0). Inputs are places in `arrays`, or -1 - k for the result of step k. `reduced`: (reduction, address of its result) of the
    last step's result.
    """
    cdef Program program
    cdef Plan plan
    cdef char* memory
    cdef Extent before
    cdef intptr_t sizes[MAX_DIMS]
    cdef int results[MAX_STEPS]
    cdef int slots[MAX_OPERANDS]
    cdef const cg_kernel* kernel
    cdef int d, j = 0, k = 0, block, failed, dtype, masks, out_dtype = 0, loop_out_dtype
    for d in range(<int>len(shape)):
        sizes[d] = shape[d]
    begin_program(&program, <int>len(shape), sizes)
    program.cost = cost
    for name, dtype, masks, params, inputs, loop_out_dtype, out_dtype, target in steps:
        before = extent_of(&program)
        for j, place in enumerate(inputs):
            slots[j] = add_input(&program, arrays, results, place, dtype_of(j, masks, dtype))
            if slots[j] == NONE:
                break
        if len(inputs) and slots[j] == NONE or not has_room(&program, 2):
            cut_back(&program, &before)
            break
        if name is not None:
            kernel = elementwise_kernel(name)
            if kernel.loops[dtype] is NULL or kernel.inputs != len(inputs):
                raise ValueError(f"{name} has no loop of {len(inputs)} inputs of dtype {dtype}")
            block = add_block(&program, loop_out_dtype)
            add_map(&program, kernel, dtype, masks, <const void*>address_of(params), <int>len(inputs), slots, block)
            slots[0] = block
        if name is None or loop_out_dtype != out_dtype:
            results[k] = add_block(&program, out_dtype)
            add_copy(&program, slots[0], results[k])
        else:
            results[k] = slots[0]
        if target:      # a slot of its own, where the same memory is read before
            program.slots[results[k]].data = address_of(target)
        k += 1
    if reduced is not None:
        name, target = reduced
        if k < len(steps):
            return k
        block = add_array(&program, address_of(target), reduction(name).out_dtype[out_dtype])
        program.slots[results[k - 1]].data, program.slots[block].reduced = NULL, True
        add_reduction(&program, reduction(name), out_dtype, results[k - 1], block)
        for d in range(program.ndim):
            program.is_reduced[d] = True
    if reduced is not None:
        plan_blocks(&plan, &program)
    elif not plan_program(&plan, &program):
        raise MemoryError("the program is too large for a tile")
    memory = <char*>malloc(<size_t>plan.memory_bytes + 1)
    if memory is NULL:
        raise MemoryError()
    with nogil:
        failed = run_program(&plan, memory)
        free(memory)
    if failed:
        raise MemoryError("no memory for partial results")
    return k
