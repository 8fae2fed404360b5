"""Element types and the memory of tensors.

A Storage owns its bytes (inside itself when small), or holds a buffer export, or borrows from another Storage.
64 readable and writable bytes follow owned data. The version counts in-place changes, shared by all views; changes through `.data`,
which borrows with a counter of its own, are counted in its high bits, which users do not see. Needs the GIL.
"""
from libc.stdint cimport intptr_t

cdef enum:
    SMALL = 64      # data of up to this many bytes lies in the Storage object itself

cdef extern from "type_slots.h":
    ctypedef struct cg_small:
        char* bytes

cdef class DType:
    cdef readonly str name
    cdef readonly int number
    cdef readonly Py_ssize_t itemsize
    cdef readonly str kind
    cdef readonly bint is_signed
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
    cdef int waiting        # its place among results that are not computed yet (deferred.pxd), from 1; else 0
    cdef cg_small small     # SMALL bytes and the padding

ctypedef void (*forget_function)(Storage storage) noexcept
ctypedef bint (*compute_function)() noexcept

cdef void set_deferred(forget_function forgets, compute_function computes) noexcept
# Whoever gives away an address says so before, and may take it back.
cdef void expose(Storage storage) noexcept
cdef void unexpose(Storage storage) noexcept
cdef list dtypes            # DType by number
cdef int dtype_number(object dtype) except -1
cdef int default_dtype() noexcept
cdef Storage new_storage(size_t nbytes)
cdef Storage storage_of_buffer(object view)
cdef Storage borrow(Storage parent)

cdef enum:
    VISIBLE_BITS = 48       # of a version: those above count changes through `.data`

cdef inline unsigned long long version_of(Storage storage) noexcept:
    """Return the number that every change of the memory makes larger; comparing two of them finds each change in between."""
    return storage.version if not storage.borrowed else storage.version + (<Storage>storage.owner).version

cdef inline Storage owner_of(Storage storage):
    """Return the Storage that the memory belongs to: another one for a borrower."""
    return <Storage>storage.owner if storage.borrowed else storage

cdef inline unsigned long long visible_version(unsigned long long version) noexcept:
    return version & ((1ULL << VISIBLE_BITS) - 1)

cdef inline void count_change(Storage storage) noexcept:
    """Count an in-place change."""
    storage.version += 1
    if storage.borrowed:
        (<Storage>storage.owner).version += 1ULL << VISIBLE_BITS
