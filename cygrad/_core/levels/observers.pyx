"""Observers of a thread's work (see observers.pxd for the contract); `profiling` has those that record."""
cimport cython
from cpython.object cimport PyObject

from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport Node, grads_list, last_sequence_nr
from cygrad._core.graph.tensor cimport special_active
from cygrad._core.memory.storage cimport settle_all
from cygrad._kernels.system.allocator cimport memory_observer, observe_memory

cdef extern from "Python.h":
    PyObject* PyThreadState_GetDict() noexcept
    unsigned long PyThread_get_thread_native_id() noexcept

cdef extern from *:
    """
    typedef struct { PyObject *profile, *observer; unsigned long thread; } cg_observation;
    static __thread cg_observation cg_observed;
    static cg_observation *cg_observation_address(void) { return &cg_observed; }
    """
    ctypedef struct Observation "cg_observation":
        PyObject* profile           # of this thread, NULL before its first; the thread's state owns it
        PyObject* observer          # the profile's
        unsigned long thread        # the system's number
    Observation* observation "cg_observation_address"() noexcept

cdef int profiling_threads = 0
cdef Py_ssize_t last_token = 0      # of all threads
cdef int memory_observers = 0


# ----- The observer of this thread -----
@cython.final
cdef class ThreadProfile:
    """The observer of a thread. The thread's state owns it, so it ends with a thread that ends while it is observed."""
    cdef Observer observer
    cdef int run                # of the observer

    cdef void end(self) noexcept:
        if self.observer is not None and self.observer.active and self.run == self.observer.run:
            count_threads(self.observer, -1)
        self.observer = None

    def __dealloc__(self):
        cdef Observation* current = observation()
        if current.profile is <PyObject*>self:       # else of a thread that a fork has left behind
            current.profile = current.observer = NULL
        self.end()


cdef void count_threads(Observer observer, int more) noexcept:
    global profiling_threads, special_active
    observer.threads += more
    profiling_threads += more
    special_active += more


cdef int observe(Observer observer) except -1:
    """Have this thread report to an observer."""
    cdef Observation* current = observation()
    cdef PyObject* state
    cdef ThreadProfile profile
    if current.profile is NULL:
        state = PyThreadState_GetDict()
        if state is NULL:
            raise MemoryError()
        profile = ThreadProfile.__new__(ThreadProfile)
        (<dict>state)[ThreadProfile] = profile
        current.profile = <PyObject*>profile
    settle_all()        # or memory that only pending results keep would be given back in the profile
    profile = <ThreadProfile>current.profile
    profile.end()
    profile.observer, profile.run = observer, observer.run
    if observer.active:
        count_threads(observer, 1)
    current.observer, current.thread = <PyObject*>observer, PyThread_get_thread_native_id()
    return 0


cdef void observe_no_more() noexcept:
    cdef Observation* current = observation()
    current.observer = NULL
    if current.profile is not NULL:
        (<ThreadProfile>current.profile).end()


cdef bint is_profiling() noexcept:
    """Return True if this thread is observed."""
    cdef Observation* current = observation()
    if current.observer is NULL:
        return False
    if not (<Observer>current.observer).active:       # stopped by another thread
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


cdef bint observes_operands() noexcept:
    """Return True if the observer of this thread, if it has one, looks at the operands of events."""
    return profiling_threads and is_profiling() and (<Observer>observation().observer).with_shapes


cdef Py_ssize_t begin_event(object name, tuple operands, long long sequence_nr) except -1:
    """Begin the event of an operator; returns its token. `operands` may be None where no observer reads them."""
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


cdef Py_ssize_t next_token() noexcept:
    """Return a number that no event of any thread has had."""
    global last_token
    last_token += 1
    return last_token


cdef unsigned long thread_number() noexcept:
    """Return the system's number of this thread, which is observed."""
    return observation().thread


cdef bint observes_this_thread(Observer observer) noexcept:
    return observation().observer is <PyObject*>observer


# ----- Observers -----
cdef void memory_changed(Py_ssize_t delta) noexcept:
    cdef Observation* current = observation()
    if current.observer is not NULL and (<Observer>current.observer).with_memory:
        (<Observer>current.observer).note_memory(delta)


cdef void count_memory_observers(int more) noexcept:
    """Have the allocator report each change while an observer counts memory."""
    global memory_observers
    cdef memory_observer none = NULL
    memory_observers += more
    observe_memory(memory_changed if memory_observers else none)


@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Observer:
    """The receiver of a thread's events between start() and stop(); subclasses keep them or pass them on."""

    cdef Py_ssize_t begin(self, int kind, object name, object operands, long long sequence_nr) except -1:
        raise NotImplementedError

    cdef int end(self, Py_ssize_t token) except -1:
        raise NotImplementedError

    cdef int finish(self) except -1:
        """End open events."""
        raise NotImplementedError

    cdef void note_memory(self, Py_ssize_t delta) noexcept:
        """Note that tensors take `delta` bytes more; for observers `with_memory`."""

    def start(self):
        """Observe this thread; RuntimeError if it is observed."""
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
