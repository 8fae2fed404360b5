"""Events of a thread that is observed: operators, nodes of a backward, ranges that users name.

An Observer belongs to one thread, and to threads that compute for it meanwhile. The code that begins an event gets a token and ends the
event by it; 0, and the token of an observer that was stopped meanwhile, end nothing. Needs the GIL.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport overriding, special_active
from cygrad._kernels.programs.settings cimport noting_threads

cdef enum Kind:         # names are in `profiling.recorder`
    OPERATOR = 0        # a public operator
    FUNCTION = 1        # the forward pass of a user's Function
    EVALUATION = 2      # all that a backward does for a node: hooks, the node itself, sums of gradients
    BACKWARD = 3        # the node's computation
    USER = 4            # a range that the user names
    MEMORY = 5          # memory taken or given back outside of all events

cdef class Observer:
    cdef readonly bint active
    cdef readonly bint with_shapes      # asks for the shapes of operands
    cdef bint with_memory
    cdef int threads                    # that report to it
    cdef int run                        # how often it was started
    cdef Py_ssize_t begin(self, int kind, object name, object operands, long long sequence_nr) except -1
    cdef int end(self, Py_ssize_t token) except -1
    cdef int finish(self) except -1
    cdef void note_memory(self, Py_ssize_t delta) noexcept

cdef int profiling_threads      # that are observed; while there are none, no thread looks for its observer

cdef inline bint special_tensors() noexcept:
    """Return True if any tensor may be special: threads that are observed or noted, and classes that override, have operators look, too."""
    return special_active != 0 and special_active != profiling_threads + overriding + noting_threads

cdef bint is_profiling() noexcept
cdef bint observes_operands() noexcept
cdef long long next_sequence_nr() noexcept
cdef Py_ssize_t begin_event(object name, tuple operands, long long sequence_nr) except -1
cdef Py_ssize_t begin_node(int kind, Node node, PyObject** grads) except -1
cdef int end_event(Py_ssize_t token) except -1
cdef Py_ssize_t next_token() noexcept
cdef unsigned long thread_number() noexcept
cdef bint observes_this_thread(Observer observer) noexcept
