"""Plain tensors behind others (see plain_parts.pxd for the contract)."""
from cygrad._core.graph.tensor cimport BATCHED, DUAL, SPARSE, TensorImpl, VIEW, needs_grad, shallow_copy, tensor_type
from cygrad._core.levels.batches cimport Batch
from cygrad._core.levels.level cimport Level
from cygrad._core.levels.tangents cimport Dual, tangent_at, visible_dual

from cygrad._core.levels.tangents import without_tangent


class Uncommon(Exception):
    """Tensors that no program is captured for."""


cdef int number_of(Level level, tuple levels) except -1:
    cdef int number
    for number in range(len(levels)):
        if levels[number] is level:
            return number
    raise Uncommon("a tensor of a level that has ended, or is out of sight")


cdef object take_parts(TensorImpl tensor, list parts, tuple levels):
    """Append the plain tensors behind a tensor, and return its form."""
    cdef Batch batch
    cdef Dual dual
    cdef Level level
    cdef int number
    if type(tensor) is not tensor_type or tensor.flags & SPARSE:
        raise Uncommon("a tensor that is sparse, or of a subclass")
    if tensor.flags & BATCHED:
        batch = <Batch>tensor.special
        number = number_of(batch.level, levels)
        return number, take_parts(batch.inner, parts, levels)
    dual = visible_dual(tensor) if tensor.flags & (DUAL | VIEW) else None
    if dual is None:
        parts.append(shallow_copy(tensor) if tensor.flags & DUAL else tensor)
        return None
    level = dual.level
    tangent = tangent_at(tensor, level)
    if needs_grad(tensor) or needs_grad(tangent):
        raise Uncommon("a tensor with a tangent that requires a gradient")
    return number_of(level, levels), take_parts(without_tangent(tensor, level), parts, levels), take_parts(tangent, parts, levels)


def parts_of(TensorImpl tensor not None, tuple levels not None):
    """Return the form of a tensor, and the plain tensors behind it."""
    cdef list parts = []
    return take_parts(tensor, parts, levels), parts
