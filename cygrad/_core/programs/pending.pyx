# cython: cdivision=True
"""Programs that wait, and their runs (see pending.pxd for the contract)."""
cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcmp, memcpy, memset

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.tensor cimport CONTIGUOUS
from cygrad._core.memory.upward cimport forget_function, run_function, upward
from cygrad._core.operands.operands cimport shape_is
from cygrad._kernels.drivers.elementwise cimport cg_itemsize
from cygrad._kernels.drivers.reduction cimport partial_bytes
from cygrad._kernels.programs.blocks cimport PLACE
from cygrad._kernels.programs.planning cimport mark_needed
from cygrad._kernels.programs.rewriting cimport write_in_place_of_copies
from cygrad._kernels.programs.running cimport plan_blocks, run_program
from cygrad._kernels.programs.steps cimport (DENSE, MAX_STEPS, NONE, Slot, Step, begin_program, copy_program, has_room, output_of,
                                             reduction_of)

import os

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept nogil
    PyThread_type_lock PyThread_allocate_lock() noexcept nogil
    void PyThread_free_lock(PyThread_type_lock lock) noexcept nogil
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait) noexcept nogil
    void PyThread_release_lock(PyThread_type_lock lock) noexcept nogil

first_pending = NULL


# ----- Programs -----
@cython.final
@cython.no_gc
cdef class Pending:
    """A program whose results are not computed yet. It is in the list of all as long as it has any."""

    def __cinit__(self):
        self.lock = PyThread_allocate_lock()
        if self.lock is NULL:
            raise MemoryError()
        self.thread, self.reduced_slot, self.total_slot = PyThread_get_thread_ident(), NONE, NONE

    def __dealloc__(self):
        if self.lock is not NULL:
            PyThread_free_lock(self.lock)

    cdef void begin(self, int ndim, const intptr_t* shape) noexcept:
        begin_program(&self.program, ndim, shape)
        self.program.most_steps, self.constant_count = MAX_STEPS, 0

    cdef cg_number* constant(self, const cg_number* number, int dtype) noexcept:
        """Return the place of a number, which equal ones share."""
        cdef int k
        for k in range(self.constant_count):
            if not memcmp(&self.constants[k], number, cg_itemsize[dtype]):
                return &self.constants[k]
        self.constants[self.constant_count] = number[0]
        self.constant_count += 1
        return &self.constants[self.constant_count - 1]

    cdef bint takes_step(self, int ndim, const intptr_t* shape, int count) noexcept:
        """Return True if a step over `count` operands of a shape may be added, if the program has room for their slots."""
        return not self.count or (self.program.ndim == ndim and not memcmp(self.program.shape, shape, ndim * sizeof(intptr_t))
                                  and self.arrays + count < MAX_ARRAYS and has_room(&self.program, 3))    # one is for a reduction

    cdef int slot_of(self, TensorImpl tensor) noexcept:
        """Return the slot of the pending result that is all of a tensor's memory; NONE if there is none of its dtype."""
        cdef const Slot* slot
        cdef int k
        for k in range(self.program.slot_count):
            slot = &self.program.slots[k]
            if (self.is_pending[k] and slot.data == tensor.unsettled and slot.dtype == tensor.dtype_nr and slot.geometry == DENSE
                    and self.program.total * cg_itemsize[slot.dtype] == <intptr_t>tensor.storage.nbytes):
                return k
        return NONE

    cdef bint is_whole(self, TensorImpl tensor) noexcept:
        """Return True if a tensor is a pending result."""
        return (tensor.flags & CONTIGUOUS and shape_is(tensor, self.program.ndim, self.program.shape)
                and self.slot_of(tensor) != NONE)

    cdef void add_result(self, TensorImpl result, int slot) noexcept:
        cdef Storage storage = result.storage
        self.program.slots[slot].data = result.unsettled
        self.owners[slot], self.is_pending[slot] = <PyObject*>storage, True
        storage.program = <PyObject*>self
        storage.marks += 1
        self.arrays += 1
        if self.count == 0:
            enlist(self)
        self.count += 1

    cdef void find_needed(self, int left) noexcept:
        """Copy the program without the steps of dead results, and those that only the result `left` needs, or NONE. At last come the total
        and the numbers; dead ones have memory among the partial results."""
        cdef bint needed[MAX_SLOTS]
        cdef bint marked[MAX_STEPS]
        cdef bint single
        cdef Slot* output
        cdef int k
        copy_program(&self.needed, &self.program)
        memcpy(needed, self.is_pending, sizeof(needed))
        if left != NONE:
            needed[left], self.needed.slots[left].data = False, NULL
        mark_needed(&self.program, self.program.step_count, NULL, needed, marked)
        self.needed.step_count = 0
        for single in range(2):
            for k in range(self.program.step_count):
                output = &self.needed.slots[output_of(&self.program.steps[k])]
                if marked[k] and output.reduced == single:
                    if single and output.data is NULL:
                        output.data = self.partials.data + partial_bytes(self.program.total) + self.needed.step_count * PLACE
                    self.needed.steps[self.needed.step_count] = self.program.steps[k]
                    self.needed.step_count += 1
        memset(self.needed.is_reduced, reduction_of(&self.needed) != NONE, self.program.ndim)
        write_in_place_of_copies(&self.needed)

    cdef void finish_run(self) noexcept:
        """Take note that a run has ended, in the first thread that gets the GIL afterwards."""
        self.running = False
        if self.failed:         # nothing is lost: the steps can run again
            return
        if self.remaining == NONE:
            self.clear()
        else:
            self.leave(self.remaining)

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
            if self.is_pending[k]:
                storage.program = NULL
            else:
                read[count] = self.owners[k]
                count += 1
            self.owners[k] = NULL
        memset(self.is_pending, 0, sizeof(self.is_pending))
        self.program.slot_count = self.program.step_count = 0
        self.arrays, self.reduced_slot, self.total_slot, self.partials = 0, NONE, NONE, None
        if self.count:
            self.count = 0
            unlist(self)
        for k in range(count):      # at last, as this may free memory
            Py_DECREF(<Storage>read[k])

    cdef void leave(self, int slot) noexcept:
        """Leave one result pending: all others are computed, and steps may read them."""
        cdef const Step* step
        cdef int k, remaining = 0
        for k in range(self.program.slot_count):
            if k != slot and self.is_pending[k]:
                Py_INCREF(<Storage>self.owners[k])
                (<Storage>self.owners[k]).program, self.is_pending[k] = NULL, False
        for k in range(self.program.step_count):
            step = &self.program.steps[k]
            if self.owners[output_of(step)] is NULL or self.is_pending[output_of(step)]:
                self.program.steps[remaining] = step[0]
                remaining += 1
        self.program.step_count = remaining
        self.count, self.total_slot, self.partials = 1, NONE, None


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
cdef int run(Pending pending, char* memory, int remaining, bint release) noexcept:
    cdef PyObject* outputs[MAX_SLOTS]
    cdef int count = 0, number, k, failed
    pending.remaining, pending.running = remaining, True
    pending.runs += 1
    number = pending.runs
    if not release:
        pending.failed = run_program(&pending.plan, memory)
        pending.finish_run()
        return pending.failed
    for k in range(pending.program.slot_count):         # other threads may drop a result meanwhile
        if pending.is_pending[k]:
            Py_INCREF(<Storage>pending.owners[k])
            outputs[count] = pending.owners[k]
            count += 1
    PyThread_acquire_lock(pending.lock, True)
    with nogil:
        failed = pending.failed = run_program(&pending.plan, memory)
        PyThread_release_lock(pending.lock)     # before the GIL is taken: others wait for the lock with the GIL
    if pending.running and pending.runs == number:
        pending.finish_run()
    for k in range(count):
        Py_DECREF(<Storage>outputs[k])
    return failed


cdef void run_needed(Pending pending, int remaining, bint release) noexcept:
    pending.find_needed(remaining)
    plan_blocks(&pending.plan, &pending.needed)
    run(pending, NULL if pending.partials is None else pending.partials.data, remaining, release)


cdef inline void wait_for(PyThread_type_lock lock) noexcept nogil:
    """Wait until a lock is free. No thread takes the GIL while it has one, so this one may have it."""
    PyThread_acquire_lock(lock, True)
    PyThread_release_lock(lock)


cdef void run_or_wait(Pending pending, bint release) noexcept:
    """Run a program, or wait until another thread has run it."""
    cdef int number = pending.runs
    Py_INCREF(pending)      # the list may have the last reference
    if not pending.running:
        run_needed(pending, NONE, release)
    else:
        if release:
            with nogil:
                wait_for(pending.lock)
        else:
            wait_for(pending.lock)
        if pending.running and pending.runs == number:
            pending.finish_run()
    Py_DECREF(pending)


cdef void compute_memory(Storage storage) noexcept:
    while storage.program is not NULL:
        run_or_wait(<Pending>storage.program, True)


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
    cdef int k, parts = 0
    for k in range(pending.program.slot_count):
        if pending.is_pending[k] and pending.owners[k] is <PyObject*>storage:
            pending.owners[k], pending.is_pending[k] = NULL, False
            pending.program.slots[k].data = NULL
            parts += 1
    if pending.count == parts:
        pending.clear()
    else:
        pending.count -= parts
        pending.arrays -= parts


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
    """Set from how many elements on arrays are large, and from how many bytes on results may be pending; return the limit before."""
    run_pending(None, True)
    before = settings.large
    settings.large = count
    return before
