# cython: cdivision=True, initializedcheck=False
"""Steps over slots (see steps.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.string cimport memcmp, memcpy, memset

from cygrad._kernels.drivers.elementwise cimport cg_itemsize
from cygrad._kernels.drivers.packing cimport count_elements, lies_row_major, repeats_number


cdef void begin_program(Program* program, int ndim, const intptr_t* shape) noexcept nogil:
    program.slot_count = program.step_count = program.geometry_count = program.cost = 0
    program.ndim, program.total, program.most_steps = ndim, count_elements(ndim, shape), MAX_BLOCKS
    memcpy(program.shape, shape, ndim * sizeof(intptr_t))
    memset(program.is_reduced, False, ndim)


cdef bint has_room(const Program* program, int steps) noexcept nogil:
    return program.step_count + steps <= program.most_steps and program.slot_count + steps <= MAX_SLOTS


cdef Extent extent_of(const Program* program) noexcept nogil:
    cdef Extent extent
    extent.slots, extent.steps, extent.geometries = program.slot_count, program.step_count, program.geometry_count
    return extent


cdef void cut_back(Program* program, const Extent* extent) noexcept nogil:
    program.slot_count, program.step_count, program.geometry_count = extent.slots, extent.steps, extent.geometries


cdef void copy_program(Program* target, const Program* source) noexcept nogil:
    memcpy(target, source, <char*>&source.shape - <char*>source)
    memcpy(target.shape, source.shape, source.ndim * sizeof(intptr_t))
    memcpy(target.is_reduced, source.is_reduced, source.ndim)
    memcpy(target.geometries, source.geometries, source.geometry_count * sizeof(Geometry))
    memcpy(target.slots, source.slots, source.slot_count * sizeof(Slot))
    memcpy(target.steps, source.steps, source.step_count * sizeof(Step))


cdef void add_map(Program* program, const cg_kernel* kernel, int dtype, int masks, const void* params, int inputs, const int* slots,
                  int output) noexcept nogil:
    cdef Step* step = &program.steps[program.step_count]
    step.kernel, step.reduction, step.shifted, step.params = kernel, NULL, NULL, params
    step.dtype, step.masks, step.joined, step.inputs, step.slots[inputs] = dtype, masks, False, inputs, output
    memcpy(step.slots, slots, inputs * sizeof(int))
    program.step_count += 1


cdef void add_reduction(Program* program, const cg_reduction* reduction, int dtype, int slot, int output) noexcept nogil:
    add_map(program, NULL, dtype, 0, NULL, 1, &slot, output)
    program.steps[program.step_count - 1].reduction = reduction


cdef int reduction_of(const Program* program) noexcept nogil:
    cdef int k
    for k in range(program.step_count):
        if program.steps[k].reduction is not NULL:
            return k
    return NONE


cdef int last_writer(const Program* program, int slot, int first, int last) noexcept nogil:
    cdef int k
    for k in range(last - 1, first - 1, -1):
        if output_of(&program.steps[k]) == slot:
            return k
    return NONE


# ----- Slots -----
cdef int number_of_geometry(Program* program, const intptr_t* strides) noexcept nogil:
    """Return the number of a geometry; of a new one, the next."""
    cdef Geometry* added = &program.geometries[program.geometry_count]
    cdef int d, k
    for d in range(program.ndim):       # the stride of a single element is not used: 0, so that geometries are the same
        added.strides[d] = 0 if program.shape[d] == 1 else strides[d]
    for k in range(program.geometry_count):
        if not memcmp(&program.geometries[k], added, program.ndim * sizeof(intptr_t)):
            return k
    return program.geometry_count


cdef int add_slot(Program* program, const Slot* added) noexcept nogil:
    """Return the slot that is like another one, which is added if there is none; NONE where there is no room."""
    cdef const Slot* slot
    cdef int k, laid = is_laid(added), numbers = added.number
    for k in range(program.slot_count if added.data is not NULL else 0):
        slot = &program.slots[k]
        if (slot.data == added.data and slot.number == added.number and slot.dtype == added.dtype
                and slot.loop_dtype == added.loop_dtype and slot.geometry == added.geometry):
            return k
        laid += is_laid(slot)
        numbers += slot.number
    if program.slot_count == MAX_SLOTS or laid > MAX_LAID or numbers > MAX_REPEATED:
        return NONE
    program.slots[program.slot_count] = added[0]
    program.geometry_count = max(program.geometry_count, added.geometry + 1)
    program.slot_count += 1
    return program.slot_count - 1


cdef int add_array(Program* program, char* data, int dtype) noexcept nogil:
    cdef Slot slot
    slot.data, slot.dtype, slot.loop_dtype, slot.geometry = data, dtype, dtype, DENSE
    slot.number, slot.reduced, slot.padded = False, False, True
    return add_slot(program, &slot)


cdef int add_operand(Program* program, const Operand* operand) noexcept nogil:
    cdef Slot slot
    cdef int k
    cdef bint is_dense = lies_row_major(operand.strides, cg_itemsize[operand.dtype], program.ndim, program.shape)
    cdef bint is_number = not is_dense and repeats_number(operand.strides, program.ndim, program.shape)
    for k in range(program.slot_count if is_dense or is_number else 0):     # a step may write it: then it is read after that
        if (program.slots[k].data == operand.data and (is_dense or program.slots[k].reduced)
                and last_writer(program, k, 0, program.step_count) != NONE):
            return read_as(program, k, operand.loop_dtype)
    slot.data, slot.dtype, slot.loop_dtype, slot.geometry = operand.data, operand.dtype, operand.loop_dtype, DENSE
    slot.number, slot.reduced, slot.padded = is_number, False, operand.padded
    if not is_number and not is_dense:
        slot.geometry = number_of_geometry(program, operand.strides)
    return add_slot(program, &slot)


cdef bint add_operands(Program* program, int count, const Operand* operands, int* slots) noexcept nogil:
    cdef Extent before = extent_of(program)
    cdef bint fits = True
    cdef int k
    for k in range(count):
        slots[k] = add_operand(program, &operands[k])
        fits = fits and slots[k] != NONE
    if not fits or not has_room(program, 2):
        cut_back(program, &before)
        return False
    return True


cdef void reduce_operands(Program* program) noexcept nogil:
    cdef Slot reduced
    cdef Slot* slot
    cdef intptr_t strides[MAX_DIMS]
    cdef int k
    for k in range(program.slot_count):
        slot = &program.slots[k]
        if slot.geometry == DENSE or slot.dtype != slot.loop_dtype:
            continue
        reduced = slot[0]
        reduced.reduced, reduced.geometry = True, DENSE
        strides_of(program, &reduced, program.shape, strides)
        if number_of_geometry(program, strides) == slot.geometry:
            slot[0] = reduced


cdef int read_as(Program* program, int slot, int dtype) noexcept nogil:
    cdef Slot other = program.slots[slot]
    cdef const Step* step
    cdef int k, writer = last_writer(program, slot, 0, program.step_count)
    if other.loop_dtype == dtype:
        return slot
    if writer == NONE:      # it is converted from memory
        other.loop_dtype = dtype
        return add_slot(program, &other)
    for k in range(writer + 1, program.step_count):
        step = &program.steps[k]
        if step.kernel is NULL and step.reduction is NULL and step.slots[0] == slot:
            if program.slots[step.slots[1]].dtype == dtype and last_writer(program, step.slots[1], k, program.step_count) == k:
                return step.slots[1]
    if not has_room(program, 1):
        return NONE
    k = add_block(program, dtype)
    add_copy(program, slot, k)
    return k


cdef void add_copy(Program* program, int source, int target) noexcept nogil:
    add_map(program, NULL, program.slots[source].loop_dtype, 0, NULL, 1, &source, target)


cdef bint converts(const Program* program, const Step* step) noexcept nogil:
    cdef const Slot* output = &program.slots[output_of(step)]
    cdef int j
    for j in range(step.inputs):
        if program.slots[step.slots[j]].loop_dtype != dtype_of(j, step.masks, step.dtype):
            return True
    return output.dtype != output.loop_dtype


cdef void strides_of(const Program* program, const Slot* slot, const intptr_t* shape, intptr_t* strides) noexcept nogil:
    cdef intptr_t stride = cg_itemsize[slot.dtype]
    cdef int d
    for d in range(program.ndim - 1, -1, -1):
        if slot.geometry != DENSE:
            strides[d] = program.geometries[slot.geometry].strides[d]
        elif slot.number or slot.reduced and program.is_reduced[d]:
            strides[d] = 0
        else:
            strides[d] = stride
            stride *= shape[d]


cdef void describe_slot(const Program* program, const Slot* slot, Operand* operand) noexcept nogil:
    operand.data, operand.dtype, operand.loop_dtype, operand.padded = slot.data, slot.dtype, slot.loop_dtype, slot.padded
    strides_of(program, slot, program.shape, operand.strides)
