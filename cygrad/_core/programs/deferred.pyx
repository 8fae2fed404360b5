# cython: cdivision=True
"""Results that are not computed yet (see deferred.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.tensor cimport CONTIGUOUS, SAVED, TensorImpl, empty, new_address
from cygrad._core.memory.storage cimport Storage
from cygrad._core.memory.upward cimport forget_function, run_function, upward
from cygrad._core.operands.operands cimport broadcast, describe_operand, empty_for, shape_is
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, MAX_DIMS, MAX_OPERANDS, MAX_PARAMS, Operand, cg_is_floating_point, cg_loops_of,
                                                  cg_number, elementwise_kernel)
from cygrad._kernels.programs.cuts cimport Cut, begin_cut
from cygrad._kernels.programs.planning cimport mark_needed
from cygrad._kernels.programs.running cimport reduce_program, run_cut, run_program
from cygrad._kernels.programs.steps cimport (MAX_SLOTS, MAX_STEPS, NONE, Extent, Program, Slot, Step, add_array, add_block, add_copy,
                                             add_operand, begin_map, begin_program, cut_back, dtype_of, extent_of, has_room, last_writer,
                                             output_of, strides_of)
from cygrad._kernels.programs.tiles cimport choose_cut

import os

cdef extern from "Python.h":
    ctypedef void* PyThread_type_lock
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept
    unsigned long PyThread_get_thread_ident() noexcept nogil
    PyThread_type_lock PyThread_allocate_lock() noexcept nogil
    void PyThread_free_lock(PyThread_type_lock lock) noexcept nogil
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait) noexcept nogil
    void PyThread_release_lock(PyThread_type_lock lock) noexcept nogil

cdef enum:
    MAX_ARRAYS = 18     # that are read and written side by side

cdef PyObject* first_pending = NULL         # of all programs that have pending results


# ----- Programs -----
@cython.final
@cython.no_gc
cdef class Pending:
    """A program whose results are not computed yet. It is in the list of all as long as it has any."""
    cdef Program program
    cdef unsigned long thread           # of Python, whose operators it has
    cdef int count                      # of pending results
    cdef int arrays                     # slots that are whole arrays
    cdef int reduced_slot               # the slot of a result that was reduced, and will be computed if it is needed again; NONE
    cdef PyObject* owners[MAX_SLOTS]    # the Storage of an array; a reference to one that is read, borrowed from a pending one
    cdef cg_number constants[MAX_SLOTS]     # numbers by slot
    cdef cg_number parameters[MAX_SLOTS][MAX_PARAMS]    # of the step whose output a slot is
    cdef PyObject* next                 # in the list of all
    cdef PyThread_type_lock lock        # locked while the program runs without the GIL
    cdef bint running                   # it does, or did: a thread that has the GIL finishes it
    cdef int runs                       # how many times
    cdef int remaining, failed          # the slot that the run leaves pending, or NONE; its outcome

    def __cinit__(self):
        self.lock = PyThread_allocate_lock()
        if self.lock is NULL:
            raise MemoryError()
        self.thread, self.reduced_slot = PyThread_get_thread_ident(), NONE

    def __dealloc__(self):
        if self.lock is not NULL:
            PyThread_free_lock(self.lock)

    cdef bint is_pending(self, int slot) noexcept:
        """Return True if a slot is the memory of a pending result."""
        cdef Storage storage
        if self.owners[slot] is NULL:
            return False
        storage = <Storage>self.owners[slot]
        return storage.program is <PyObject*>self and storage.slot == slot + 1

    cdef bint takes_step(self, int ndim, const intptr_t* shape, int count) noexcept:
        """Return True if a step over `count` operands of a shape may be added, if the program has room for their slots."""
        cdef int d
        if not self.count:
            return True
        if self.program.ndim != ndim or self.arrays + count >= MAX_ARRAYS or not has_room(&self.program, 2):
            return False
        for d in range(ndim):
            if self.program.shape[d] != shape[d]:
                return False
        return True

    cdef bint is_whole(self, TensorImpl tensor) noexcept:
        """Return True if a tensor in the memory of a pending result is that result."""
        return (tensor.unsettled == self.program.slots[tensor.storage.slot - 1].data and tensor.flags & CONTIGUOUS
                and tensor.dtype_nr == self.program.slots[tensor.storage.slot - 1].dtype
                and shape_is(tensor, self.program.ndim, self.program.shape))

    cdef void add_result(self, TensorImpl result, int slot) noexcept:
        cdef Storage storage = result.storage
        self.program.slots[slot].data = result.unsettled
        self.owners[slot] = <PyObject*>storage
        storage.program, storage.slot = <PyObject*>self, slot + 1
        storage.marks += 1
        self.arrays += 1
        if self.count == 0:
            enlist(self)
        self.count += 1

    cdef bint add_operands(self, const DeferredMap* map, int count, const Value* values, int* slots) noexcept:
        """Add the operands of a step, and the copies that convert them; False, and nothing is added, where there is no room."""
        cdef Extent before = extent_of(&self.program)
        cdef Operand operand
        cdef int k, known, loop_dtype
        for k in range(count):
            known, loop_dtype = self.program.slot_count, dtype_of(k, map.masks, map.dtype)
            if values[k].tensor is NULL:
                if known == MAX_SLOTS:
                    cut_back(&self.program, &before)
                    return False
                self.constants[known] = values[k].number
                memset(operand.strides, 0, sizeof(operand.strides))
                operand.data, operand.dtype = <char*>&self.constants[known], dtype_of(k, map.masks, map.number_dtype)
                operand.padded = False
            else:
                describe_operand(&operand, <TensorImpl>values[k].tensor, loop_dtype, self.program.ndim)
            slots[k] = add_operand(&self.program, operand.data, operand.dtype, loop_dtype, operand.strides, operand.padded)
            if slots[k] == NONE:
                cut_back(&self.program, &before)
                return False
        if not has_room(&self.program, 2):      # the step, and a copy that rounds its result
            cut_back(&self.program, &before)
            return False
        for known in range(before.slots, self.program.slot_count):
            self.owners[known] = NULL
            for k in range(count):
                if values[k].tensor is not NULL and self.program.slots[known].data == (<TensorImpl>values[k].tensor).unsettled:
                    self.own(known, (<TensorImpl>values[k].tensor).storage)
                    break
        return True

    cdef void own(self, int slot, Storage storage) noexcept:
        """Mark the memory that a step reads, and keep it."""
        Py_INCREF(storage)
        storage.marks += 1
        self.owners[slot] = <PyObject*>storage
        self.arrays += 1

    cdef void needed_steps(self, Program* compact) noexcept:
        """Copy the program without the steps whose results are dead."""
        cdef bint needed[MAX_SLOTS]
        cdef bint remaining[MAX_STEPS]
        cdef int k
        compact[0] = self.program
        for k in range(self.program.slot_count):
            needed[k] = self.is_pending(k)
        mark_needed(&self.program, self.program.step_count, NULL, needed, remaining)
        compact.step_count = 0
        for k in range(self.program.step_count):
            if remaining[k]:
                compact.steps[compact.step_count] = self.program.steps[k]
                compact.step_count += 1

    cdef void finish_run(self) noexcept:
        """Take note that a run has ended, in the first thread that gets the GIL afterwards."""
        self.running = False
        if self.failed:         # nothing is lost: the steps can run again
            return
        if self.remaining == NONE:
            self.clear()
        else:
            self.leave_reduced(self.remaining)

    cdef void clear(self) noexcept:
        """Leave no result pending."""
        cdef PyObject* read[MAX_SLOTS]
        cdef Storage storage
        cdef int k, count = 0
        for k in range(self.program.slot_count):
            if self.owners[k] is NULL:
                continue
            storage = <Storage>self.owners[k]
            storage.marks -= 1
            if self.is_pending(k):
                storage.program, storage.slot = NULL, 0
            else:
                read[count] = self.owners[k]
                count += 1
            self.owners[k] = NULL
        self.program.slot_count = self.program.step_count = 0
        self.arrays, self.reduced_slot = 0, NONE
        if self.count:
            self.count = 0
            unlist(self)
        for k in range(count):      # at last, as this may free memory
            Py_DECREF(<Storage>read[k])

    cdef void leave_reduced(self, int slot) noexcept:
        """Leave one result pending, of which only a reduction was computed: all others are computed, and steps may read them."""
        cdef Storage storage
        cdef const Step* step
        cdef int k, remaining = 0
        for k in range(self.program.slot_count):
            if k != slot and self.is_pending(k):
                storage = <Storage>self.owners[k]
                Py_INCREF(storage)
                storage.program, storage.slot = NULL, 0
        for k in range(self.program.step_count):
            step = &self.program.steps[k]
            if self.owners[output_of(step)] is NULL or self.is_pending(output_of(step)):
                self.program.steps[remaining] = step[0]
                remaining += 1
        self.program.step_count = remaining
        self.count, self.reduced_slot = 1, slot


cdef void enlist(Pending pending) noexcept:
    global first_pending
    Py_INCREF(pending)
    pending.next, first_pending = first_pending, <PyObject*>pending


cdef void unlist(Pending pending) noexcept:
    global first_pending
    cdef PyObject** place = &first_pending
    while place[0] is not <PyObject*>pending:
        place = &(<Pending>place[0]).next
    place[0], pending.next = pending.next, NULL
    Py_DECREF(pending)


cdef Pending own_program():
    """Return the program that this thread adds to, or None."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef PyObject* place = first_pending
    while place is not NULL:
        if (<Pending>place).thread == thread and not (<Pending>place).running:
            return <Pending>place
        place = (<Pending>place).next
    return None


# ----- Runs -----
cdef struct Reduction:
    const cg_reduction* reduction   # of all elements
    char* output
    Cut* cut                        # of a program that has the reduction of some dims as its last step, else NULL
    char* memory                    # of its tiles
    int slot                        # that is reduced


cdef int run(Pending pending, const Program* program, const Reduction* reduction, int remaining, bint release) noexcept:
    """Run the needed steps, with or without the GIL, and a reduction, if given. One slot may remain pending. -1: out of memory."""
    cdef PyObject* outputs[MAX_SLOTS]
    cdef int count = 0, number, k, failed
    pending.remaining, pending.running = remaining, True
    pending.runs += 1
    number = pending.runs
    if not release:
        pending.failed = run_fused(program, reduction)
        pending.finish_run()
        return pending.failed
    for k in range(pending.program.slot_count):         # other threads may drop a result meanwhile
        if pending.is_pending(k):
            Py_INCREF(<Storage>pending.owners[k])
            outputs[count] = pending.owners[k]
            count += 1
    PyThread_acquire_lock(pending.lock, True)
    with nogil:
        failed = pending.failed = run_fused(program, reduction)
        PyThread_release_lock(pending.lock)     # before the GIL is taken: others wait for the lock with the GIL
    if pending.running and pending.runs == number:
        pending.finish_run()
    for k in range(count):
        Py_DECREF(<Storage>outputs[k])
    return failed


cdef int run_fused(const Program* program, const Reduction* reduction) noexcept nogil:
    if reduction is NULL:
        run_program(program)
        return 0
    if reduction.cut is not NULL:
        return 0 if run_cut(reduction.cut, reduction.memory) else -1
    return reduce_program(reduction.reduction, program, reduction.slot, reduction.output)


cdef inline void wait_for(PyThread_type_lock lock) noexcept nogil:
    """Wait until a lock is free. No thread takes the GIL while it has one, so this one may have it."""
    PyThread_acquire_lock(lock, True)
    PyThread_release_lock(lock)


cdef void run_or_wait(Pending pending, bint release) noexcept:
    """Run a program, or wait until another thread has run it."""
    cdef Program program
    cdef int number = pending.runs
    Py_INCREF(pending)      # the list may have the last reference
    if not pending.running:
        pending.needed_steps(&program)
        run(pending, &program, NULL, NONE, release)
    else:
        if release:
            with nogil:
                wait_for(pending.lock)
        else:
            wait_for(pending.lock)
        if pending.running and pending.runs == number:
            pending.finish_run()
    Py_DECREF(pending)


cdef bint run_pending(object storage, bint changes) noexcept:
    """Run the programs that compute a storage and, if it changes, those that read it; of None, all. False: there is none."""
    cdef Storage memory
    cdef bint ran = first_pending is not NULL
    if storage is None:
        while first_pending is not NULL:
            run_or_wait(<Pending>first_pending, False)
        return ran
    memory = <Storage>storage
    while memory.program is not NULL:
        run_or_wait(<Pending>memory.program, False)
    while changes and memory.marks:
        run_or_wait(reader_of(memory), False)
    return ran


cdef Pending reader_of(Storage storage):
    """Return a program that reads a storage that has marks."""
    cdef PyObject* place = first_pending
    cdef Pending pending
    cdef int k
    while True:
        pending = <Pending>place
        for k in range(pending.program.slot_count):
            if pending.owners[k] is <PyObject*>storage:
                return pending
        place = pending.next


cdef void forget(Storage storage) noexcept:
    """Take note of the death of a pending result."""
    cdef Pending pending = <Pending>storage.program
    cdef int slot = storage.slot - 1
    pending.owners[slot] = NULL
    pending.program.slots[slot].data = NULL
    if pending.count == 1:
        pending.clear()
    else:
        pending.count -= 1
        pending.arrays -= 1


upward.run_pending, upward.forget_pending = <run_function>run_pending, <forget_function>forget


def run_again_after_fork():
    """Take the programs that other threads were running for pending: a child has no such threads, and results are written anew."""
    cdef PyObject* place = first_pending
    while place is not NULL:
        if (<Pending>place).running:
            (<Pending>place).running, (<Pending>place).lock = False, PyThread_allocate_lock()
        place = (<Pending>place).next


os.register_at_fork(after_in_child=run_again_after_fork)


cdef void run_own_program() noexcept:
    """Run the pending program of this thread, without the GIL."""
    cdef Pending pending = own_program()
    if pending is not None:
        run_or_wait(pending, True)


def pending_results():
    """Return the number of pending results of all threads."""
    cdef PyObject* place = first_pending
    count = 0
    while place is not NULL:
        count += (<Pending>place).count
        place = (<Pending>place).next
    return count


def defer_from(intptr_t count):
    """Set from how many elements on arrays are large, and return the limit before."""
    run_pending(None, True)
    before = settings.large
    settings.large = count
    return before


# ----- Operators -----
cdef bint may_be_pending(int count, const Value* values) noexcept:
    """Return True if operands lie in memory that only tensors with the marks of their storages reach."""
    cdef Storage storage
    cdef int k
    if settings.mode == settings.EAGER:
        return False
    for k in range(count):
        if values[k].tensor is not NULL:
            storage = (<TensorImpl>values[k].tensor).storage
            if storage.exports or storage.counters or not storage.padded:
                return False
    return True


cdef bint have_shape(int count, const Value* values, int ndim, const intptr_t* shape) except -1:
    """Return True if operands broadcast to a shape."""
    cdef intptr_t common[MAX_DIMS]
    cdef int d
    if broadcast(count, values, common) != ndim:
        return False
    for d in range(ndim):
        if common[d] != shape[d]:
            return False
    return True


cdef Pending obstacle(Pending pending, int count, const Value* values):
    """Return a program that must run before operands are read by a step of `pending`, or None: it computes one, or part of one."""
    cdef TensorImpl tensor
    cdef PyObject* program
    cdef int k
    for k in range(count):
        if values[k].tensor is NULL:
            continue
        tensor = <TensorImpl>values[k].tensor
        program = tensor.storage.program
        if program is not NULL and (program is not <PyObject*>pending or not pending.is_whole(tensor)):
            return <Pending>program
    return None


cdef void compute_operands(int count, const Value* values) noexcept:
    cdef Pending other = obstacle(None, count, values)
    while other is not None:
        run_or_wait(other, True)
        other = obstacle(None, count, values)


cdef TensorImpl defer_map(const DeferredMap* map, int count, const Value* values, int ndim, const intptr_t* shape):
    cdef Pending pending, other
    cdef TensorImpl result
    cdef Step* step
    cdef int k, slot, block
    cdef int slots[MAX_OPERANDS]
    if not may_be_pending(count, values):
        return None
    pending = own_program()
    if pending is None:
        pending = Pending.__new__(Pending)
    elif not pending.takes_step(ndim, shape, count):
        run_or_wait(pending, True)
    other = obstacle(pending, count, values)
    while other is not None:
        run_or_wait(other, True)
        other = obstacle(pending, count, values)
    # Other threads may have run, and a finalizer may run while memory is allocated: operands may have another shape after each.
    if not have_shape(count, values, ndim, shape):
        return None
    result = empty_for(map.out_dtype, ndim, shape, count, values)
    if not result.flags & CONTIGUOUS or not may_be_pending(count, values) or not have_shape(count, values, ndim, shape):
        return None
    other = obstacle(pending, count, values)
    while other is not None:
        run_or_wait(other, False)
        other = obstacle(pending, count, values)
    if pending.running or not pending.takes_step(ndim, shape, count):
        run_or_wait(pending, False)
    if not pending.count:
        begin_program(&pending.program, ndim, shape)
    if not pending.add_operands(map, count, values, slots):
        run_or_wait(pending, False)
        begin_program(&pending.program, ndim, shape)
        pending.add_operands(map, count, values, slots)
    step = &pending.program.steps[pending.program.step_count]
    begin_map(step, map.kernel, map.dtype, NULL)
    step.masks, step.inputs = map.masks, count
    for k in range(count):
        step.slots[k] = slots[k]
    slot = block = step.slots[count] = add_block(&pending.program, map.loop_out_dtype)
    pending.program.step_count += 1
    if map.loop_out_dtype != map.out_dtype:
        slot = add_block(&pending.program, map.out_dtype)
        add_copy(&pending.program, block, slot)
        pending.owners[block] = NULL
    if map.params is not NULL:
        memcpy(pending.parameters[block], map.params, sizeof(pending.parameters[0]))
        step.params = pending.parameters[block]
    pending.program.cost = max(pending.program.cost, map.cost)
    pending.add_result(result, slot)
    return result


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
