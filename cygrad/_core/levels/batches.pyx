"""Batches of vmap (see batches.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport (BATCHED, FRESH, FRONT, RETIRED, SPECIAL, TensorImpl, VIEW, byte_offset, new_tensor, refuse_front,
                                        view_of)
from cygrad._core.levels.fronts cimport Front
from cygrad._core.levels.level cimport Level, is_active
from cygrad._core.levels.observers cimport special_tensors as tensors_may_be_special
from cygrad._core.levels.tangents cimport Dual, add_tangent, refuse_lost_tangent, tangent_at, visible, visible_dual
from cygrad._core.memory.upward cimport upward
from cygrad._core.operands.operands cimport copy_of
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef RuleOp ENTER = rule_op("enter", ("level",))


@cython.final
@cython.binding(False)
cdef class Batch(Front):
    """All examples that a batched tensor is one of."""

    def around(self, TensorImpl inner not None):
        """Return the tensor that stands for one of other examples of the same level."""
        return leave(inner, self.level)


cdef Batch batch_of(TensorImpl tensor):
    """Return the batch of a batched tensor; RuntimeError if its vmap has ended."""
    cdef Batch batch = <Batch>tensor.special
    if not is_active(batch.level):
        raise RuntimeError("vmap: a tensor that belongs to a call of vmap was used after that had returned. Return it from the function "
                           "given to vmap instead of keeping it by other means.")
    return batch


cdef Batch kernel_batch(TensorImpl tensor):
    """Return the batch of a tensor if a kernel may compute all of it as it is, else None."""
    cdef Batch batch
    if not tensor.flags & BATCHED:
        return None
    batch = batch_of(tensor)
    return None if is_special(batch.inner) else batch


cdef TensorImpl private_examples(PyObject* object):
    """Return all examples of a gradient if a kernel may write over them: the caller has the only reference; else None."""
    cdef Batch batch = kernel_batch(<TensorImpl>object)
    if (batch is None or Py_REFCNT(object) > 1 or Py_REFCNT(<PyObject*>(<TensorImpl>object).special) > 2
            or Py_REFCNT(<PyObject*>batch.inner) > 1 or batch.inner.base is not None or not batch.inner.storage.padded
            or Py_REFCNT(<PyObject*>batch.inner.storage) > 2):
        return None
    return batch.inner


cdef bint is_special(TensorImpl tensor) except -1:
    """Return True if operators on a tensor go another way in this thread now."""
    if not tensor.flags & (SPECIAL | VIEW):
        return False
    return tensor.flags & FRONT != 0 or visible_dual(tensor) is not None


cdef TensorImpl wrapped(TensorImpl inner, Level level):
    """Return the tensor that stands for one example of many, which lie along dim 0."""
    cdef Batch batch = Batch.__new__(Batch)
    cdef TensorImpl result = new_tensor(inner.storage, byte_offset(inner), inner.dtype_nr, inner.ndim - 1, inner.sizes + 1,
                                        inner.strides + 1)
    batch.level, batch.inner = level, inner
    result.special = batch
    result.flags |= BATCHED
    return result


cdef TensorImpl leave(TensorImpl tensor, Level level):
    """Return the example that a tensor with all of them along dim 0 stands for."""
    cdef Batch batch
    if tensor.flags & BATCHED:
        batch = batch_of(tensor)
        if batch.level.number > level.number:
            return wrapped(leave((<object>batch.inner).transpose(0, 1), level), batch.level)
    return wrapped(tensor, level)


cdef TensorImpl enter(TensorImpl tensor, Level level):
    """Return all examples of a tensor along dim 0; one that is the same for all is repeated without a copy."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef Batch batch
    cdef Dual dual
    cdef TensorImpl result, expanded
    cdef list duals = []
    cdef int d
    if tensor.flags & BATCHED:
        batch = batch_of(tensor)
        if batch.level is level:
            return batch.inner
        result = enter(batch.inner, level)
        return wrapped((<object>result).transpose(0, 1), batch.level)
    if tensor.ndim == MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions, the batches of vmap included")
    sizes[0], strides[0] = level.size, 0
    for d in range(tensor.ndim):
        sizes[d + 1], strides[d + 1] = tensor.sizes[d], tensor.strides[d]
    result = view_of(tensor, 0, tensor.ndim + 1, sizes, strides)
    if needs_node(tensor, None):
        record(ENTER, tensor, None, result, (level,))
    dual = visible_dual(tensor)
    while dual is not None:
        duals.append(dual)
        dual = visible(dual.below)
    if duals:
        expanded = result       # tangents may differ among examples, and have to lie as the value does
        result = copy_of(expanded, expanded.dtype_nr)
        if needs_node(expanded, None):
            record(rule_op("clone"), expanded, None, result, ())
        for dual in reversed(duals):
            add_tangent(result, dual.level, enter(tangent_at(tensor, dual.level), level))
    return result


def batched_level(tensor):
    """Return the innermost level that a tensor is batched at, or None."""
    return batch_of(tensor).level if isinstance(tensor, TensorImpl) and (<TensorImpl>tensor).flags & BATCHED else None


cdef list levels_of_batch(TensorImpl tensor):
    cdef list levels = []
    while tensor.flags & BATCHED:
        levels.insert(0, batch_of(tensor).level)
        tensor = (<Batch>tensor.special).inner
    return levels


def refuse_special(TensorImpl tensor not None, str call, error=RuntimeError):
    """Refuse to give away the values of a tensor without its tangent or derivative, or the values of one of many examples."""
    refuse_front(tensor, call)
    refuse_lost_tangent(tensor, call, error)
    if tensor.flags & (FRESH | RETIRED) == FRESH:
        raise error(f"Can't call {call} on Tensor that a function is being differentiated with respect to: the derivative would be lost. "
                    "Use tensor.detach().")


upward.refuse_special = refuse_special


def is_special_tensor(TensorImpl tensor not None):
    """Return True if operators on a tensor go another way in this thread now."""
    return is_special(tensor)


def special_tensors():
    """Return True if there may be special tensors."""
    return tensors_may_be_special()


def _leave_or_sum(TensorImpl g not None, Level level not None):
    """Give the gradient of a tensor that was the same for all examples: one for each while their vmap runs, later their sum."""
    return leave(g, level) if is_active(level) else (<object>g).sum(0)
