"""Observers that record the events of a profile, or announce them to functions.

The Recorder keeps events in a C array: an event without shapes and stack costs two readings of the clock and no Python object. Each event
has the index of the one it began in, and the tree is made from these when the profile is read.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, realloc

from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.levels.observers cimport BACKWARD, MEMORY, Observer, next_token, observes_this_thread, thread_number
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._kernels.system.recursion cimport enter_container, leave_container

import sys

cdef extern from "system/clock.h":
    long long cg_nanoseconds() noexcept

cdef tuple kinds = ("operator", "function", "evaluation", "backward", "user", "memory")


# ----- Operands of events -----
cdef object sizes_of(object operand):
    """Return the sizes of a tensor, a list of them for several, None for anything else."""
    cdef TensorImpl tensor
    if isinstance(operand, TensorImpl):
        tensor = <TensorImpl>operand
        return sizes_tuple(tensor.ndim, tensor.sizes)
    if isinstance(operand, (tuple, list)) and any([isinstance(item, TensorImpl) for item in operand]):
        enter_container(" while operands are recorded")
        try:
            return [sizes_of(item) for item in operand]
        finally:
            leave_container()
    return None


cdef object value_of(object operand):
    """Return a number, a string or a sequence of them as it is now, None for anything else."""
    if isinstance(operand, (bool, int, float, str)):
        return operand
    if isinstance(operand, (tuple, list)) and all([isinstance(item, (bool, int, float, str)) for item in operand]):
        return list(operand)
    return None


cdef tuple described(operands):
    """Return a description of operands for after their death: shapes and values, one of each for each operand."""
    return tuple([sizes_of(operand) for operand in operands]), tuple([value_of(operand) for operand in operands])


cdef list call_stack():
    """Return where the Python program is, the innermost call first: code objects and offsets, since finding lines takes time."""
    cdef list frames = []
    frame = sys._getframe()
    while frame is not None:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return frames


# ----- Recorders -----
cdef struct Event:
    PyObject* name              # these three are owned; NULL where there is none
    PyObject* operands
    PyObject* stack
    Py_ssize_t token
    Py_ssize_t parent           # index of the event it began in, or -1
    long long start, stop       # nanoseconds; stop 0: still open
    long long sequence_nr
    long long memory            # while it is open: the bytes that the thread had taken when it began; then: the bytes it took
    unsigned long thread
    int kind
    bint asynchronous           # ended by another thread


@cython.final
@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Recorder(Observer):
    """Keeps the events of a thread."""

    cdef Event* events
    cdef Py_ssize_t count, capacity
    cdef Py_ssize_t innermost       # the open event that began last, or -1
    cdef long long bytes_in_use            # bytes, since the start
    cdef readonly bint with_stack

    def __cinit__(self, bint with_shapes=False, bint with_memory=False, bint with_stack=False):
        self.with_shapes, self.with_memory, self.with_stack, self.innermost = with_shapes, with_memory, with_stack, -1

    def __dealloc__(self):
        cdef Py_ssize_t k
        for k in range(self.count):
            Py_DECREF(<object>self.events[k].name)
            Py_XDECREF(self.events[k].operands)
            Py_XDECREF(self.events[k].stack)
        free(self.events)

    cdef Event* add(self, int kind, object name) noexcept:
        """Return a new event, NULL if there is no memory."""
        cdef Event* larger
        cdef Event* event
        if self.count == self.capacity:
            larger = <Event*>realloc(self.events, (2 * self.capacity + 256) * sizeof(Event))
            if larger is NULL:
                return NULL
            self.events, self.capacity = larger, 2 * self.capacity + 256
        event = &self.events[self.count]
        self.count += 1
        Py_INCREF(name)
        event.name, event.operands, event.stack = <PyObject*>name, NULL, NULL
        event.token, event.kind, event.parent, event.thread = next_token(), kind, self.innermost, thread_number()
        event.stop, event.sequence_nr, event.memory, event.asynchronous = 0, -1, 0, False
        return event

    cdef Py_ssize_t begin(self, int kind, object name, object operands, long long sequence_nr) except -1:
        cdef tuple description = described(operands) if self.with_shapes and operands is not None else None
        cdef list stack = call_stack() if self.with_stack and kind != BACKWARD else None    # those get the stack of their forward
        cdef Event* event = self.add(kind, name)
        if event is NULL:
            raise MemoryError()
        if description is not None:
            Py_INCREF(description)
            event.operands = <PyObject*>description
        if stack is not None:
            Py_INCREF(stack)
            event.stack = <PyObject*>stack
        event.sequence_nr, event.memory = sequence_nr, self.bytes_in_use
        self.innermost = self.count - 1
        event.start = cg_nanoseconds()
        return event.token

    cdef int end(self, Py_ssize_t token) except -1:
        cdef long long time = cg_nanoseconds()
        cdef Py_ssize_t index = self.innermost
        while index >= 0 and self.events[index].token != token:
            index = self.events[index].parent
        if index < 0 or self.events[index].stop:
            return 0
        self.events[index].stop, self.events[index].memory = time, self.bytes_in_use - self.events[index].memory
        self.events[index].asynchronous = not observes_this_thread(self)
        while self.innermost >= 0 and self.events[self.innermost].stop:
            self.innermost = self.events[self.innermost].parent
        return 0

    cdef int finish(self) except -1:
        while self.innermost >= 0:
            self.end(self.events[self.innermost].token)
        return 0

    cdef void note_memory(self, Py_ssize_t delta) noexcept:
        cdef Event* event
        self.bytes_in_use += delta
        if self.innermost < 0 and delta:
            event = self.add(MEMORY, "[memory]")
            if event is not NULL:
                event.start = event.stop = cg_nanoseconds()
                event.memory = delta

    def rows(self):
        """Return the events in the order they began, as tuples.

        Each is (token, kind, name, start, stop, thread, ended by another thread, sequence number, index of the event around it or
        -1, (shapes, values) of the operands or None, [(code, offset), ...] or None, bytes).
        """
        cdef Py_ssize_t k
        cdef Event* event
        cdef list rows = []
        for k in range(self.count):
            event = &self.events[k]
            rows.append((event.token, kinds[event.kind], <object>event.name, event.start, event.stop, event.thread, event.asynchronous,
                         event.sequence_nr, event.parent, None if event.operands is NULL else <object>event.operands,
                         None if event.stack is NULL else <object>event.stack, event.memory))
        return rows


@cython.final
cdef class Announcer(Observer):
    """Calls functions at the beginning and the end of each event: entered(kind, name, sequence number, shapes or None), left()."""

    cdef object entered, left
    cdef list unended               # tokens

    def __cinit__(self, entered not None, left not None, bint with_shapes=False):
        self.entered, self.left, self.with_shapes, self.unended = entered, left, with_shapes, []

    cdef Py_ssize_t begin(self, int kind, object name, object operands, long long sequence_nr) except -1:
        shapes = described(operands)[0] if self.with_shapes and operands is not None else None
        self.entered(kinds[kind], name, sequence_nr, shapes)
        self.unended.append(next_token())
        return self.unended[len(self.unended) - 1]

    cdef int end(self, Py_ssize_t token) except -1:
        if token in self.unended:
            self.unended.remove(token)
            self.left()
        return 0

    cdef int finish(self) except -1:
        while self.unended:
            self.end(self.unended[len(self.unended) - 1])
        return 0
