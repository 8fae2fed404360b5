"""Tensors that are given other memory or another size in place.

Other tensors over the old memory keep it: nothing that was handed out moves or dies. The version grows, so that the values a node
has saved of the tensor counts as changed.
"""
from libc.stdint cimport intptr_t

from cygrad._core.compute.copies cimport empty_in_order
from cygrad._core.compute.inplace cimport check_history
from cygrad._core.graph.history cimport attach, cut_leaf
from cygrad._core.graph.modes cimport grad_mode, is_inference_mode
from cygrad._core.graph.tensor cimport (TensorImpl, byte_offset, count_change, empty, inherit_special, needs_grad, new_tensor,
                                        replace_memory)
from cygrad._core.memory.formats cimport fill_strides, order_of
from cygrad._core.memory.sizes cimport checked_numel, integer, parse_sizes, sizes_argument, sizes_tuple
from cygrad._core.memory.storage cimport borrow
from cygrad._core.operands.operands cimport check_changeable, copy_into, shape_is
from cygrad._kernels.drivers.elementwise cimport CG_UINT8, MAX_DIMS, cg_itemsize

from cygrad._core.memory.sizes import row_major


cdef int check_replaceable(TensorImpl target) except -1:
    """Refuse a change of sizes or memory that autograd cannot follow; no element is written, so elements may share memory."""
    check_changeable(target)
    return check_history(target, False)


def resize_(TensorImpl self not None, *size, memory_format=None, **keywords):
    """Give the tensor another shape, and memory format, in place; elements keep their order in memory, and new ones are undefined."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int ndim = sizes_argument(size, keywords, "size", sizes)
    cdef intptr_t itemsize = cg_itemsize[self.dtype_nr], count = checked_numel(ndim, sizes, itemsize), available
    cdef tuple order = None if memory_format is None else order_of("resize_", memory_format, ndim)
    cdef intptr_t strides[MAX_DIMS]
    cdef TensorImpl source
    if needs_grad(self) and not is_inference_mode():
        raise RuntimeError("cannot resize variables that require grad; resize tensor.detach() or make a new tensor")
    check_replaceable(self)
    if order is None and shape_is(self, ndim, sizes):
        return self
    available = self.storage.nbytes - byte_offset(self)
    if order is not None:
        fill_strides(order, sizes, strides)
    if count * itemsize <= available:
        source = new_tensor(self.storage, byte_offset(self), self.dtype_nr, ndim, sizes, NULL if order is None else strides)
    else:
        source = empty_in_order(order, self.dtype_nr, ndim, sizes)
        copy_into(new_tensor(source.storage, 0, CG_UINT8, 1, &available, NULL),
                  new_tensor(self.storage, byte_offset(self), CG_UINT8, 1, &available, NULL))
    replace_memory(self, source, source.storage)
    return self


def resize_as_(TensorImpl self not None, TensorImpl the_template not None, memory_format=None):
    """Give the tensor the shape of another in place; see `resize_`."""
    return resize_(self, sizes_tuple(the_template.ndim, the_template.sizes), memory_format=memory_format)


def set_(TensorImpl self not None, source=None, storage_offset=None, size=None, stride=None):
    """Lay the tensor over the memory of `source`: all of it as it is laid out there, or by offset, sizes and strides."""
    cdef TensorImpl other
    cdef intptr_t nothing = 0
    cdef intptr_t lengths[MAX_DIMS]
    cdef intptr_t steps[MAX_DIMS]
    cdef int ndim
    if size is not None:        # read once: the code below runs none of the user's
        ndim = parse_sizes(size, lengths)
        size = sizes_tuple(ndim, lengths)
        if stride is None:
            stride = row_major(size)
        ndim = parse_sizes(stride, steps, "stride")
        stride = sizes_tuple(ndim, steps)
        storage_offset = 0 if storage_offset is None else integer(storage_offset, "storage_offset")
    if source is None:
        other = empty(self.dtype_nr, 1, &nothing)
    elif isinstance(source, TensorImpl):
        other = source
    else:
        raise TypeError(f"set_(): argument 'source' must be Tensor, not {type(source).__name__}")
    if other.dtype_nr != self.dtype_nr:
        raise RuntimeError(f"Could not set tensor of type {(<object>other).dtype!r} to a tensor of type {(<object>self).dtype!r}")
    check_replaceable(self)
    if grad_mode()[0] and (needs_grad(self) or needs_grad(other)):
        raise RuntimeError("set_() is not differentiable, and a tensor requires grad: use detach()ed tensors, or no_grad()")
    if size is not None:
        other = (<object>other).detach().as_strided(size, stride, storage_offset)
    replace_memory(self, other, borrow(other.storage))
    cut_leaf(self)
    return self


def rearrange_in_place(function, TensorImpl self not None, *arguments, **keywords):
    """Give the tensor the sizes and strides of a view, `function(self, ...)`, and its history."""
    cdef TensorImpl view
    check_replaceable(self)
    view = <TensorImpl?>function(self, *arguments, **keywords)
    if view is self:
        count_change(self)
        return self
    if view.storage is not self.storage:
        raise RuntimeError(f"{getattr(function, '__name__', 'this')}_() would have to copy: the tensor cannot be seen in that shape; "
                           "use the out-of-place form")
    replace_memory(self, view, self.storage)
    inherit_special(self, view)
    if view.node is not None:
        attach(self, view.node, view.output_nr)
    return self
