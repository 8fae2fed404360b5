# cython: cdivision=True
"""Reductions of pending results (see pending_reductions.pxd for the contract)."""
from cpython.object cimport PyObject

from cygrad._core.graph.tensor cimport SAVED, empty, new_address
from cygrad._core.memory.storage cimport Storage
from cygrad._core.programs.pending cimport Pending, run
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, cg_is_floating_point, cg_loops_of
from cygrad._kernels.programs.rewriting cimport is_product
from cygrad._kernels.programs.running cimport Plan, plan_program
from cygrad._kernels.programs.steps cimport (NONE, Program, Slot, Step, add_array, add_reduction, describe_slot, has_room,
                                             last_writer, reduce_operands)

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept


cdef inline bint is_needed_besides(TensorImpl x, Storage storage) noexcept:
    """Return True if a node saved a tensor, or there are more references to its memory than its own and the caller's."""
    return x.flags & SAVED or Py_REFCNT(<PyObject*>storage) > 2


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
    if is_needed_besides(x, storage) or pending.running or not pending.is_whole(x):
        return False
    program = &pending.program
    writer = last_writer(program, pending.slot_of(x), 0, program.step_count)
    step = &program.steps[writer]
    if not is_product(step):
        return False
    for k in range(2):
        slot = &program.slots[step.slots[k]]
        if (slot.data is NULL or slot.number or slot.dtype != x.dtype_nr or last_writer(program, step.slots[k], 0, writer) != NONE
                or pending.owners[step.slots[k]] is NULL):
            return False
        describe_slot(program, slot, &factors[k])
        storages.append(<Storage>pending.owners[step.slots[k]])
    return True


cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result) except -1:
    """All other results are computed on the way, x itself only if it is read later, and temporaries die before."""
    cdef Storage storage = x.storage
    cdef Pending pending
    cdef Program program
    cdef Plan plan
    cdef TensorImpl memory
    cdef int d, output, slot
    cdef bint is_needed = is_needed_besides(x, storage), is_single = result.count == 1 and x.count > 1
    if storage.program is NULL:
        return False
    pending = <Pending>storage.program
    slot = pending.slot_of(x)
    if (cg_loops_of[x.dtype_nr] != x.dtype_nr or pending.running or slot in (NONE, pending.reduced_slot) or pending.program.total != x.count
            or not (pending.is_whole(x) if not is_single else not is_needed)):
        return False
    pending.needed_steps(&program)
    if not has_room(&program, 1):
        return False
    for d in range(program.ndim):
        program.is_reduced[d] = is_single or is_reduced[d]
        if d and program.is_reduced[d - 1] and not program.is_reduced[d] and program.shape[d] > 1:
            return False        # tiles of dims in the middle are read in pieces that are too short
    reduce_operands(&program)
    if not is_needed:
        program.slots[slot].data = NULL
    output = add_array(&program, new_address(result), result.dtype_nr)
    program.slots[output].reduced = True
    add_reduction(&program, reduction, x.dtype_nr, slot, output)
    if not plan_program(&plan, &program):
        return False
    memory = empty(CG_BOOL, 1, &plan.memory_bytes)
    if pending.running or storage.program is not <PyObject*>pending:       # it ran to give memory back
        return False
    if run(pending, &plan, new_address(memory), NONE if is_needed else slot, True):
        raise MemoryError("no memory for partial results")
    return True
