"""State of one backward: a record for each node it reaches, and which nodes are ready.

A hash map of its own for each run, so runs nest and meet on one graph. Nodes are borrowed from the graph, which the roots of
the run keep alive; nothing here runs code of the user. Needs the GIL.
"""
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.notes cimport Notes

cdef struct State:
    PyObject* node          # borrowed from the graph, which the roots keep alive
    PyObject** grads        # one for each output; `single` where there is one
    PyObject* single
    int outputs
    int missing             # gradients that will come: edges from nodes that have not run
    int next_edge           # of the walk
    uint64_t priority       # the sequence number: leaves first, since that frees gradients soonest, then the newest node
    bint visited
    bint needed             # leads to an input whose gradient is needed
    bint captured           # some output is asked for
    bint deferred           # it was ready before, and was put behind other nodes
    bint reached            # a gradient has come, or None by a node that is one itself


cdef enum:
    SMALL = 16      # nodes of a run that needs no memory from the heap

# The memory of a small run, on the stack.
cdef struct Space:
    State states[SMALL]
    Py_ssize_t table[2 * SMALL]
    Py_ssize_t heap[SMALL]


cdef struct Run:
    State* states           # of the run's space while there are no more than SMALL, as table and heap are
    Py_ssize_t count, capacity
    Py_ssize_t* table       # open addressing: index of a state + 1
    size_t mask
    Py_ssize_t* heap        # ready states, the newest node first
    Py_ssize_t ready, heap_capacity
    PyObject* evaluating    # the node at work
    PyObject* context       # RunContext, made when it is asked for; owned
    PyObject* gathering     # Gathering, made when it is needed; owned
    Run* outer              # the run that this one is nested in
    int depth               # of nesting on this stack
    uint64_t number
    bint everything         # no inputs were named: all that is reached will run
    bint whole              # that holds for it and those around it
    bint keep_graph         # nodes keep their saved values
    bint between            # the graph ends at the inputs, whose hooks are called by the run around


cdef inline size_t slot_of(size_t mask, PyObject* node) noexcept:
    return (<size_t>node * <size_t>0x9E3779B97F4A7C15 >> 20) & mask


cdef inline Py_ssize_t find_state(Run* run, PyObject* node) noexcept:
    cdef size_t slot
    if run.count == 0:
        return -1
    slot = slot_of(run.mask, node)
    while run.table[slot]:
        if run.states[run.table[slot] - 1].node == node:
            return run.table[slot] - 1
        slot = (slot + 1) & run.mask
    return -1


cdef inline PyObject** grads_of(State* state) noexcept:
    return &state.single if state.grads is NULL else state.grads


cdef void prepare_run(Run* run, Space* space) noexcept
cdef Py_ssize_t state_of(Run* run, PyObject* node) except -1
cdef void free_run(Run* run) noexcept
cdef int push_ready(Run* run, Py_ssize_t index) except -1
# Make a node ready once more, behind all nodes of a higher priority.
cdef int put_off(Run* run, Py_ssize_t index, uint64_t priority) except -1
cdef Py_ssize_t pop_ready(Run* run) noexcept
cdef int walk(Run* run, Py_ssize_t root) except -1
# Note nodes from before the steps that roots reach: in another call they may lead to inputs to which they do not lead now. targets: the
# inputs, as (node, number of its output); accumulates: they get gradients in their `.grad`.
# Note the ids of the nodes, or of their leaves, whose gradients were computed, and whether the nodes ran.
cdef int note_reached(Run* run, dict reached) except -1
cdef int note_history(Notes notes, list roots, list targets, bint accumulates) except -1
