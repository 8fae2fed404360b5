"""Notes: the launches of a thread, which can run again on the same memory when it has other values.

A note has the function, a copy of its arguments, and the places of its tensors: storage and offset. Nothing is pending meanwhile, no
formula is fused, and storages stay alive, so that none is used again for something else.

A replay computes the values that the noted code would compute, if nothing but launches read the memory: `looks` counts decisions by values
and memory that was given away, to NumPy as well; code that looks has to run again.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.launches cimport MAX_TENSORS, Launch, kernel_function
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.storage cimport Storage, owner_of, settle_all

cdef extern from *:
    """
    static __thread void *cg_notes;
    static void **cg_notes_place(void) { return &cg_notes; }
    """
    void** cg_notes_place() noexcept nogil

cdef enum:
    NAN_BYTE = 0xff

cdef struct Note:
    kernel_function run
    void* arguments
    size_t argument_bytes
    int count
    int slots[MAX_TENSORS]
    intptr_t offsets[MAX_TENSORS]


@cython.final
@cython.binding(False)
cdef class Notes:
    """Notes in a `with` statement; they may be nested, and the innermost ones note."""
    cdef Note* notes
    cdef Py_ssize_t count, room
    cdef list storages, owners      # by slot; objects that arguments point into
    cdef dict slots                 # by the address of a storage
    cdef set read_first             # slots that have values from outside
    cdef readonly bint failed       # a kernel, or a note, found no memory
    cdef readonly long long looks
    cdef object outer

    def __cinit__(self):
        self.storages, self.owners, self.slots, self.read_first = [], [], {}, set()

    def __dealloc__(self):
        cdef Py_ssize_t k
        for k in range(self.count):
            free(self.notes[k].arguments)
        free(self.notes)

    def __len__(self):
        return self.count

    def __enter__(self):
        settle_all()
        settings.count_noting(1)
        self.outer = <object>cg_notes_place()[0] if cg_notes_place()[0] is not NULL else None
        self.looks -= settings.looks
        Py_INCREF(self)
        cg_notes_place()[0] = <void*>self
        return self

    def __exit__(self, *_):
        self.looks += settings.looks
        cg_notes_place()[0] = NULL if self.outer is None else <void*>self.outer
        settings.count_noting(-1)
        Py_XDECREF(<PyObject*>self)

    cdef bint add(self, const Launch* launch, char** data) except -1:
        cdef Note* note
        cdef Storage storage
        cdef int k
        if self.count == self.room:
            note = <Note*>realloc(self.notes, (2 * self.room + 16) * sizeof(Note))
            if note is NULL:
                raise MemoryError()
            self.notes, self.room = note, 2 * self.room + 16
        note = &self.notes[self.count]
        note.run, note.count, note.argument_bytes = launch.run, launch.count, launch.argument_bytes
        for k in range(launch.count):
            storage = owner_of((<TensorImpl>launch.tensors[k]).storage)
            note.slots[k] = self.slot_of(storage, launch.read >> k & 1)
            note.offsets[k] = data[k] - storage.data
        if launch.owner is not NULL:
            self.owners.append(<object>launch.owner)
        note.arguments = malloc(launch.argument_bytes)
        if note.arguments is NULL:
            raise MemoryError()
        memcpy(note.arguments, launch.arguments, launch.argument_bytes)
        self.count += 1
        return True

    cdef int slot_of(self, Storage storage, bint reads) except -1:
        slot = self.slots.get(<size_t><void*>storage)
        if slot is None:
            slot = self.slots[<size_t><void*>storage] = len(self.storages)
            self.storages.append(storage)
            if reads:
                self.read_first.add(slot)
        if storage.exports:         # read and written unseen
            settings.looks += 1
        return slot

    def replay(self):
        """Run all noted kernels again, on the same memory; memory that was written first is full of NaN before."""
        cdef Storage storage
        cdef Note* note
        cdef char* data[MAX_TENSORS]
        cdef void* arguments = NULL
        cdef size_t largest = 1
        cdef Py_ssize_t k
        cdef int j
        if self.failed:
            raise RuntimeError("a kernel or its note found no memory: there is nothing to replay")
        settle_all()
        for k in range(self.count):
            largest = max(largest, self.notes[k].argument_bytes)
        arguments = malloc(largest)
        if arguments is NULL:
            raise MemoryError()
        for slot, storage in enumerate(self.storages):
            if slot not in self.read_first:
                memset(storage.data, NAN_BYTE, storage.nbytes)
        for k in range(self.count):
            note = &self.notes[k]
            for j in range(note.count):
                data[j] = (<Storage>self.storages[note.slots[j]]).data + note.offsets[j]
            memcpy(arguments, note.arguments, note.argument_bytes)
            if note.run(arguments, data):
                free(arguments)
                raise MemoryError("a kernel found no memory")
        free(arguments)


cdef void note_launch(const Launch* launch, char** data) noexcept:
    cdef Notes notes
    if cg_notes_place()[0] is NULL:
        return
    notes = <Notes>cg_notes_place()[0]
    try:
        notes.add(launch, data)
    except MemoryError:
        notes.failed = True
