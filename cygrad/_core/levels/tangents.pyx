"""Tangents of forward mode (see tangents.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject

from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport RESULT
from cygrad._core.graph.notes cimport refuse_repeated_history
from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport rule_op
from cygrad._core.graph.saved cimport SavedTensor
from cygrad._core.graph.tensor cimport (BATCHED, CREATED_WITHOUT_GRAD, DUAL, FRONT, SHARES_TANGENTS, TensorImpl, VIEW, byte_offset,
                                        inherit_special, needs_grad, place_of, shallow_copy, special_active, view_of)
from cygrad._core.levels.batches cimport Batch, enter, levels_of_batch
from cygrad._core.levels.fronts cimport Front, front_of
from cygrad._core.levels.level cimport Level, is_active, is_visible
from cygrad._core.memory.looks cimport asked_by_package
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.memory.upward cimport share_function, upward
from cygrad._core.operands.strided cimport lies_within, overlaps_itself

from cygrad._core.graph.modes import _set_inference_mode

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)


@cython.final
@cython.no_gc_clear     # the destructor needs the level
cdef class Dual:
    """A tangent, and the tangents of lower levels."""

    def __dealloc__(self):
        if self.level is not None:
            unlink_dual(self)


cdef void link_dual(Dual dual) noexcept:
    """Have a tangent end with its level."""
    dual.behind = dual.level.duals
    if dual.behind is not NULL:
        (<Dual>dual.behind).before = <PyObject*>dual
    dual.level.duals = <PyObject*>dual


cdef void unlink_dual(Dual dual) noexcept:
    if dual.before is NULL and dual.level.duals != <PyObject*>dual:
        return      # it has ended with its level
    if dual.before is not NULL:
        (<Dual>dual.before).behind = dual.behind
    else:
        dual.level.duals = dual.behind
    if dual.behind is not NULL:
        (<Dual>dual.behind).before = dual.before
    dual.before = dual.behind = NULL


cdef Dual make_dual(Level level, TensorImpl tangent, tuple layout, Dual below):
    cdef Dual dual = Dual.__new__(Dual)
    while below is not None and not is_alive(below):
        below = below.below
    dual.level, dual.tangent, dual.layout, dual.below = level, tangent, layout, below
    link_dual(dual)
    return dual


cdef bint is_alive(Dual dual) noexcept:
    """Return True if a tangent has not ended with its level, which may go on without it."""
    return dual.tangent is not None and is_active(dual.level)


cdef Dual dual_at(Dual dual, Level level):
    while dual is not None and (dual.level is not level or dual.tangent is None):
        dual = dual.below
    return dual


cdef Dual visible(Dual dual):
    """Return the tangent of the highest level that this thread sees now, or None."""
    while dual is not None and not (is_alive(dual) and is_visible(dual.level)):
        dual = dual.below
    return dual


cdef tuple layout_of(TensorImpl tensor):
    return sizes_tuple(tensor.ndim, tensor.sizes), sizes_tuple(tensor.ndim, tensor.strides), dtypes[tensor.dtype_nr], byte_offset(tensor)


cdef int share(TensorImpl view, TensorImpl source) except -1:
    """Have another tensor over the memory of `source` share its Dual, or be the same front."""
    cdef Dual dual = None if source.flags & FRONT else tangents_of(source)
    if dual is not None and dual.level.recorded and not dual.level.in_backward and not grad_mode()[0]:
        return 0        # constant for a backward
    while dual is not None:
        dual.layout = layout_of(source) if dual.layout is None else dual.layout
        dual = dual.below
    inherit_special(view, source)
    view.flags |= SHARES_TANGENTS
    return 0


upward.share = <share_function>share


cdef Dual tangents_of(TensorImpl tensor):
    """Return the tangents of a tensor; a view made before its base had any takes on the base's."""
    cdef TensorImpl base = tensor.base
    if tensor.flags & FRONT:
        return None
    if (tensor.flags & VIEW and base.flags & DUAL and tensor.storage is base.storage
            and (not tensor.flags & DUAL or tensor.special is not None and not has_active(<Dual>tensor.special))
            and not (tensor.flags & CREATED_WITHOUT_GRAD and base.special is not None and (<Dual>base.special).level.recorded)):
        share(tensor, base)
    return <Dual>tensor.special if tensor.flags & DUAL else None


cdef bint has_active(Dual dual) noexcept:
    while dual is not None and not is_alive(dual):
        dual = dual.below
    return dual is not None


cdef Dual visible_dual(TensorImpl tensor):
    """Return the tangent of the highest level that this thread sees now, or None."""
    return visible(tangents_of(tensor))


cdef bint is_private(PyObject* tensor, Py_ssize_t tensors=1) noexcept:
    """Return True if the caller's reference to a tensor is the only way to it and to its memory, which `tensors` objects hold."""
    if Py_REFCNT(tensor) != 1 or not (<TensorImpl>tensor).storage.padded:
        return False
    if (<TensorImpl>tensor).flags & FRONT:
        return (Py_REFCNT(<PyObject*>(<TensorImpl>tensor).special) == 1
                and is_private(<PyObject*>(<Front>(<TensorImpl>tensor).special).inner, tensors + 1))
    if (<TensorImpl>tensor).base is not None:
        tensors += 1
        if Py_REFCNT(<PyObject*>(<TensorImpl>tensor).base) != 1:
            return False
    return Py_REFCNT(<PyObject*>(<TensorImpl>tensor).storage) == tensors


cdef bint is_laid_out(TensorImpl tensor, tuple layout):
    cdef int d
    for d in range(tensor.ndim):
        if tensor.sizes[d] > 1 and tensor.strides[d] != layout[1][d]:
            return False
    return True


cdef TensorImpl copy_in_layout(TensorImpl tangent, tuple layout, bint copied):
    """Return a copy of a tangent in the layout of a tensor, or zeros; recorded in any mode, since no operation of the user's makes it."""
    cdef int mode = grad_mode()[0]
    cdef Py_ssize_t length = 1
    cdef object result
    for size, stride in zip(layout[0], layout[1]):
        length = 0 if size == 0 or length == 0 else length + (size - 1) * stride
    cdef int inference = _set_inference_mode(False)
    grad_mode()[0] = True
    try:
        result = (<object>tangent).new_zeros((length,)).as_strided(layout[0], layout[1], 0)
        return result.copy_(tangent) if copied else result
    finally:
        _set_inference_mode(inference)
        grad_mode()[0] = mode


cdef int arrange(Dual dual, bint private) except -1:
    """Lay a tangent out as the tensor that it belongs to; `private`: in memory that no other tensor has, to be written to."""
    if (not is_laid_out(dual.tangent, dual.layout)
            or private and (not is_private(<PyObject*>dual.tangent) or needs_grad(dual.tangent) and dual.tangent.node is None)):
        dual.tangent = copy_in_layout(dual.tangent, dual.layout, True)
    return 0


cdef TensorImpl part_at(Dual dual, tuple layout):
    """Return the part of an arranged tangent that belongs to a view."""
    cdef object tangent = dual.tangent
    cdef tuple geometry = (*dual.layout[:3], *layout[:3], layout[3] - dual.layout[3])
    if layout == dual.layout:
        return tangent
    if not lies_within(geometry):
        return tangent._gather_view(geometry)
    place = layout[0], layout[1], (byte_offset(dual.tangent) + geometry[6]) // layout[2].itemsize
    if layout[2] is not dual.layout[2] and dual.layout[2].is_complex:
        tangent = tangent.view_as_real()
    elif layout[2] is not dual.layout[2]:
        place = (*place[0], 2), (*[2 * stride for stride in place[1]], 1), 2 * place[2]
    part = asked_by_package(tangent.as_strided, place)
    return part.view_as_complex() if layout[2].is_complex and not dual.layout[2].is_complex else part


cdef TensorImpl tangent_at(TensorImpl tensor, Level level):
    """Return the tangent of a tensor at a level, or None."""
    cdef Dual dual = dual_at(tangents_of(tensor), level)
    cdef tuple layout = None if dual is None or dual.layout is None else layout_of(tensor)
    if layout is None:
        return None if dual is None else dual.tangent
    if layout == dual.layout:
        return (<object>dual.tangent).view_as(dual.tangent) if tensor.flags & SHARES_TANGENTS else dual.tangent
    arrange(dual, False)
    return part_at(dual, layout)


cdef TensorImpl arranged_tangent(TensorImpl tensor, Level level):
    """Return the tangent of a tensor, laid out as that is from now on; None where it is recorded, and lies otherwise."""
    cdef Dual dual = dual_at(tangents_of(tensor), level)
    if dual.layout is None:
        dual.layout = layout_of(tensor)
    if not is_laid_out(dual.tangent, dual.layout):
        if needs_grad(dual.tangent):
            return None
        arrange(dual, False)
    return tangent_at(tensor, level)


cdef TensorImpl whole_tangent(TensorImpl tensor, Level level):
    """Return the tangent that `tangent_at` returns, or has a view of; None where the tensor has a part of its base's."""
    cdef Dual dual = dual_at(tangents_of(tensor), level)
    return dual.tangent if dual.layout is None or dual.layout == layout_of(tensor) else None


cdef int add_tangent(TensorImpl tensor, Level level, TensorImpl tangent) except -1:
    """Give a new tensor its own tangent at a level; the values that its node saved get it too."""
    cdef TensorImpl saved
    cdef SavedTensor packed
    if tensor.flags & BATCHED:
        return add_tangent((<Batch>tensor.special).inner, level, enter(tangent, (<Batch>tensor.special).level))
    tensor.special = make_dual(level, tangent, None, <Dual>tensor.special)
    tensor.flags |= DUAL
    value = None if tensor.node is None else tensor.node.saved_value(RESULT + tensor.output_nr)
    if isinstance(value, SavedTensor) and (<SavedTensor>value).tensor is not None:
        value = (<SavedTensor>value).tensor
    if isinstance(value, TensorImpl):
        saved = <TensorImpl>value
        if place_of(saved) == place_of(tensor) and saved.storage is tensor.storage:
            inherit_special(saved, tensor)
    elif isinstance(value, SavedTensor):
        packed = <SavedTensor>value
        packed.tangents = [*(packed.tangents or ()), make_dual(level, tangent, None, None)]
    return 0


cdef Dual insert(TensorImpl tensor, Level level, TensorImpl tangent, tuple layout):
    """Add a tangent to a tensor's and to all that share them: they refer to the first object, which takes it over."""
    cdef Dual dual = <Dual>tensor.special, last = None
    while dual is not None and dual.level.number > level.number:
        last, dual = dual, dual.below
    if dual is None:
        dual = make_dual(level, tangent, layout, None)
        if last is None:
            tensor.special = dual
            tensor.flags |= DUAL
        else:
            last.below = dual
        return dual
    unlink_dual(dual)
    dual.below = make_dual(dual.level, dual.tangent, dual.layout, dual.below)
    dual.level, dual.tangent, dual.layout = level, tangent, layout
    link_dual(dual)
    return dual


def tangent_to_write(TensorImpl tensor not None, Level level not None, TensorImpl source):
    """Return the tangent of a tensor at a level, for the tangent of a part (None: zero) to be written into; None if all are zero.

    All tensors over that memory see the write, no others do.
    """
    cdef Dual dual = tangents_of(tensor), first = dual
    cdef TensorImpl holder = tensor         # of a new tangent: the base of a view
    cdef Level other
    cdef tuple layout
    dual = dual_at(dual, level)
    if dual is None and source is None:
        return None
    refuse_repeated_history(tensor)
    if dual is None:
        if has_active(first):
            layout = layout_of(tensor) if first.layout is None else first.layout
        else:
            if tensor.flags & VIEW and tensor.storage is tensor.base.storage and not (tensor.flags & DUAL and first is None):
                holder = tensor.base
            layout = layout_of(holder)
        dual = insert(holder, level, copy_in_layout(holder, layout, False), layout)
        if holder is not tensor:
            share(tensor, holder)
    elif dual.layout is None:
        dual.layout = layout_of(tensor)
    for other in () if source is None else levels_of_batch(source):
        if not other.holds(dual.tangent):       # the tangent was the same for all examples, and will not be
            dual.tangent = other.leave((<object>other.enter(dual.tangent)).clone())
    arrange(dual, True)
    return part_at(dual, layout_of(tensor))


def without_overlap(TensorImpl tensor not None):
    """Return a tensor, or a copy where elements of it share a place: these could have no tangents of their own."""
    return (<object>tensor).clone() if overlaps_itself(tensor.ndim, tensor.sizes, tensor.strides) else tensor


def tangent_of(TensorImpl tensor not None, Level level not None):
    """Return the tangent of a tensor at a level, or None."""
    cdef TensorImpl tangent
    if tensor.flags & FRONT:
        tangent = tangent_of(front_of(tensor).inner, level)
        return None if tangent is None else tensor.special.around(tangent)
    return tangent_at(tensor, level)


def dual_levels(tuple tensors not None):
    """Return the levels, the lowest first, at which tensors have tangents that this thread sees now."""
    cdef TensorImpl tensor
    cdef Dual dual
    cdef dict levels = {}
    for tensor in tensors:
        dual = visible_dual(tensor)
        while dual is not None:
            levels[dual.level.number] = dual.level
            dual = visible(dual.below)
    return [levels[number] for number in sorted(levels)]


def all_tangents(TensorImpl tensor not None):
    """Return all tangents of a tensor, each by itself, the lowest level first, seen by this thread or not; they end with their levels."""
    cdef Dual dual = tangents_of(tensor)
    cdef list duals = []
    while dual is not None:
        if is_alive(dual):
            duals.insert(0, make_dual(dual.level, tangent_at(tensor, dual.level), None, None))
        dual = dual.below
    return duals


def with_tangents(TensorImpl tensor not None, list tangents not None):
    """Return a tensor of the same value that has tangents, in so far as it has none at their levels and they have its shape."""
    cdef TensorImpl copy = shallow_copy(tensor)
    cdef Dual dual
    inherit_special(copy, tensor)
    for dual in tangents:
        if (dual.tangent is not None and (<object>dual.tangent).shape == (<object>tensor).shape
                and dual_at(tangents_of(tensor), dual.level) is None):
            add_tangent(copy, dual.level, dual.tangent)
    return copy


upward.tangents_of, upward.with_tangents = all_tangents, with_tangents


def set_tangent(TensorImpl tensor not None, Level level not None, TensorImpl tangent not None):
    """Give a new tensor its tangent at a level."""
    add_tangent(tensor, level, tangent)


def without_tangent(TensorImpl tensor not None, Level level not None):
    """Return the tensor as lower levels see it: the same memory and history, without the tangents from a level on."""
    cdef TensorImpl copy
    cdef Dual dual
    if tensor.flags & FRONT:
        copy = without_tangent(front_of(tensor).inner, level)
        return tensor if copy is front_of(tensor).inner else tensor.special.around(copy)
    dual = tangents_of(tensor)
    if dual is None or dual.level.number < level.number:
        return tensor
    copy = view_of(tensor, 0, tensor.ndim, tensor.sizes, tensor.strides)
    if needs_node(tensor, None):
        record(rule_op("alias"), tensor, None, copy, ())
    while dual is not None and dual.level.number >= level.number:
        dual = dual.below
    copy.special = dual
    copy.flags |= DUAL      # also without any: the tangents of its base are not its own
    return copy


def refuse_tangent(TensorImpl tensor not None, str call, error=RuntimeError):
    """Refuse to give away the values of a tensor without its tangent."""
    refuse_lost_tangent(tensor, call, error)


cdef int refuse_lost_tangent(TensorImpl tensor, str call, object error) except -1:
    if special_active and visible_dual(tensor) is not None:
        raise error(f"Can't call {call} on Tensor that has a tangent of forward mode, which would be lost. Use tensor.detach().")
    return 0
