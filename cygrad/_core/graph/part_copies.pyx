"""Copies in place of views (see part_copies.pxd for the contract)."""
cimport cython

from cygrad._core.memory.storage cimport owner_of


@cython.final
@cython.binding(False)
cdef class PartCopies:
    """The copies that were made while some notes were taken."""

    def __cinit__(self):
        self.copies = {}

    cdef int add(self, TensorImpl copy, TensorImpl whole) except -1:
        cdef Storage storage = owner_of(copy.storage), source = owner_of(whole.storage)
        self.copies[id(storage)] = storage, *self.copies.get(id(source), (None, source, source.version))[1:]
        storage.readonly = True
        return 0

    cdef bint is_stale(self, Storage storage) except -1:
        cdef Storage source
        if id(storage) not in self.copies:
            return False
        source = self.copies[id(storage)][1]
        return source.version != self.copies[id(storage)][2]

    def has(self, TensorImpl tensor not None):
        """Return True for a copy."""
        return id(owner_of(tensor.storage)) in self.copies
