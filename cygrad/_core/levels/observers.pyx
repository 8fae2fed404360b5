"""Observers of a thread's work (see profiler.pxd for the contract).

The Recorder keeps events in a C array: an event that nobody asks the shapes or the stack of costs two readings of the clock and
no Python object. Events know the one they began in; the tree is made from that when the profile is read.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, realloc
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport Node, grads_list, last_sequence_nr
from cygrad._core.graph.tensor cimport TensorImpl, special_active
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport settle
from cygrad._kernels.system.allocator cimport memory_observer, observe_memory

import sys

cdef extern from "Python.h":
    PyObject* PyThreadState_GetDict() noexcept
    unsigned long PyThread_get_thread_native_id() noexcept

cdef extern from *:
    """
    typedef struct { PyObject *turn, *observer; unsigned long thread; } cg_observation;
    static __thread cg_observation cg_observed;
    static cg_observation *cg_observation_address(void) { return &cg_observed; }
    """
    ctypedef struct Observation "cg_observation":
        PyObject* turn              # of this thread, NULL before its first; the thread's state owns it
        PyObject* observer          # the turn's
        unsigned long thread        # the system's number
    Observation* observation "cg_observation_address"() noexcept

cdef tuple kinds = ("operator", "function", "evaluation", "backward", "user", "memory")
cdef int profiling_threads = 0
cdef Py_ssize_t tokens = 0          # given out so far, in all threads
cdef int memory_observers = 0


# ----- The observer of this thread -----
@cython.final
cdef class Turn:
    """Whom a thread reports to. The thread's state owns it, so that it ends with a thread that ends inside of a profile."""
    cdef Observer observer
    cdef int run                # of the observer

    cdef void end(self) noexcept:
        if self.observer is not None and self.observer.active and self.run == self.observer.run:
            count_threads(self.observer, -1)
        self.observer = None

    def __dealloc__(self):
        cdef Observation* place = observation()
        if place.turn is <PyObject*>self:       # else of a thread that a fork has left behind
            place.turn = place.observer = NULL
        self.end()


cdef void count_threads(Observer observer, int more) noexcept:
    global profiling_threads, special_active
    observer.threads += more
    profiling_threads += more
    special_active += more


cdef int observe(Observer observer) except -1:
    """Have this thread report to an observer."""
    cdef Observation* place = observation()
    cdef PyObject* state
    cdef Turn turn
    if place.turn is NULL:
        state = PyThreadState_GetDict()
        if state is NULL:
            raise MemoryError()
        turn = Turn.__new__(Turn)
        (<dict>state)[Turn] = turn
        place.turn = <PyObject*>turn
    settle()        # or memory that only waiting results keep would be given back in the profile
    turn = <Turn>place.turn
    turn.end()
    turn.observer, turn.run = observer, observer.run
    if observer.active:
        count_threads(observer, 1)
    place.observer, place.thread = <PyObject*>observer, PyThread_get_thread_native_id()
    return 0


cdef void observe_no_more() noexcept:
    cdef Observation* place = observation()
    place.observer = NULL
    if place.turn is not NULL:
        (<Turn>place.turn).end()


cdef bint is_profiling() noexcept:
    """Say whether this thread is observed."""
    cdef Observation* place = observation()
    if place.observer is NULL:
        return False
    if not (<Observer>place.observer).active:       # stopped by another thread
        observe_no_more()
        return False
    return True


cdef inline Observer own_observer():
    return <Observer>observation().observer if profiling_threads and is_profiling() else None


def current_observer():
    """Return the observer of this thread, or None."""
    return own_observer()


def set_observer(Observer observer):
    """Let a thread that computes for another be observed as that one is; None at its end."""
    if observer is None:
        observe_no_more()
    else:
        observe(observer)


cdef long long next_sequence_nr() noexcept:
    """Return the number that the next node will get, -1 where no node is made."""
    return <long long>last_sequence_nr + 1 if grad_mode()[0] else -1


cdef bint wants_operands() noexcept:
    """Say whether the observer of this thread, if it has one, looks at the operands of events."""
    return profiling_threads and is_profiling() and (<Observer>observation().observer).with_shapes


cdef Py_ssize_t begin_event(object name, tuple operands, long long sequence_nr) except -1:
    """Begin the event of an operator; returns its token. `operands` may be None where nobody wants them."""
    cdef Observer observer = own_observer()
    return 0 if observer is None else observer.begin(OPERATOR, name, operands, sequence_nr)


cdef Py_ssize_t begin_node(int kind, Node node, PyObject** grads) except -1:
    """Begin the evaluation of a node, or its computation; node None is the root of a backward. Returns the token."""
    cdef Observer observer = own_observer()
    if observer is None:
        return 0
    if node is None:
        return observer.begin(kind, "GraphRoot", None, -1)
    return observer.begin(kind, (<object>node).name(), grads_list(grads, node.outputs) if kind == BACKWARD and observer.with_shapes
                          else None, <long long>node.sequence_nr)


cdef int end_event(Py_ssize_t token) except -1:
    """End an event of this thread."""
    cdef Observer observer
    if token:
        observer = own_observer()
        if observer is not None:
            observer.end(token)
    return 0


def begin_function(str name not None, tuple operands not None):
    """Begin the event of the forward pass of a user's Function; returns its token."""
    cdef Observer observer = own_observer()
    return 0 if observer is None else observer.begin(FUNCTION, name, operands, next_sequence_nr())


def end_function(Py_ssize_t token):
    """End the event of a Function."""
    end_event(token)


# ----- What is kept of operands -----
cdef object sizes_of(object operand):
    """Return the sizes of a tensor, a list of them for several, None for anything else."""
    cdef TensorImpl tensor
    if isinstance(operand, TensorImpl):
        tensor = <TensorImpl>operand
        return sizes_tuple(tensor.ndim, tensor.sizes)
    if isinstance(operand, (tuple, list)) and any([isinstance(item, TensorImpl) for item in operand]):
        return [sizes_of(item) for item in operand]
    return None


cdef object value_of(object operand):
    """Return a number, a string or a sequence of them as it is now, None for anything else."""
    if isinstance(operand, (bool, int, float, str)):
        return operand
    if isinstance(operand, (tuple, list)) and all([isinstance(item, (bool, int, float, str)) for item in operand]):
        return list(operand)
    return None


cdef tuple described(operands):
    """Return what is known of operands after they are gone: shapes and values, each one for each operand."""
    return tuple([sizes_of(operand) for operand in operands]), tuple([value_of(operand) for operand in operands])


cdef list call_stack():
    """Return where the Python program is, the innermost call first: code objects and offsets, since finding lines takes time."""
    cdef list places = []
    frame = sys._getframe()
    while frame is not None:
        places.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return places


# ----- Observers -----
cdef void memory_changed(Py_ssize_t delta) noexcept:
    cdef Observation* place = observation()
    if place.observer is not NULL and (<Observer>place.observer).with_memory:
        (<Observer>place.observer).note_memory(delta)


cdef void count_memory_observers(int more) noexcept:
    """Have the allocator tell of each change while somebody wants to know."""
    global memory_observers
    cdef memory_observer nobody = NULL
    memory_observers += more
    observe_memory(memory_changed if memory_observers else nobody)


@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Observer:
    """What a thread reports to, between start() and stop(); subclasses keep or pass on what they are told."""

    cdef Py_ssize_t begin(self, int kind, object name, object operands, long long sequence_nr) except -1:
        raise NotImplementedError

    cdef int end(self, Py_ssize_t token) except -1:
        raise NotImplementedError

    cdef int finish(self) except -1:
        """End what is still open."""
        raise NotImplementedError

    cdef void note_memory(self, Py_ssize_t delta) noexcept:
        """Note that tensors take `delta` bytes more; for observers `with_memory`."""

    def start(self):
        """Observe this thread; RuntimeError if somebody does."""
        if own_observer() is not None:
            raise RuntimeError("Profiler is already enabled on this thread: profiles do not nest; use record_function for a part")
        self.run += 1
        observe(self)
        self.active = True
        count_threads(self, 1)
        count_memory_observers(self.with_memory)

    def stop(self):
        """Observe no more, from whichever thread; RuntimeError if it did not."""
        if not self.active:
            raise RuntimeError("Can't disable profiler when it's not running")
        try:
            self.finish()
        finally:
            count_threads(self, -self.threads)
            self.active = False
            count_memory_observers(-self.with_memory)
            if observation().observer is <PyObject*>self:
                observe_no_more()

    def begin_range(self, str name not None, tuple operands not None):
        """Begin a range that the user names; returns its token."""
        return self.begin(USER, name, operands, -1) if self.active else 0

    def end_range(self, Py_ssize_t token):
        """End a range, from whichever thread."""
        if self.active:
            self.end(token)


cdef struct Event:
    PyObject* name              # these three are owned; NULL where there is none
    PyObject* operands
    PyObject* stack
    Py_ssize_t token
    Py_ssize_t parent           # index of the event it began in, or -1
    long long start, stop       # nanoseconds; stop 0: still open
    long long sequence_nr
    long long memory            # while it is open: what the thread had taken when it began; then: what it took
    unsigned long thread
    int kind
    bint asynchronous           # ended by another thread


cdef long long now() noexcept:
    """Return nanoseconds, on the clock of time.perf_counter_ns()."""
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1000000000LL + time.tv_nsec


@cython.final
@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Recorder(Observer):
    """Keeps the events of a thread."""

    cdef Event* events
    cdef Py_ssize_t count, capacity
    cdef Py_ssize_t innermost       # the open event that began last, or -1
    cdef long long taken            # bytes, since the start
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
        global tokens
        cdef Event* larger
        cdef Event* event
        if self.count == self.capacity:
            larger = <Event*>realloc(self.events, (2 * self.capacity + 256) * sizeof(Event))
            if larger is NULL:
                return NULL
            self.events, self.capacity = larger, 2 * self.capacity + 256
        event = &self.events[self.count]
        self.count += 1
        tokens += 1
        Py_INCREF(name)
        event.name, event.operands, event.stack = <PyObject*>name, NULL, NULL
        event.token, event.kind, event.parent, event.thread = tokens, kind, self.innermost, observation().thread
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
        event.sequence_nr, event.memory = sequence_nr, self.taken
        self.innermost = self.count - 1
        event.start = now()
        return event.token

    cdef int end(self, Py_ssize_t token) except -1:
        cdef long long time = now()
        cdef Py_ssize_t index = self.innermost
        while index >= 0 and self.events[index].token != token:
            index = self.events[index].parent
        if index < 0 or self.events[index].stop:
            return 0
        self.events[index].stop, self.events[index].memory = time, self.taken - self.events[index].memory
        self.events[index].asynchronous = observation().observer is not <PyObject*>self
        while self.innermost >= 0 and self.events[self.innermost].stop:
            self.innermost = self.events[self.innermost].parent
        return 0

    cdef int finish(self) except -1:
        while self.innermost >= 0:
            self.end(self.events[self.innermost].token)
        return 0

    cdef void note_memory(self, Py_ssize_t delta) noexcept:
        cdef Event* event
        self.taken += delta
        if self.innermost < 0 and delta:
            event = self.add(MEMORY, "[memory]")
            if event is not NULL:
                event.start = event.stop = now()
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
        global tokens
        shapes = described(operands)[0] if self.with_shapes and operands is not None else None
        self.entered(kinds[kind], name, sequence_nr, shapes)
        tokens += 1
        self.unended.append(tokens)
        return tokens

    cdef int end(self, Py_ssize_t token) except -1:
        if token in self.unended:
            self.unended.remove(token)
            self.left()
        return 0

    cdef int finish(self) except -1:
        while self.unended:
            self.end(self.unended[len(self.unended) - 1])
        return 0
