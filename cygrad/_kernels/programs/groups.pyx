# cython: cdivision=True, initializedcheck=False
"""Groups of maps and copies (see groups.pxd for the contract)."""
from libc.string cimport memcmp, memcpy, memset

from cygrad._kernels.drivers.copying cimport Copy, Move, load_copy
from cygrad._kernels.drivers.elementwise cimport MAX_OPERANDS, cg_itemsize
from cygrad._kernels.drivers.packing cimport count_elements, lies_row_major, repeats_number
from cygrad._kernels.programs.linked cimport Loop, put_number
from cygrad._kernels.programs.running cimport Plan, plan_blocks, run_program
from cygrad._kernels.programs.steps cimport (DENSE, Extent, Slot, add_array, add_block, add_copy, add_map, add_operands, begin_program,
                                             copy_program, cut_back, extent_of, strides_of)


cdef bint enter_space(Program* program, int count, Operand* operands, int ndim, const intptr_t* shape) noexcept:
    """Give operands strides over the space of a program; False where theirs is another one. Row-major operands fit every space of so many
    elements. The last operand, which is the output, must be row-major."""
    cdef intptr_t total = count_elements(ndim, shape)
    cdef Slot slot      # a row-major array, or a number
    cdef bint plain = True, is_dense = False
    cdef int k
    for k in range(count):
        is_dense = lies_row_major(operands[k].strides, cg_itemsize[operands[k].dtype], ndim, shape)
        plain = plain and (is_dense or repeats_number(operands[k].strides, ndim, shape))
    if not total or not is_dense or program.step_count and total != program.total:
        return False
    if not program.step_count:
        begin_program(program, ndim, shape)
    elif not plain and not program.geometry_count:
        program.ndim = ndim
        memcpy(program.shape, shape, ndim * sizeof(intptr_t))
        memset(program.is_reduced, 0, ndim)
    elif not plain and (ndim != program.ndim or memcmp(shape, program.shape, ndim * sizeof(intptr_t))):
        return False
    slot.geometry, slot.reduced = DENSE, False
    for k in range(count if plain else 0):
        slot.dtype, slot.number = operands[k].dtype, repeats_number(operands[k].strides, ndim, shape)
        strides_of(program, &slot, program.shape, operands[k].strides)
    return True


cdef bint fuse_elementwise(Program* program, const cg_kernel* kernel, int dtype, int masks, const void* params, int cost, int inputs,
                           Operand* operands, bint fresh, int ndim, const intptr_t* shape) noexcept:
    cdef const Operand* output = &operands[inputs]
    cdef Extent before = extent_of(program)
    cdef int slots[MAX_OPERANDS]
    cdef int slot, target
    # Vector mathematics writes over the end, and loops write no other dtype.
    cdef bint direct = output.dtype == output.loop_dtype and (kernel is NULL or fresh or not kernel.blocked[dtype])
    if not enter_space(program, inputs + 1, operands, ndim, shape) or not add_operands(program, inputs, operands, slots):
        return False
    target = add_array(program, output.data, output.dtype)
    if not program.slots[target].padded:        # its end is read from a block, which is not written back
        cut_back(program, &before)
        return False
    slot = target if direct else add_block(program, output.loop_dtype)
    add_map(program, kernel, dtype, masks, params, inputs, slots, slot)
    if not direct:
        add_copy(program, slot, target)
    program.cost = max(program.cost, cost)
    return True


cdef bint fuse_loop(Program* program, const void* arguments, char** places) noexcept:
    cdef Loop* each = <Loop*>arguments
    cdef Operand operands[3]
    cdef char* pointers[3]
    cdef int k, dtype
    pointers[0], pointers[1], pointers[2] = places[0], places[1], places[2]
    put_number(each, pointers)
    for k in range(each.inputs + 1):
        dtype = each.dtype if k < each.inputs else each.out_dtype
        operands[k].data, operands[k].dtype, operands[k].loop_dtype, operands[k].padded = pointers[k], dtype, dtype, True
        operands[k].strides[0] = 0 if k == each.number_at else cg_itemsize[dtype]
    return fuse_elementwise(program, each.kernel, each.dtype, 0, each.params if each.has_params else NULL, 0, each.inputs, operands, True,
                            1, &each.n)


cdef bint fuse_copy(Program* program, const void* arguments, char** places) noexcept:
    cdef Copy copy
    cdef Operand operands[2]
    load_copy(&copy, arguments)
    operands[0], operands[1] = copy.source, copy.target
    operands[0].data, operands[1].data = places[0], places[1]
    operands[1].loop_dtype = operands[1].dtype
    return fuse_elementwise(program, NULL, operands[0].dtype, 0, NULL, 0, 1, operands, False, copy.ndim, copy.shape)


cdef bint fuse_move(Program* program, const void* arguments, char** places) noexcept:
    cdef const Move* move = <const Move*>arguments
    cdef Operand operands[2]
    cdef int k
    for k in range(2):
        operands[k].data, operands[k].padded, operands[k].strides[0] = places[k], False, cg_itemsize[move.dtype]
        operands[k].dtype = operands[k].loop_dtype = <int>move.dtype
    return fuse_elementwise(program, NULL, <int>move.dtype, 0, NULL, 0, 1, operands, False, 1, &move.count)


cdef int run_group(void* arguments, char** data) noexcept nogil:
    cdef const Group* group = <const Group*>arguments
    cdef Program program
    cdef Plan plan
    cdef int k
    copy_program(&program, &group.program)
    for k in range(group.count):
        program.slots[group.slots[k]].data = data[k]
    plan_blocks(&plan, &program)        # of maps alone, which take no memory
    return run_program(&plan, NULL)
