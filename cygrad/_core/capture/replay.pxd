"""A captured program: linked steps of notes, the plan of its memory, and its replays.

The forward part makes results, the backward part gradients, from the gradients of the results. Bases of a replay: an arena for values that
die in a part, residuals that the backward part reads, constants, then one for each input and each result with memory of its own.
A replay gives up before anything that others see has changed: where a decision has another outcome, a call other results, or memory is
missing. Threads may run one program side by side.
"""
from cygrad._core.capture.layouts cimport Layout
from cygrad._core.graph.notes cimport Call, Note, Notes
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.storage cimport Storage
from cygrad._kernels.programs.linked cimport Address, Kernel, LinkedStep

cdef enum:
    ARENA = 0
    RESIDUALS = 1
    CONSTANTS = 2
    FIRST_INPUT = 3

cdef class Part:
    """The forward or the backward part of a program."""
    cdef Py_ssize_t first, end          # steps
    cdef size_t arena_bytes
    cdef list results                   # of Layout or None
    cdef list arenas                    # free ones, of small programs
    cdef list early                     # bases whose memory is made first
    cdef list writes                    # (number of an input, first byte, end): memory that others see
    cdef bint restores                  # a step after the first such write may fail, or many follow
    cdef Py_ssize_t interruptible       # the step up to which signals are looked for: memory is as it was then, or restored
    cdef list stops                     # steps that are more than a kernel: calls, and steps that share memory with pending results
    cdef dict deaths                    # step -> bases whose memory no later step touches

cdef class Replay:
    cdef Notes notes                    # which own the arguments of kernels
    cdef LinkedStep* steps
    cdef Kernel* kernels
    cdef Address* addresses
    cdef int address_count
    cdef int inputs                     # of the forward part; the gradients of results are further ones
    cdef int bases, first_own           # how many there are; the first one behind the inputs
    cdef list sizes                     # bytes of the bases behind the inputs
    cdef list late                      # of these, whether memory is made when it is first touched
    cdef dict places                    # stop -> (bases, offsets) of its tensors
    cdef set shared                     # slots that steps whose results may be pending touch: each has a base of its own
    cdef size_t residual_bytes, scratch_bytes
    cdef Storage constants
    cdef Part forward_part, backward_part
    cdef list calls
    cdef readonly tuple reads_back      # bases that the backward part reads
    cdef readonly tuple written         # numbers of the inputs that the forward part writes
    cdef readonly tuple recorded        # numbers of the results that require gradients
    cdef readonly tuple result_bases    # of these
    cdef int plan(self, list inputs, list results, list back) except -1
    cdef list slots_of(self, Py_ssize_t k)
    cdef tuple base_of_outside(self, int number, list inputs)
    cdef int place_constants(self, list bases) except -1
    cdef Layout place_result(self, TensorImpl tensor, list inputs, list bases)
    cdef int place_rest(self, list bases, list first, list last, list used) except -1
    cdef int link(self, list bases) except -1
    cdef bint link_loop(self, Note* note, LinkedStep* step, list bases) except -1
    cdef int lay_out(self, Call call, list bases) except -1
    cdef int find_writes(self, Part part, list bases) except -1
    cdef list results_of(self, Part part, list inputs, list storages)
    cdef int find_shared(self, list used) except -1
    cdef int find_stops(self, Part part, list used, list last, list bases) except -1
    cdef int run_kernels(self, Part part, Py_ssize_t first, Py_ssize_t end, char** pointers, void* scratch, bint released) except -1
    cdef int run_stop(self, Part part, Py_ssize_t k, object dying, list storages, char** pointers, void* scratch) except -1
    cdef int run_touching(self, Part part, Py_ssize_t k, list storages, char** pointers, void* scratch) except -1
    cdef int run_again(self, Py_ssize_t k, object dying, list storages, char** pointers) except -1
    cdef Storage storage_of_base(self, int base, list storages, char** pointers)
    cdef int run_call(self, Call call, list storages, char** pointers) except -1
    cdef int add_base(self, int number, bint late, list bases) except -1
    cdef list run_forward(self, list inputs, list state)
    cdef list run_backward(self, list inputs, list state, list gradients)
    cdef list run(self, Part part, list inputs, list storages, char** pointers)
