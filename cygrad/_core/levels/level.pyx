"""Levels: of forward mode and of vmap, one inside the other (see level.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc

from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.tensor cimport BATCHED, TensorImpl, needs_grad, special_active
from cygrad._core.levels.batches cimport Batch, batch_of, enter, is_special, leave
from cygrad._core.levels.tangents cimport Dual, unlink_dual

cdef extern from *:
    """
    static __thread void *cg_hidden;
    static void **cg_hidden_address(void) { return &cg_hidden; }
    static __thread void *cg_innermost;
    static void **cg_innermost_address(void) { return &cg_innermost; }
    """
    void** cg_hidden_address() noexcept nogil
    void** cg_innermost_address() noexcept nogil

cdef unsigned long long last_number = 0     # no number is given twice, so objects that outlive their level are found


cdef void hide(Hidden* hidden, Level level) noexcept:
    put_in_front(hidden, level.number, last_number, False)


cdef void put_in_front(Hidden* hidden, unsigned long long first, unsigned long long last, bint is_shown) noexcept:
    hidden.first, hidden.last, hidden.is_shown, hidden.outer = first, last, is_shown, <Hidden*>cg_hidden_address()[0]
    cg_hidden_address()[0] = hidden


cdef void show(Hidden* hidden) noexcept:
    cg_hidden_address()[0] = hidden.outer


cdef bint is_active(Level level) noexcept:
    """Return True if a level is in progress, or has been resumed by this thread."""
    return level.active or level.resumed_by == <void*>cg_innermost_address()


cdef bint is_hidden(Level level) noexcept:
    cdef Hidden* hidden = <Hidden*>cg_hidden_address()[0]
    while hidden is not NULL:
        if hidden.first <= level.number <= hidden.last:
            return not hidden.is_shown
        hidden = hidden.outer
    return False


cdef bint is_visible(Level level) noexcept:
    return not is_hidden(level) and (not level.recorded or level.in_backward or grad_mode()[0])


@cython.final
@cython.binding(False)
cdef class out_of_sight:
    """Compute in this thread as lower levels see it, within a `with` statement."""
    cdef Hidden hidden
    cdef Level level

    def __init__(self, Level level not None):
        self.level = level

    def __enter__(self):
        hide(&self.hidden, self.level)

    def __exit__(self, kind, error, traceback):
        show(&self.hidden)


@cython.final
@cython.binding(False)
cdef class tangents_seen:
    """Have this thread see the tangents of levels, or not, within a `with` statement."""
    cdef Hidden* entries
    cdef tuple levels       # of forward mode
    cdef bint is_shown

    def __cinit__(self, tuple levels not None, bint is_shown):
        self.levels, self.is_shown = tuple([level for level in levels if (<Level?>level).size < 0]), is_shown
        self.entries = <Hidden*>malloc((len(self.levels) + 1) * sizeof(Hidden))
        if self.entries is NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.entries)

    def __enter__(self):
        cdef Level level
        cdef Py_ssize_t k
        for k, level in enumerate(self.levels):
            put_in_front(&self.entries[k], level.number, level.number, self.is_shown)

    def __exit__(self, kind, error, traceback):
        if self.levels:
            show(self.entries)


@cython.final
@cython.binding(False)
cdef class outside_of_levels:
    """Compute in this thread as if no level were in progress, within a `with` statement."""
    cdef Level innermost

    def __enter__(self):
        self.innermost = innermost_level()
        cg_innermost_address()[0] = NULL

    def __exit__(self, kind, error, traceback):
        cdef Level level = innermost_level()
        if level is None:
            cg_innermost_address()[0] = <void*>self.innermost if self.innermost is not None else NULL
            return
        while level.outer is not None:      # a generator has begun a level and not ended it
            level = level.outer
        level.outer = self.innermost


@cython.final
@cython.binding(False)
cdef class Level:
    """A forward-mode differentiation, or a vmap, in progress."""

    def enter(self, TensorImpl tensor not None):
        """Return all examples of a tensor along a new dim 0; one that is the same for all is repeated without a copy."""
        return enter(tensor, self)

    def leave(self, TensorImpl tensor not None):
        """Return the tensor that stands for one of the examples along dim 0."""
        return leave(tensor, self)

    def holds(self, tensor):
        """Return True if an object is a tensor that stands for one of several examples of this level."""
        cdef TensorImpl item
        if not isinstance(tensor, TensorImpl):
            return False
        item = tensor
        while item.flags & BATCHED:
            if batch_of(item).level is self:
                return True
            item = (<Batch>item.special).inner
        return False

    def is_active(self):
        """Return True if the level is in progress, or has been resumed by this thread."""
        return is_active(self)

    def shows_tangents(self):
        """Return True if this thread sees the tangents of the level, which has not ended."""
        return self.size < 0 and self.active and is_visible(self)

    def differentiate_backward(self):
        """Show tangents from now on whether grad mode is on or off: a backward runs, recorded or not."""
        self.in_backward = True

    def varies(self, TensorImpl tensor not None):
        """Return True if a tensor differs among examples, or something of it may: its gradient, or a tangent."""
        return self.holds(tensor) or needs_grad(tensor) or is_special(tensor)

    def __repr__(self):
        kind = "forward mode" if self.size < 0 else f"vmap over {self.size}"
        return f"<level {self.number}: {kind}{'' if self.active else ', ended'}>"


def innermost_level():
    """Return the innermost level of this thread, or None."""
    drop_ended()
    cdef void* level = cg_innermost_address()[0]
    return <object>level if level is not NULL else None


cpdef tuple active_levels():
    """Return the levels of this thread that are in sight, the outermost first."""
    cdef list levels = []
    if cg_innermost_address()[0] is NULL:
        return ()
    level = innermost_level()
    while level is not None:
        if not is_hidden(level):
            levels.insert(0, level)
        level = (<Level>level).outer
    return tuple(levels)


def enter_level(Py_ssize_t size=-1, randomness=None, bint recorded=False):
    """Begin a level: of forward mode, or a vmap over `size` examples."""
    global last_number, special_active
    cdef Level level = Level.__new__(Level)
    last_number += 1
    level.number, level.size, level.randomness, level.outer, level.active = last_number, size, randomness, innermost_level(), True
    level.recorded = recorded
    special_active += 1
    Py_INCREF(level)
    cg_innermost_address()[0] = <void*>level
    return level


def resume_level(Level level not None):
    """Have a level that has ended go on in this thread, as its innermost one, until `exit_level`; its tangents are gone."""
    global special_active
    if level.active:
        raise RuntimeError(f"{level!r} cannot be resumed")
    level.outer, level.resumed_by = innermost_level(), <void*>cg_innermost_address()
    special_active += 1
    Py_INCREF(level)
    cg_innermost_address()[0] = <void*>level


def exit_level(Level level not None):
    """End a level, and with it the tangents that belong to it: usually the innermost one; a generator may end one later, or elsewhere."""
    global special_active
    cdef Dual dual
    if not is_active(level):
        raise RuntimeError(f"{level!r} has ended before")
    level.active, level.resumed_by = False, NULL
    special_active -= 1
    drop_ended()
    # Destructors may run anything, so the list is read anew each time. Nothing is allocated: a level ends even without memory.
    while level.duals is not NULL:
        dual = <Dual>level.duals
        unlink_dual(dual)
        dual.tangent = None


cdef int drop_ended() except -1:
    """Forget this thread's innermost levels that have ended."""
    cdef void** innermost = cg_innermost_address()
    cdef Level level
    while innermost[0] is not NULL and not is_active(<Level>innermost[0]):
        level = <Level>innermost[0]
        innermost[0] = <void*>level.outer if level.outer is not None else NULL
        Py_XDECREF(<PyObject*>level)
    return 0
