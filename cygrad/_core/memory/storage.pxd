"""Element types and the memory of tensors.

A Storage owns its bytes (inside itself when small), or holds a buffer export, or borrows from another Storage.
64 readable and writable bytes follow owned data. The version counts in-place changes, shared by all views. `.data` and `set_` borrow
memory with a counter of their own; while there are several, the high bits of the owner's, which users do not see, count the changes
through all of them, and writes.pxd has the places of writes. Needs the GIL.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.memory.upward cimport upward

cdef enum:
    SMALL = 64      # data of up to this many bytes lies in the Storage object itself

cdef extern from "memory/type_slots.h":
    ctypedef struct cg_small:
        char* bytes

cdef class DType:
    cdef readonly str name
    cdef readonly int number
    cdef readonly Py_ssize_t itemsize
    cdef readonly str kind
    cdef readonly bint is_signed
    cdef readonly bint is_floating_point
    cdef readonly bint is_complex
    cdef readonly bint is_integer           # bools are not counted among them
    cdef readonly bint is_differentiable    # the numbers are real or complex: its tensors may need gradients
    cdef readonly DType loops               # that is computed in: itself, but for 16-bit floats and large unsigned integers
    cdef bytes buffer_code

cdef class Storage:
    cdef char* data
    cdef readonly size_t nbytes
    cdef unsigned long long version
    cdef bint padded        # owned, hence followed by padding
    cdef bint borrowed      # from another Storage
    cdef readonly bint readonly
    cdef object owner       # a memoryview (foreign memory), another Storage (borrowed), or None
    cdef int exports        # NumPy arrays and others that can reach the memory without asking
    cdef int marks          # pending programs that compute the memory (at most one) or read it
    cdef PyObject* program  # that computes it, else NULL
    cdef unsigned long long note    # of memory made while notes are taken: their number, and its slot (graph.notes)
    cdef int counters       # besides its own that count changes of the memory: living borrowers of an owner; 1 of a borrower
    cdef void* writes       # of an owner: where and when its memory was written under several counters (writes.pxd), or NULL
    cdef cg_small small     # SMALL bytes and the padding

cdef inline void settle(Storage storage) noexcept:
    """Run the pending programs that compute or read memory: before it is changed, or given away."""
    if storage.marks:
        upward.run_pending(storage, True)

cdef inline void settle_value(Storage storage) noexcept:
    """Run the pending program that computes memory: before it is read."""
    if storage.program is not NULL:
        upward.run_pending(storage, False)

cdef void settle_all() noexcept
cdef unsigned long long* noting_number() noexcept       # of the notes that this thread takes; 0: none

# Code that gives away an address calls this before, and may take it back.
cdef void expose(Storage storage) noexcept
cdef void unexpose(Storage storage) noexcept
cdef list dtypes            # DType by number
cdef int dtype_number(object dtype) except -1
cdef int default_dtype() noexcept
cdef Storage new_storage(size_t nbytes)
cdef Storage storage_of_buffer(object view)
cdef Storage borrow(Storage parent)

cdef enum:
    VISIBLE_BITS = 40       # of a version: those above count changes under several counters

cdef inline unsigned long long version_of(Storage storage) noexcept:
    """Return a number that every change of the memory changes, whichever counter it goes to."""
    return storage.version if not storage.borrowed else storage.version + ((<Storage>storage.owner).version >> VISIBLE_BITS << VISIBLE_BITS)

cdef inline bint is_foreign(Storage storage):
    """Return True for memory of NumPy or another library."""
    return storage.owner is not None and not isinstance(storage.owner, Storage)

cdef inline Storage owner_of(Storage storage):
    """Return the Storage that the memory belongs to: another one for a borrower."""
    return <Storage>storage.owner if storage.borrowed else storage

cdef inline unsigned long long visible_version(unsigned long long version) noexcept:
    return version & ((1ULL << VISIBLE_BITS) - 1)
