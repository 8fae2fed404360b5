"""Overrides of operators (see overrides.pxd for the contract)."""
cimport cython

from cygrad._core.graph cimport tensor as tensors
from cygrad._core.memory.upward cimport upward


cdef object ask(object operator, tuple arguments, dict keywords):
    """Return the answer of the classes and modes that have a say in a call; NotImplemented if there are none."""
    return NotImplemented if upward.override is None else upward.override(operator, arguments, keywords)


cdef object sparse_result(object operator, tuple arguments, dict keywords):
    return upward.override(operator, arguments, keywords, True)


cdef int exchange_overrides_off(int off) noexcept:
    """Set the classes that this thread asks (0: all, 1: modes alone, 2: none; below 0: as they are), and return the setting before."""
    global cg_overrides_off
    cdef int before = cg_overrides_off
    if off >= 0:
        cg_overrides_off = off
    return before


def _overrides_off():
    """Return the classes that this thread asks: 0: all, 1: modes alone, 2: nothing."""
    return cg_overrides_off


def _set_overrides_off(int off):
    """Set the classes that this thread asks, and return the setting before: a backward asks none, a function that it runs again does."""
    return exchange_overrides_off(off)


def _count_function_modes(int more):
    """Note that this thread enters a mode of functions, or leaves one."""
    global cg_function_modes
    cg_function_modes += more
    tensors.overriding += more
    tensors.special_active += more


@cython.binding(False)
cdef class overrides_off:
    """Compute in this thread as with plain tensors, within a `with` statement; 2 leaves modes out, too. Leaving allocates nothing."""
    cdef int off
    cdef tuple outside      # (the setting before, the same of the entry around this one)

    def __init__(self, int off=1):
        self.off = off

    def __enter__(self):
        cdef int before = exchange_overrides_off(-1)
        self.outside = (before, self.outside)       # before the change, as it allocates
        exchange_overrides_off(max(self.off, before))

    def __exit__(self, kind=None, error=None, traceback=None):
        cdef int before
        if self.outside is None:
            raise RuntimeError(f"{type(self).__name__}: this context is left, but it was not entered")
        before, self.outside = self.outside
        exchange_overrides_off(before)
