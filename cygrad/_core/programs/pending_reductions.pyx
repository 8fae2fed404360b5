# cython: cdivision=True
"""Reductions of pending results (see pending_reductions.pxd for the contract)."""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport SAVED, empty, new_address
from cygrad._core.memory.storage cimport Storage
from cygrad._core.programs.pending cimport Pending, Reduction, run
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, cg_is_floating_point, cg_kernel, cg_loops_of, elementwise_kernel
from cygrad._kernels.programs.cuts cimport Cut, begin_cut
from cygrad._kernels.programs.steps cimport MAX_SLOTS, MAX_STEPS, NONE, Program, Slot, Step, add_array, begin_map, last_writer, strides_of
from cygrad._kernels.programs.tiles cimport choose_cut

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept

cdef const cg_kernel* MUL = elementwise_kernel("mul")
cdef const cg_kernel* MUL_DA = elementwise_kernel("mul_da")
cdef const cg_kernel* MUL_DB = elementwise_kernel("mul_db")


cdef inline bint is_needed_besides(TensorImpl x, Py_ssize_t references) noexcept:
    """Return True if a node saved a tensor, or there are more references to its memory."""
    return x.flags & SAVED or Py_REFCNT(<PyObject*>x.storage) > references


cdef bint pending_product(TensorImpl x, Operand* factors, list storages) except -1:
    """Describe the factors of a pending product of real arrays that nothing else reads; False if x is none."""
    cdef Storage storage = x.storage
    cdef Pending pending
    cdef const Program* program
    cdef const Step* step
    cdef const Slot* slot
    cdef int writer, k
    if storage.program is NULL or not cg_is_floating_point[x.dtype_nr] or cg_loops_of[x.dtype_nr] != x.dtype_nr:
        return False
    pending = <Pending>storage.program
    if is_needed_besides(x, 2) or pending.running or not pending.is_whole(x):
        return False
    program = &pending.program
    writer = last_writer(program, storage.slot - 1, 0, program.step_count)
    step = &program.steps[writer]
    if step.masks or step.kernel is not MUL and step.kernel is not MUL_DA and step.kernel is not MUL_DB:
        return False
    for k in range(2):
        slot = &program.slots[step.slots[k]]
        if (slot.data is NULL or slot.number or slot.dtype != x.dtype_nr or last_writer(program, step.slots[k], 0, writer) != NONE
                or pending.owners[step.slots[k]] is NULL):
            return False
        factors[k].data, factors[k].dtype, factors[k].loop_dtype, factors[k].padded = slot.data, slot.dtype, slot.dtype, slot.padded
        strides_of(program, slot, program.shape, factors[k].strides)
        storages.append(<Storage>pending.owners[step.slots[k]])
    return True


cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result) except -1:
    """All other results are computed on the way, x itself only if it is read later, and temporaries die before."""
    cdef Storage storage = x.storage
    cdef Pending pending
    cdef Program program
    cdef Reduction job
    cdef bint is_needed = is_needed_besides(x, 2)
    if storage.program is NULL:
        return False
    pending = <Pending>storage.program
    job.reduction, job.output, job.cut, job.slot = reduction, new_address(result), NULL, storage.slot - 1
    if (cg_loops_of[x.dtype_nr] != x.dtype_nr or pending.running or job.slot == pending.reduced_slot or pending.program.total != x.count
            or pending.program.slots[job.slot].data != x.unsettled or pending.program.slots[job.slot].dtype != x.dtype_nr):
        return False
    pending.needed_steps(&program)
    if result.count > 1 or x.count == 1:
        return reduce_dims(pending, &program, &job, x, is_reduced, result, is_needed)
    if is_needed:
        return False
    if run(pending, &program, &job, job.slot, True):
        raise MemoryError("no memory for partial results")
    return True


cdef bint reduce_dims(Pending pending, Program* program, Reduction* job, TensorImpl x, const char* is_reduced, TensorImpl result,
                      bint is_needed) except -1:
    """Reduce some dims of a pending result by tiles, in which it is made; it is written to memory if it is needed there."""
    cdef TensorImpl memory
    cdef Cut cut
    cdef Step* step
    cdef intptr_t size
    cdef int d, output
    if not pending.is_whole(x) or program.step_count == MAX_STEPS or program.slot_count == MAX_SLOTS:
        return False
    for d in range(x.ndim):
        if d and is_reduced[d - 1] and not is_reduced[d] and x.sizes[d] > 1:
            return False        # tiles of dims in the middle are read in pieces that are too short
        program.is_reduced[d] = is_reduced[d]
    if not is_needed:
        program.slots[job.slot].data = NULL
    output = add_array(program, job.output, result.dtype_nr, False)
    program.slots[output].reduced = True
    step = &program.steps[program.step_count]
    begin_map(step, NULL, x.dtype_nr, NULL)
    step.reduction, step.inputs, step.slots[0], step.slots[1] = job.reduction, 1, job.slot, output
    program.step_count += 1
    begin_cut(&cut, program, output)
    if not choose_cut(&cut) or cut.passes and (is_needed or pending.count > 1):
        return False
    size = cut.threads * program.slot_count * cut.slot_bytes
    memory = empty(CG_BOOL, 1, &size)
    if pending.running or x.storage.program is not <PyObject*>pending:       # it ran to give memory back
        return False
    job.cut, job.memory = &cut, new_address(memory)
    if run(pending, program, job, NONE if is_needed else job.slot, True):
        raise MemoryError("no memory for partial results")
    return True
