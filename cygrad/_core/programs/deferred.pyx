# cython: cdivision=True
"""Results that are not computed yet (see deferred.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.tensor cimport CONTIGUOUS, SAVED, TensorImpl, empty, empty_like, new_address
from cygrad._core.memory.storage cimport Storage
from cygrad._core.memory.upward cimport forget_function, run_function, upward
from cygrad._core.operands.operands cimport Value, fits_loop, is_one_number, same_shape
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, MAX_PARAMS, cg_loops_of, cg_number, takes_numbers
from cygrad._kernels.programs.cuts cimport Cut, begin_cut
from cygrad._kernels.programs.planning cimport mark_needed
from cygrad._kernels.programs.running cimport reduce_program, run_cut, run_program
from cygrad._kernels.programs.steps cimport MAX_SLOTS, MAX_STEPS, NONE, Program, Step, add_array, begin_map, begin_program, output_of
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

    cdef bint has_room(self, int dtype, intptr_t total, int count) noexcept:
        """Return True if a step over `count` operands can be added."""
        cdef const Program* program = &self.program
        return not self.count or (program.steps[0].dtype == dtype and program.total == total and program.step_count < MAX_STEPS
                                  and program.slot_count + count < MAX_SLOTS and self.arrays + count < MAX_ARRAYS)

    cdef int add_result(self, TensorImpl result, int dtype) noexcept:
        cdef int slot = add_array(&self.program, result.unsettled, dtype, False)
        cdef Storage storage = result.storage
        self.owners[slot] = <PyObject*>storage
        storage.program, storage.slot = <PyObject*>self, slot + 1
        storage.marks += 1
        self.arrays += 1
        if self.count == 0:
            enlist(self)
        self.count += 1
        return slot

    cdef int add_operand(self, TensorImpl tensor, int dtype) noexcept:
        cdef int known = self.program.slot_count, slot
        slot = add_array(&self.program, tensor.unsettled, dtype, is_repeated(tensor, dtype))
        if slot == known:
            Py_INCREF(tensor.storage)
            tensor.storage.marks += 1
            self.owners[slot] = <PyObject*>tensor.storage
            self.arrays += 1
        return slot

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
        pending.failed = run_steps(program, reduction)
        pending.finish_run()
        return pending.failed
    for k in range(pending.program.slot_count):         # other threads may drop a result meanwhile
        if pending.is_pending(k):
            Py_INCREF(<Storage>pending.owners[k])
            outputs[count] = pending.owners[k]
            count += 1
    PyThread_acquire_lock(pending.lock, True)
    with nogil:
        failed = pending.failed = run_steps(program, reduction)
        PyThread_release_lock(pending.lock)     # before the GIL is taken: others wait for the lock with the GIL
    if pending.running and pending.runs == number:
        pending.finish_run()
    for k in range(count):
        Py_DECREF(<Storage>outputs[k])
    return failed


cdef int run_steps(const Program* program, const Reduction* reduction) noexcept nogil:
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
cdef bint may_be_pending(const cg_kernel* kernel, int dtype, int count, const Value* values, TensorImpl first) noexcept:
    """Return True if operands are dense or repeat one number, of one shape (of `first`, if given) and dtype, and have no aliases with
    marks of their own."""
    cdef TensorImpl tensor
    cdef int k, numbers = 0
    cdef bint has_array = False
    if cg_loops_of[dtype] != dtype or settings.mode == settings.EAGER:
        return False
    for k in range(count):
        if values[k].tensor is NULL:
            numbers += 1
            continue
        tensor = <TensorImpl>values[k].tensor
        if first is None:
            first = tensor
        if tensor.count < settings.large or tensor.storage.exports or tensor.storage.counters or not same_shape(tensor, first):
            return False
        if is_repeated(tensor, dtype):
            numbers += 1
        elif fits_loop(tensor, dtype):
            has_array = True
        else:
            return False
    return has_array and takes_numbers(kernel, dtype, count, numbers)


cdef inline bint is_repeated(TensorImpl tensor, int dtype) noexcept:
    """Return True if all elements are one number in memory, of a dtype, as in the gradient of a sum."""
    return not tensor.flags & CONTIGUOUS and tensor.dtype_nr == dtype and is_one_number(tensor)


cdef void compute_operands(int count, const Value* values) noexcept:
    compute_others(count, values, None, True)


cdef void compute_others(int count, const Value* values, Pending but, bint release) noexcept:
    """Run the programs that compute operands, but one."""
    cdef PyObject* program
    cdef int k
    for k in range(count):
        while values[k].tensor is not NULL:
            program = (<TensorImpl>values[k].tensor).storage.program
            if program is NULL or program is <PyObject*>but:
                break
            run_or_wait(<Pending>program, release)


cdef TensorImpl defer_elementwise(const cg_kernel* kernel, int dtype, int count, const Value* values, const void* params, int cost):
    cdef Pending pending
    cdef TensorImpl result, tensor
    cdef Step* step
    cdef int k, slot
    if not may_be_pending(kernel, dtype, count, values, None):
        return None
    for k in range(count):
        if values[k].tensor is not NULL:
            tensor = <TensorImpl>values[k].tensor
    pending = own_program()
    if pending is None:
        pending = Pending.__new__(Pending)
    elif not pending.has_room(dtype, tensor.count, count):
        run_or_wait(pending, True)
    compute_others(count, values, pending, True)
    # Other threads may have run, and a finalizer may run while memory is allocated: operands may have another shape after each.
    if not may_be_pending(kernel, dtype, count, values, None):
        return None
    result = empty_like(tensor, dtype)
    if not may_be_pending(kernel, dtype, count, values, result):
        return None
    compute_others(count, values, pending, False)
    if pending.running or not pending.has_room(dtype, result.count, count):
        run_or_wait(pending, False)
    if not pending.count:
        begin_program(&pending.program, result.count)
    step = &pending.program.steps[pending.program.step_count]
    begin_map(step, kernel, dtype, NULL)
    step.inputs = count
    for k in range(count):
        if values[k].tensor is not NULL:
            step.slots[k] = pending.add_operand(<TensorImpl>values[k].tensor, dtype)
            continue
        slot = pending.program.slot_count
        pending.constants[slot], pending.owners[slot] = values[k].number, NULL
        step.slots[k] = add_array(&pending.program, <char*>&pending.constants[slot], dtype, True)
    slot = step.slots[count] = pending.add_result(result, dtype)
    if params is not NULL:
        memcpy(pending.parameters[slot], params, sizeof(pending.parameters[0]))
        step.params = pending.parameters[slot]
    pending.program.cost = max(pending.program.cost, cost)
    pending.program.step_count += 1
    return result


cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result) except -1:
    """All other results are computed on the way, x itself only if it is read later, and temporaries die before."""
    cdef Storage storage = x.storage
    cdef Pending pending
    cdef Program program
    cdef Reduction job
    cdef bint is_needed = x.flags & SAVED or Py_REFCNT(<PyObject*>storage) > 2      # another has saved or shares it
    if storage.program is NULL:
        return False
    pending = <Pending>storage.program
    job.reduction, job.output, job.cut, job.slot = reduction, new_address(result), NULL, storage.slot - 1
    if (pending.running or job.slot == pending.reduced_slot or pending.program.slots[job.slot].data != x.unsettled
            or pending.program.total != x.count or pending.program.slots[job.slot].dtype != x.dtype_nr):
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
    if not x.flags & CONTIGUOUS or program.step_count == MAX_STEPS or program.slot_count == MAX_SLOTS:
        return False
    program.ndim = x.ndim
    for d in range(x.ndim):
        program.shape[d], program.is_reduced[d] = x.sizes[d], is_reduced[d]
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
