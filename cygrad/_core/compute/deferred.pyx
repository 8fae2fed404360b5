# cython: cdivision=True
"""Results that are not computed yet (see deferred.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

cimport cygrad._core.memory.storage as memory
cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.tensor cimport SAVED, TensorImpl, empty_like
from cygrad._core.memory.storage cimport Storage, settle
from cygrad._core.memory.upward cimport forget_function, upward
from cygrad._core.operands.operands cimport Value, fits_loop, same_shape
from cygrad._kernels.drivers.elementwise cimport MAX_PARAMS, cg_loops_of, cg_number, takes_numbers
from cygrad._kernels.programs.planning cimport mark_needed
from cygrad._kernels.programs.running cimport reduce_program, run_program
from cygrad._kernels.programs.steps cimport MAX_SLOTS, MAX_STEPS, Program, Step, add_array, begin_map, begin_program, output_of

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    MAX_ARRAYS = 12     # that are read and written side by side

cdef unsigned long computing = 0    # the thread in Python that used large tensors last
cdef bint second_thread_seen = False           # there was another one
cdef Program program
cdef int arrays                     # slots that are whole arrays
cdef int reduced_slot = -1                # the slot of a result that was reduced, and will be computed if it is needed again
cdef PyObject* owners[MAX_SLOTS]    # the Storage of an array; a reference to one that is read, borrowed from a pending one
cdef cg_number constants[MAX_SLOTS]     # numbers by slot
cdef cg_number parameters[MAX_SLOTS][MAX_PARAMS]    # of the step whose output a slot is


def defer_from(intptr_t count):
    """Set from how many elements on arrays are large, and return the limit before; threads that ran before do not count."""
    global computing, second_thread_seen
    settle()
    before = settings.large
    settings.large, computing, second_thread_seen = count, 0, False
    return before


def pending_results():
    """Return the number of pending results."""
    return memory.pending_count


cdef void note_thread() noexcept:
    global computing, second_thread_seen
    cdef unsigned long thread = PyThread_get_thread_ident()
    second_thread_seen = second_thread_seen or computing not in (0, thread)
    computing = thread


cdef bint may_be_pending(const cg_kernel* kernel, int dtype, int count, const Value* values, TensorImpl first) noexcept:
    """Return True if operands are dense, of one shape (of `first`, if given) and dtype, and no other library can write into them."""
    cdef TensorImpl tensor
    cdef int k, numbers = 0
    if cg_loops_of[dtype] != dtype or settings.mode == settings.EAGER:
        return False
    for k in range(count):
        if values[k].tensor is NULL:
            numbers += 1
            continue
        tensor = <TensorImpl>values[k].tensor
        if first is None:
            first = tensor
        if tensor.count < settings.large or not fits_loop(tensor, dtype) or tensor.storage.exports or not same_shape(tensor, first):
            return False
    if not takes_numbers(kernel, dtype, count, numbers):
        return False
    if first is None:
        return False
    note_thread()
    return not second_thread_seen


cdef TensorImpl defer_elementwise(const cg_kernel* kernel, int dtype, int count, const Value* values, const void* params, int cost):
    global arrays
    cdef TensorImpl result, tensor
    cdef Step* step
    cdef int k, slot, known
    if not may_be_pending(kernel, dtype, count, values, None):
        return None
    tensor = <TensorImpl>(values[0].tensor if values[0].tensor is not NULL else values[1].tensor)
    result = empty_like(tensor, dtype)
    # A garbage collection may have run, and with it anything: operands may be in an array's reach now, or have another shape.
    if not may_be_pending(kernel, dtype, count, values, result):
        return None
    if memory.pending_count and (program.steps[0].dtype != dtype or program.total != tensor.count or program.step_count == MAX_STEPS
                                 or program.slot_count + count + 1 > MAX_SLOTS or arrays + count + 1 > MAX_ARRAYS):
        settle()
    if not memory.pending_count:
        begin_program(&program, 1, &result.count)
    step = &program.steps[program.step_count]
    begin_map(step, kernel, dtype, NULL)
    step.inputs = count
    for k in range(count):
        known = program.slot_count
        if values[k].tensor is NULL:
            constants[known] = values[k].number
            step.slots[k] = add_array(&program, <char*>&constants[known], dtype, True)
            continue
        tensor = <TensorImpl>values[k].tensor
        step.slots[k] = add_array(&program, tensor.unsettled, dtype, False)
        if step.slots[k] == known:
            Py_INCREF(tensor.storage)
            owners[known] = <PyObject*>tensor.storage
            arrays += 1
    slot = add_array(&program, result.unsettled, dtype, False)
    step.slots[count] = slot
    if params is not NULL:
        memcpy(parameters[slot], params, sizeof(parameters[0]))
        step.params = parameters[slot]
    program.cost = max(program.cost, cost)
    program.step_count += 1
    owners[slot] = <PyObject*>result.storage
    result.storage.slot = slot + 1
    arrays += 1
    memory.pending_count += 1
    return result


cdef void needed_steps(Program* compact) noexcept:
    """Copy the program without the steps whose results are dead."""
    cdef bint needed[MAX_SLOTS]
    cdef bint remaining[MAX_STEPS]
    cdef int k
    compact[0] = program
    for k in range(program.slot_count):
        needed[k] = owners[k] is not NULL and (<Storage>owners[k]).slot == k + 1
    mark_needed(&program, program.step_count, NULL, needed, remaining)
    compact.step_count = 0
    for k in range(program.step_count):
        if remaining[k]:
            compact.steps[compact.step_count] = program.steps[k]
            compact.step_count += 1


cdef bint compute_all() noexcept:
    cdef Program compact
    if not memory.pending_count:
        return False
    needed_steps(&compact)
    run_program(&compact)
    clear()
    return True


cdef void clear() noexcept:
    """Leave no result pending."""
    global arrays, reduced_slot
    cdef PyObject* read[MAX_SLOTS]
    cdef int k, count = 0
    for k in range(program.slot_count):
        if owners[k] is NULL:
            continue
        if (<Storage>owners[k]).slot == k + 1:
            (<Storage>owners[k]).slot = 0
        else:
            read[count] = owners[k]
            count += 1
        owners[k] = NULL
    program.slot_count = program.step_count = 0
    memory.pending_count, arrays, reduced_slot = 0, 0, -1
    for k in range(count):      # at last, as this may free memory
        Py_DECREF(<Storage>read[k])


cdef void forget(Storage storage) noexcept:
    """Take note of the death of a pending result."""
    global arrays
    cdef int slot = storage.slot - 1
    owners[slot] = NULL
    program.slots[slot].data = NULL
    memory.pending_count -= 1
    arrays -= 1
    if memory.pending_count == 0:
        clear()


upward.compute_pending, upward.forget_pending = compute_all, <forget_function>forget


cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, char* output) except -1:
    """All other results are computed on the way, x itself only if it is read later, and temporaries die before."""
    global reduced_slot
    cdef Program compact
    cdef int slot = x.storage.slot - 1, k
    if (slot < 0 or slot == reduced_slot or x.flags & SAVED or Py_REFCNT(<PyObject*>x.storage) > 1      # another has saved or shares it
            or program.slots[slot].data != x.unsettled or program.total != x.count or program.slots[slot].dtype != x.dtype_nr):
        return False
    needed_steps(&compact)
    if reduce_program(reduction, &compact, slot, output):
        raise MemoryError("no memory for partial results")
    for k in range(program.slot_count):
        if k != slot and owners[k] is not NULL and (<Storage>owners[k]).slot == k + 1:
            Py_INCREF(<Storage>owners[k])       # it is an array that x may be computed from
            (<Storage>owners[k]).slot = 0
    drop_computed_steps()
    memory.pending_count, reduced_slot = 1, slot
    return True


cdef void drop_computed_steps() noexcept:
    """Drop the steps whose outputs are no longer pending."""
    cdef const Step* step
    cdef int k, output, remaining = 0
    for k in range(program.step_count):
        step = &program.steps[k]
        output = output_of(step)
        if owners[output] is not NULL and (<Storage>owners[output]).slot == 0:
            continue
        program.steps[remaining] = step[0]
        remaining += 1
    program.step_count = remaining
