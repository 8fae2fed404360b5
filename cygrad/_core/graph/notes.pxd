"""Notes: the steps of a thread, in the form in which a program of them can be made (`capture.captured`).

A step is a launch, a decision by values, or a call of an operator that looks at values itself. Its tensors are places in slots: one slot
is the memory of one Storage. Slots keep only memory alive that was there before: `Storage.note` has the number of
a slot, and dies with the memory. Code outside of such calls that looks at values makes notes useless (memory.looks).
"""
from libc.stdint cimport intptr_t

from cygrad._core.graph.launches cimport Launch, Traits
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.looks cimport Looks
from cygrad._core.memory.storage cimport Storage
from cygrad._kernels.programs.kernel cimport MAX_TENSORS, kernel_function

cdef enum StepKind:
    LAUNCH
    DECISION        # a launch with an outcome, which must be the same again
    CALL            # of an operator, in `calls`

cdef enum Origin:
    FRESH           # made while notes were taken
    OUTSIDE         # there before
    CONSTANT        # fresh, with values that Python has written: the same each time

cdef const char* NUMBER     # the name of decisions by a number that code of Python gets

cdef struct Place:
    int slot
    intptr_t offset     # bytes
    intptr_t first, end     # bytes of the slot that the step touches

cdef struct Note:
    const char* name
    kernel_function run
    void* arguments
    size_t argument_bytes
    bint borrowed       # the arguments are of an earlier step, or of `owners`
    int kind, count
    int outcome         # of a decision; the number of a call
    const Traits* traits
    unsigned written
    Place places[MAX_TENSORS]

cdef struct Slot:
    Origin origin
    size_t nbytes
    intptr_t first, end     # bytes that steps touch
    int met                 # the number of notes when it was met first
    bint written            # by a step
    bint lost               # written by a call that was dropped: its values are not known
    # The plan of a program (`capture.captured`).
    bint shared             # touched by steps whose results may be pending: it has a base of its own
    bint placed             # it has a base
    bint lasting            # the value lives until the backward part, or after a call
    int base
    intptr_t offset         # of its first byte in the base
    int uses                # how many steps touch it,
    Py_ssize_t first_step, last_step    # the first and the last of them; -1: there is none

cdef class Notes:
    cdef Note* notes
    cdef Slot* slots
    cdef Py_ssize_t room, slot_room
    cdef readonly Py_ssize_t count, slot_count
    cdef Py_ssize_t forgotten_slots         # the first ones: steps that were forgotten have made their values
    cdef unsigned long long number          # of these notes, in the upper half of `Storage.note`
    cdef dict outside                       # number of slot: Storage that was there before
    cdef dict constants                     # number of slot: bytes
    cdef list thawed                        # (Storage, its `note` before, the step that copies it): of constants that steps write
    cdef list owners, calls
    cdef dict gradients                     # number of a tensor: the tensor, and its .grad before the first change
    cdef dict leaves                        # number of a tensor: the tensor, and its requires_grad before the user's steps set that
    cdef dict by_address                    # of storages from outside: number of slot
    cdef readonly bint failed               # a kernel, or a note, found no memory
    cdef readonly Py_ssize_t first_message  # the number of steps before the first message to other processes; -1: there is none
    cdef public bint has_numbers            # objects in place of numbers of steps, which have another class
    cdef public bint ran_backward           # of the engine, which has left no result pending
    cdef readonly dict reached              # ids of the nodes, or leaves, that such backwards have reached: whether they ran
    cdef public bint ran_history_outside    # such a backward has reached a node from before, of no leaf
    cdef readonly list independent_histories        # such nodes of inputs, of which none leads to another one
    cdef readonly bint repeats              # these steps run besides the call of the user: nothing outside may see them
    cdef Py_ssize_t first_repeated          # the number of slots before
    cdef dict flags                         # number of a tensor: the tensor, and its requires_grad before a repeated step has set that
    cdef list handles                       # of hooks that repeated steps have registered
    cdef Py_ssize_t flags_before_backward, handles_before_backward
    cdef readonly bint changes_tensors      # steps of a repeated backward have changed tensors other than by values and gradients
    cdef dict before_gradients              # number of a tensor: its .grad before the repeated steps, if that had changed already
    cdef readonly dict replaced             # number of a tensor that got other memory, or another shape: (file, line) of the first time
    cdef readonly list hooks                # that were registered
    cdef readonly list arrays               # of NumPy's that were read as constants
    cdef readonly list patterns             # of sparse tensors, that were made
    cdef readonly list places               # tensors from outside whose elements are places of a pattern
    cdef readonly dict generators           # that random numbers were drawn from: their positions before
    cdef public bint hooks_outside          # one of them on a node from before, or on a leaf, for after its gradient is added to
    cdef dict before                        # (Storage, version, bytes) by id: memory that steps have changed, where that is kept
    cdef readonly Looks looks               # that are part of no call
    cdef readonly dict part_copies          # (memory.writes); None: a part at a place that a tensor names is a view, for this place alone
    cdef object outer
    cdef int new_slot(self, Origin origin, size_t nbytes) except -1
    cdef int slot_of(self, Storage storage, bint reads) except -1
    cdef bint is_fresh(self, Storage storage) noexcept
    cdef bint is_from_before(self, Storage owner) noexcept
    cdef int number_of(self, Storage storage)
    cdef int keep_value(self, Storage storage) except -1
    cdef int check_array(self, int number, Storage storage, bint writes) except -1
    cdef int add_place(self, Place* place, TensorImpl tensor, char* data, bint reads, bint writes) except -1
    cdef Note* next_note(self) except NULL
    cdef int add(self, const Launch* launch, char** data, int kind, int outcome) except -1
    cdef bint refuses_numbers(self, Py_ssize_t first) except -1
    cdef void forget_tensors(self)
    cdef void free_steps(self, Py_ssize_t count)
    cdef int drop(self, Py_ssize_t count) except -1
    cdef int freeze(self, Py_ssize_t count) except -1
    cdef int check_values(self, Storage storage) except -1
    cdef int thaw(self, TensorImpl tensor) except -1
    cdef int copy_constant(self, int number, size_t nbytes) except -1

# Return memory of the same items in which there is room for one more.
cdef void* with_room(void* items, Py_ssize_t count, Py_ssize_t* room, size_t itemsize) except NULL
cpdef Notes current_notes()
cpdef bint is_noting() noexcept
cdef void note_launch(const Launch* launch, char** data, int kind, int outcome) noexcept
cdef int note_constant(TensorImpl tensor, object frame) except -1
cdef int note_gradient(TensorImpl tensor) except -1
cdef dict part_copies_of_notes()
cpdef int note_array(object array) except -1
cpdef TensorImpl note_array_below(TensorImpl tensor, object array)
cdef int note_replacement(TensorImpl tensor) except -1
cdef int note_flags(TensorImpl tensor) except -1
cdef int refuse_repeated_history(TensorImpl tensor) except -1
