"""Overrides: classes of tensors, foreign ones, and modes of functions, that compute in an operator's place; `cygrad.overrides` asks them.

An ordinary call does not come here: operators look where `overriding` is not 0, or where an argument is no tensor. Needs the GIL.
"""
from cygrad._core.graph.modes cimport cg_function_modes, cg_overrides_off
from cygrad._core.graph.tensor cimport OVERRIDES, TensorImpl

cdef inline bint is_asked(TensorImpl tensor) noexcept:
    """Return True if the class of a tensor, which may be None, or a mode of this thread has a say in results."""
    return (tensor is not None and tensor.flags & OVERRIDES != 0 and cg_overrides_off == 0
            or cg_function_modes != 0 and cg_overrides_off < 2)

cdef object ask(object operator, tuple arguments, dict keywords)
cdef object sparse_result(object operator, tuple arguments, dict keywords)      # where an argument is sparse, and all others were asked
cdef int exchange_overrides_off(int off) noexcept
