"""Pending programs: of results that are not computed yet, marked on the memory that they compute or read.

Each thread of Python has a program of its own that it adds to. The Storage of a pending result is marked with its program, and the memory
that a program reads is marked as read: code that reads the memory of tensors asks `value_address` for it, code that writes there
`address`, which run the programs. Needs the GIL.

Programs run without the GIL where that is safe, and under their lock: another thread that needs a result waits for it. The thread that
runs a program releases the lock before it takes the GIL, so others may wait with the GIL held.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.storage cimport Storage
from cygrad._kernels.drivers.elementwise cimport MAX_OPERANDS, MAX_PARAMS, cg_number
from cygrad._kernels.programs.running cimport Plan
from cygrad._kernels.programs.steps cimport MAX_REPEATED, MAX_SLOTS, Program

cdef extern from "Python.h":
    ctypedef void* PyThread_type_lock

cdef enum:
    MAX_ARRAYS = 32         # that are read and written side by side, and so values that live at one time: fewer than MAX_BLOCKS

cdef class Pending:
    cdef Program program
    cdef unsigned long thread           # of Python, whose operators it has
    cdef int count                      # of pending results
    cdef int arrays                     # slots that are whole arrays
    cdef int total_slot                 # the slot of a result that is a reduction of all elements of another one; NONE
    cdef Storage partials               # memory for its partial results, and for numbers
    cdef int reduced_slot               # the slot of a result that was reduced, and will be computed if it is needed again; NONE
    cdef PyObject* owners[MAX_SLOTS]    # the Storage of an array: a reference, but borrowed from a pending result
    cdef bint is_pending[MAX_SLOTS]     # the slot is the memory of a pending result
    cdef bint contracts[MAX_SLOTS]      # its sum may be a product of matrices
    cdef cg_number constants[MAX_REPEATED + MAX_OPERANDS]
    cdef int constant_count
    cdef cg_number parameters[MAX_SLOTS][MAX_PARAMS]    # of the step whose output a slot is
    cdef Program needed                 # the steps of a run, from `find_needed` to its end: nothing between may run code of Python
    cdef Plan plan                      # of these
    cdef PyObject* next                 # in the list of all
    cdef PyThread_type_lock lock        # locked while the program runs without the GIL
    cdef bint running                   # it does, or did: a thread that has the GIL finishes it
    cdef int runs                       # how many times
    cdef int remaining, failed          # the slot that the run leaves pending, or NONE; its outcome

    cdef void begin(self, int ndim, const intptr_t* shape) noexcept
    cdef cg_number* constant(self, const cg_number* number, int dtype) noexcept
    cdef bint takes_step(self, int ndim, const intptr_t* shape, int count) noexcept
    cdef int slot_of(self, TensorImpl tensor) noexcept
    cdef bint is_whole(self, TensorImpl tensor) noexcept
    cdef void add_result(self, TensorImpl result, int slot) noexcept
    cdef void find_needed(self, int left) noexcept
    cdef void finish_run(self) noexcept
    cdef void clear(self) noexcept
    cdef void leave(self, int slot) noexcept

cdef PyObject* first_pending        # of all programs that have pending results; NULL
# The program that this thread adds to, or None.
cdef Pending own_program()
# Run the plan with or without the GIL; `memory`: see `run_program`. One slot may remain pending (else NONE). -1: out of memory.
cdef int run(Pending pending, char* memory, int remaining, bint release) noexcept
# Run the steps of all pending results but one, which remains pending; NONE: of all.
cdef void run_needed(Pending pending, int remaining, bint release) noexcept
# Run a program, or wait until another thread has run it. `release`: without the GIL, so other threads may change tensors.
cdef void run_or_wait(Pending pending, bint release) noexcept
cdef void run_own_program() noexcept
# Run the programs that compute memory, without the GIL.
cdef void compute_memory(Storage storage) noexcept
