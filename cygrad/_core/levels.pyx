# cython: language_level=3, boundscheck=False, wraparound=False
"""Levels, tangents and batches (see levels.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport intptr_t

from cygrad._core.node cimport NODE_ACCUMULATES, Node, edge, grad_mode, gradient_edge, leaf_of
from cygrad._core.profiler cimport special_tensors as tensors_may_be_special
from cygrad._core.rules cimport record, rule_op, wanted
from cygrad._core.saved cimport SavedTensor
from cygrad._core.tensor cimport (BATCHED, CREATED_WITHOUT_GRAD, DUAL, REQUIRES_GRAD, RETIRED, TensorImpl, VIEW, inherit_special,
                                  new_tensor, offset_of, shallow_copy, sizes_tuple, special_active, view_of)
from cygrad._kernels.elementwise cimport MAX_DIMS

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef extern from *:
    """
    static __thread unsigned long long cg_ceiling = ~0ULL;
    static unsigned long long *cg_ceiling_address(void) { return &cg_ceiling; }
    static __thread void *cg_innermost;
    static void **cg_innermost_address(void) { return &cg_innermost; }
    """
    unsigned long long* cg_ceiling_address() noexcept nogil
    void** cg_innermost_address() noexcept nogil

cdef unsigned long long last_number = 0     # no number is given twice: what outlives its level is known by that


cdef unsigned long long* ceiling() noexcept nogil:
    return cg_ceiling_address()


# ----- Levels -----
@cython.final
cdef class Level:
    """A forward-mode differentiation, or a vmap, in progress."""

    def enter(self, TensorImpl tensor not None):
        """Return all examples of a tensor along a new dim 0; one that is the same for all is repeated without a copy."""
        return enter(tensor, self)

    def leave(self, TensorImpl tensor not None):
        """Return the tensor that stands for one of the examples along dim 0."""
        return leave(tensor, self)

    def holds(self, tensor):
        """Say whether an object is a tensor that stands for one of several examples of this level."""
        cdef TensorImpl item
        if not isinstance(tensor, TensorImpl):
            return False
        item = tensor
        while item.flags & BATCHED:
            if batch_of(item).level is self:
                return True
            item = (<Batch>item.special).inner
        return False

    def differentiate_backward(self):
        """Show tangents from now on whether grad mode is on or off: what runs is a backward, recorded or not."""
        self.in_backward = True

    def __repr__(self):
        kind = "forward mode" if self.size < 0 else f"vmap over {self.size}"
        return f"<level {self.number}: {kind}{'' if self.active else ', ended'}>"


def innermost_level():
    """Return the innermost level of this thread, or None."""
    cdef void* level = cg_innermost_address()[0]
    return <object>level if level is not NULL else None


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


def exit_level(Level level not None):
    """End the innermost level, and with it the tangents that belong to it."""
    global special_active
    cdef Dual dual
    cdef list ended = []
    if <void*>level != cg_innermost_address()[0]:
        raise RuntimeError(f"{level!r} is not the innermost level of this thread: levels end in the reverse order of their beginning")
    cg_innermost_address()[0] = <void*>level.outer if level.outer is not None else NULL
    level.active = False
    special_active -= 1
    while level.duals is not NULL:      # their destructors may run anything, so they wait
        dual = <Dual>level.duals
        unlink(dual)
        ended.append(dual.tangent)
        dual.tangent = None
    Py_XDECREF(<PyObject*>level)


# ----- Tangents -----
@cython.final
@cython.no_gc_clear     # the destructor needs the level
cdef class Dual:
    """A tangent, and those of lower levels."""

    def __dealloc__(self):
        if self.level is not None and (self.before is not NULL or self.level.duals == <PyObject*>self):
            unlink(self)


cdef void unlink(Dual dual) noexcept:
    if dual.before is not NULL:
        (<Dual>dual.before).behind = dual.behind
    else:
        dual.level.duals = dual.behind
    if dual.behind is not NULL:
        (<Dual>dual.behind).before = dual.before
    dual.before = dual.behind = NULL


cdef Dual make_dual(Level level, TensorImpl tangent, Dual below):
    cdef Dual dual = Dual.__new__(Dual)
    dual.level, dual.tangent, dual.below = level, tangent, below
    dual.behind = level.duals
    if dual.behind is not NULL:
        (<Dual>dual.behind).before = <PyObject*>dual
    level.duals = <PyObject*>dual
    return dual


cdef Dual visible_dual(TensorImpl tensor):
    """Return the tangent of the highest level that this thread sees now, or None."""
    cdef Dual dual
    if not tensor.flags & DUAL:
        return None
    dual = <Dual>tensor.special
    while dual is not None and (not dual.level.active or dual.level.number >= cg_ceiling_address()[0]
                                or dual.level.recorded and not dual.level.in_backward and not grad_mode()[0]):
        dual = dual.below
    return dual


cdef TensorImpl tangent_at(TensorImpl tensor, Level level):
    """Return the tangent of a tensor at a level, or None; that of a view made before its base had one is looked up there."""
    cdef Dual dual = <Dual>tensor.special if tensor.flags & DUAL else None
    cdef TensorImpl tangent, base = tensor.base
    while dual is not None:
        if dual.level is level:
            return dual.tangent
        dual = dual.below
    if (tensor.flags & VIEW and base.flags & DUAL and tensor.storage is base.storage
            and not (level.recorded and tensor.flags & CREATED_WITHOUT_GRAD)):
        tangent = tangent_at(base, level)
        if tangent is not None:
            return (<object>tangent)._gather_view((
                sizes_tuple(base.ndim, base.sizes), sizes_tuple(base.ndim, base.strides), sizes_tuple(tensor.ndim, tensor.sizes),
                sizes_tuple(tensor.ndim, tensor.strides), offset_of(tensor) - offset_of(base)))
    return None


cdef int add_tangent(TensorImpl tensor, Level level, TensorImpl tangent) except -1:
    """Give a tensor its tangent at a level, in place of the one it has; what its node saved of it gets it too."""
    cdef Dual dual
    cdef TensorImpl saved
    cdef object kept
    if tensor.flags & BATCHED:
        return add_tangent((<Batch>tensor.special).inner, level, enter(tangent, (<Batch>tensor.special).level))
    dual = <Dual>tensor.special
    while dual is not None:
        if dual.level is level:
            dual.tangent = tangent
            return 0
        dual = dual.below
    tensor.special = make_dual(level, tangent, <Dual>tensor.special)
    tensor.flags |= DUAL
    kept = None if tensor.node is None else tensor.node.result
    if isinstance(kept, TensorImpl):
        saved = <TensorImpl>kept
        if saved.data == tensor.data and saved.storage is tensor.storage:
            inherit_special(saved, tensor)
    elif isinstance(kept, SavedTensor) and tensor.output_nr == 0:
        (<SavedTensor>kept).special = tensor.special
    return 0


def tangent_of(TensorImpl tensor not None, Level level not None):
    """Return the tangent of a tensor at a level, or None."""
    cdef Batch batch
    cdef TensorImpl tangent
    if tensor.flags & BATCHED:
        batch = batch_of(tensor)
        tangent = tangent_of(batch.inner, level)
        return None if tangent is None else leave(tangent, batch.level)
    return tangent_at(tensor, level)


def dual_levels(tuple tensors not None):
    """Return the levels, the lowest first, at which tensors have tangents that this thread sees now."""
    cdef TensorImpl tensor
    cdef Dual dual
    cdef dict found = {}
    for tensor in tensors:
        dual = visible_dual(tensor)
        while dual is not None:
            if dual.level.active:
                found[dual.level.number] = dual.level
            dual = dual.below
    return [found[number] for number in sorted(found)]


def set_ceiling(number):
    """Have this thread see only levels below a number; returns the former one."""
    before = cg_ceiling_address()[0]
    cg_ceiling_address()[0] = number
    return before


def has_tangent(TensorImpl tensor not None, Level level not None):
    """Say whether a tensor has a tangent of its own at a level, not by the tensor that it is a view of."""
    cdef Dual dual = <Dual>tensor.special if tensor.flags & DUAL else None
    while dual is not None and dual.level is not level:
        dual = dual.below
    return dual is not None


def set_tangent(TensorImpl tensor not None, Level level not None, TensorImpl tangent not None):
    """Give a new tensor its tangent at a level."""
    add_tangent(tensor, level, tangent)


def without_tangent(TensorImpl tensor not None, Level level not None):
    """Return the tensor as lower levels see it: the same memory and history, without the tangents from a level on."""
    cdef TensorImpl copy
    cdef Dual dual
    if tensor.flags & BATCHED:
        copy = without_tangent(batch_of(tensor).inner, level)
        return tensor if copy is batch_of(tensor).inner else leave(copy, batch_of(tensor).level)
    dual = <Dual>tensor.special if tensor.flags & DUAL else None
    if dual is None or dual.level.number < level.number:
        return tensor
    copy = view_of(tensor, tensor.data, tensor.ndim, tensor.sizes, tensor.strides)
    if wanted(tensor, None):
        record(rule_op("alias"), tensor, None, copy, ())
    while dual is not None and dual.level.number >= level.number:
        dual = dual.below
    if dual is not None:
        copy.special = dual
        copy.flags |= DUAL
    return copy


# ----- Batches -----
@cython.final
cdef class Batch:
    """All examples that a batched tensor is one of."""

    def __cinit__(self):
        global special_active
        special_active += 1     # what outlives its level is refused, so operators have to look

    def __dealloc__(self):
        global special_active
        special_active -= 1


cdef Batch batch_of(TensorImpl tensor):
    """Return the batch of a batched tensor; RuntimeError if its vmap has ended."""
    cdef Batch batch = <Batch>tensor.special
    if not batch.level.active:
        raise RuntimeError("vmap: a tensor that belongs to a call of vmap was used after that had returned. Return it from the function "
                           "given to vmap instead of keeping it by other means.")
    return batch


cdef Batch plain_batch(TensorImpl tensor):
    """Return the batch of a tensor if a kernel may compute all of it as it is, else None."""
    cdef Batch batch
    if not tensor.flags & BATCHED:
        return None
    batch = batch_of(tensor)
    return None if is_special(batch.inner) else batch


cdef TensorImpl private_examples(PyObject* object):
    """Return all examples of a gradient if a kernel may write over them: nobody holds them but the caller's reference; else None."""
    cdef Batch batch = plain_batch(<TensorImpl>object)
    if (batch is None or Py_REFCNT(object) > 1 or Py_REFCNT(<PyObject*>(<TensorImpl>object).special) > 2
            or Py_REFCNT(<PyObject*>batch.inner) > 1 or batch.inner.base is not None or not batch.inner.storage.padded
            or Py_REFCNT(<PyObject*>batch.inner.storage) > 2):
        return None
    return batch.inner


cdef bint is_special(TensorImpl tensor) noexcept:
    """Say whether operators on a tensor go another way in this thread now."""
    return tensor.flags & BATCHED != 0 or visible_dual(tensor) is not None


cdef TensorImpl wrapped(TensorImpl inner, Level level):
    """Return the tensor that stands for one example of many, which lie along dim 0."""
    cdef Batch batch = Batch.__new__(Batch)
    cdef TensorImpl result = new_tensor(inner.storage, inner.data, inner.dtype_nr, inner.ndim - 1, inner.sizes + 1, inner.strides + 1)
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
    cdef TensorImpl result
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
    result = view_of(tensor, tensor.data, tensor.ndim + 1, sizes, strides)
    if wanted(tensor, None):
        record(rule_op("enter"), tensor, None, result, (level,))
    dual = visible_dual(tensor)
    while dual is not None:
        duals.append(dual)
        dual = dual.below
    for dual in reversed(duals):
        if dual.level.active:
            add_tangent(result, dual.level, enter(dual.tangent, level))
    return result


def fresh(TensorImpl tensor not None):
    """Return a tensor of the same value that gradients are asked for of: a leaf, or a view where the tensor has a history itself."""
    cdef TensorImpl result
    if tensor.flags & BATCHED:
        return leave(fresh(batch_of(tensor).inner), (<Batch>tensor.special).level)
    if wanted(tensor, None):
        result = view_of(tensor, tensor.data, tensor.ndim, tensor.sizes, tensor.strides)
        record(rule_op("alias"), tensor, None, result, ())
    else:
        result = shallow_copy(tensor)
        result.flags |= REQUIRES_GRAD
    inherit_special(result, tensor)
    return result


def retire(TensorImpl leaf not None):
    """Note that no other derivative than its own will ask for the gradient of a tensor that `fresh` has made."""
    while leaf.flags & BATCHED:
        leaf = (<Batch>leaf.special).inner
    leaf.flags |= RETIRED


def without_history(TensorImpl tensor not None):
    """Return a tensor of the same value and tangents that needs no gradient."""
    cdef TensorImpl result
    if tensor.flags & BATCHED:
        return leave(without_history(batch_of(tensor).inner), (<Batch>tensor.special).level)
    result = shallow_copy(tensor)
    inherit_special(result, tensor)
    return result


def reaches_other_leaves(tuple outputs not None, tuple own not None):
    """Say whether outputs depend on leaves that require a gradient, other than these."""
    cdef set seen = set(), mine = set()
    cdef list waiting = []
    cdef TensorImpl tensor
    cdef Node node, target
    cdef int k, output_nr
    for tensor in own:
        while tensor.flags & BATCHED:
            tensor = (<Batch>tensor.special).inner
        mine.add(<size_t><PyObject*>tensor)
    for tensor in outputs:
        while tensor.flags & BATCHED:
            tensor = (<Batch>tensor.special).inner
        node = gradient_edge(tensor, &output_nr)
        if node is not None:
            waiting.append(node)
    while waiting:
        node = waiting.pop()
        if node.flags & NODE_ACCUMULATES:
            tensor = leaf_of(node)
            if not tensor.flags & RETIRED and <size_t><PyObject*>tensor not in mine:
                return True
            continue
        if <size_t><PyObject*>node in seen:
            continue
        seen.add(<size_t><PyObject*>node)
        for k in range(node.edges):
            target = edge(node, k, &output_nr)
            if target is not None:
                waiting.append(target)
    return False


def is_batched(tensor):
    """Say whether an object is a tensor inside of a vmap that stands for one example of many."""
    return isinstance(tensor, TensorImpl) and (<TensorImpl>tensor).flags & BATCHED != 0


def batched_level(tensor):
    """Return the innermost level that a tensor is batched at, or None."""
    return batch_of(tensor).level if isinstance(tensor, TensorImpl) and (<TensorImpl>tensor).flags & BATCHED else None


def batch_levels(TensorImpl tensor not None):
    """Return the levels that a tensor is batched at, the outermost first."""
    cdef list levels = []
    while tensor.flags & BATCHED:
        levels.insert(0, batch_of(tensor).level)
        tensor = (<Batch>tensor.special).inner
    return levels


def special_tensors():
    """Say whether there may be special tensors."""
    return tensors_may_be_special()


def _leave_or_sum(TensorImpl g not None, Level level not None):
    """Give the gradient of a tensor that was the same for all examples: one for each while their vmap runs, later their sum."""
    return leave(g, level) if level.active else (<object>g).sum(0)
