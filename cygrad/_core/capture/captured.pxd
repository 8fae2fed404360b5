"""A captured program: linked steps of notes, and the plan of its memory.

The forward part makes results, the backward part gradients, from the gradients of the results. Bases of a replay: an arena for values that
die in a part, residuals that the backward part reads, constants, then one for each input and each result with memory of its own.
"""
from libc.stdint cimport intptr_t

from cygrad._core.capture.layouts cimport Layout
from cygrad._core.capture.liveness cimport Touches
from cygrad._core.graph.noted_calls cimport Call
from cygrad._core.graph.notes cimport Note, Notes, Slot
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.storage cimport Storage
from cygrad._kernels.programs.kernel cimport kernel_function
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

cdef class Captured:
    cdef readonly str name              # of the function
    cdef Notes notes                    # which own the arguments of kernels
    cdef LinkedStep* steps
    cdef Kernel* kernels
    cdef Address* addresses
    cdef int address_count
    cdef int inputs                     # of the forward part; the gradients of results are further ones
    cdef int bases, first_own           # how many there are; the first one behind the inputs
    cdef list input_bases               # of the inputs, and of the gradients of results
    cdef list sizes                     # bytes of the bases behind the inputs
    cdef list late                      # of these, whether memory is made when it is first touched
    cdef dict places                    # stop -> (bases, offsets) of its tensors
    cdef list groups                    # of StepGroup
    cdef size_t residual_bytes, scratch_bytes
    cdef readonly Py_ssize_t argument_sets      # different arguments of kernels: equal ones are one, and stay in the caches
    cdef Storage constants
    cdef Part forward_part, backward_part
    cdef list calls
    cdef readonly tuple reads_forward, reads_back       # bases that a part reads
    cdef public frozenset saved_by_functions    # numbers of inputs
    cdef public list changes, changes_back      # (number of an input or gradient, how often a part changes it)
    cdef readonly tuple written, written_back   # numbers of the inputs that a part writes
    cdef readonly tuple recorded        # numbers of the results that require gradients
    cdef readonly tuple watched         # numbers of the results with memory of their own, whose versions a backward compares
    cdef readonly tuple result_bases    # of these
    cdef public tuple released          # numbers of the results whose history a backward of the program frees
    cdef list gradients                 # layouts of gradients that the backward part reads: of these, then of sums; None: it needs none
    cdef public tuple read_often        # (edge, number of an input): of gradients with several parts, which are added to sums one by one
    cdef public tuple nested            # numbers of the recorded results that other recorded ones are computed from
    cdef public bint runs_backward      # the forward part has a backward of the engine in it
    cdef public tuple reached           # (number, whether the node ran) of the inputs that it has reached
    cdef public object guards           # of values that code in the backward part names
    cdef public object frees            # the values that a backward frees which does not keep the graph, as numbers; None: all
    cdef readonly list others           # programs of further backward parts, for gradients of other layouts; None: there is none
    cdef int take_places(self, Captured before) except -1
    cdef int plan(self, list inputs, list results, list back, Captured before) except -1
    cdef str step_name(self, Py_ssize_t k)
    cdef int number_bases(self, int count, Captured before) except -1
    cdef int place_inputs(self, list inputs) except -1
    cdef tuple place_outside(self, int number, list inputs)
    cdef int place_constants(self) except -1
    cdef Layout place_result(self, TensorImpl tensor, list inputs)
    cdef int place_rest(self, Touches touches) except -1
    cdef int link(self) except -1
    cdef int link_note(self, Note* note, LinkedStep* step, dict arguments, dict kernels, dict loops) except -1
    cdef int link_kernel(self, LinkedStep* step, kernel_function run, void* arguments, size_t argument_bytes, int outcome,
                         dict known) except -1
    cdef int link_addresses(self, LinkedStep* step, list places) except -1
    cdef int run_over_end(self, const Note* note) except -1
    cdef bint link_places(self, const Note* note, LinkedStep* step, int kind) noexcept
    cdef int lay_out(self, Call call) except -1
    cdef int find_writes(self, Part part) except -1
    cdef int add_write(self, Part part, Py_ssize_t k, int number, dict written) except -1
    cdef int find_shared(self, Captured before) except -1
    cdef set slots_of_results(self, list results)
    cdef list bases_in(self, Part part, Touches touches)
    cdef int find_stops(self, Part part, Touches touches) except -1
    cdef int add_base(self, Slot* slot, bint late) except -1

# Of a slot: in whole cache lines.
cdef size_t rounded(size_t nbytes) noexcept
# Fill new memory of a replay, in tests.
cdef void fill_arena(char* data, size_t nbytes) noexcept
