"""Layouts of tensors in a replay (see layouts.pxd for the contract)."""
cimport cython
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport CREATED, TensorImpl, empty_strided, new_tensor
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport Storage, visible_version
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS
from cygrad._kernels.system.recursion cimport enter_container, leave_container


@cython.final
cdef class Layout:
    pass


cdef Layout layout_at(TensorImpl tensor, int kind, int base, intptr_t offset):
    cdef Layout layout = Layout.__new__(Layout)
    cdef int d
    layout.kind, layout.base, layout.offset, layout.dtype, layout.ndim = kind, base, offset, tensor.dtype_nr, tensor.ndim
    layout.version, layout.created = visible_version(tensor.storage.version), tensor.flags & CREATED
    layout.is_current, layout.has_history = visible_version(tensor.view_version ^ tensor.storage.version) == 0, tensor.node is not None
    if tensor.ndim <= 8:
        for d in range(tensor.ndim):
            layout.dims[d], layout.dims[8 + d] = tensor.sizes[d], tensor.strides[d]
    else:
        layout.many_sizes, layout.many_strides = sizes_tuple(tensor.ndim, tensor.sizes), sizes_tuple(tensor.ndim, tensor.strides)
    return layout


cdef inline intptr_t size_in(Layout layout, int d) noexcept:
    return layout.dims[d] if layout.ndim <= 8 else layout.many_sizes[d]


cdef inline intptr_t stride_in(Layout layout, int d) noexcept:
    return layout.dims[8 + d] if layout.ndim <= 8 else layout.many_strides[d]


cdef void copy_geometry(Layout layout, intptr_t* sizes, intptr_t* strides) noexcept:
    cdef int d
    for d in range(layout.ndim):
        sizes[d], strides[d] = size_in(layout, d), stride_in(layout, d)


cdef TensorImpl tensor_in(Layout layout, Storage storage, intptr_t start):
    """Return a tensor of a layout whose base begins at a byte of a storage."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    if layout.ndim <= 8:
        return new_tensor(storage, start + layout.offset, layout.dtype, layout.ndim, layout.dims, &layout.dims[8])
    copy_geometry(layout, sizes, strides)
    return new_tensor(storage, start + layout.offset, layout.dtype, layout.ndim, sizes, strides)


cdef TensorImpl empty_in(Layout layout):
    """Return a tensor of a layout in new memory."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    copy_geometry(layout, sizes, strides)
    return empty_strided(layout.dtype, layout.ndim, sizes, strides)


cdef bint suits(Layout layout, TensorImpl tensor) noexcept:
    """Return True if a tensor has the dtype and the sizes of a layout."""
    cdef int d
    if tensor.dtype_nr != layout.dtype or tensor.ndim != layout.ndim:
        return False
    for d in range(tensor.ndim):
        if tensor.sizes[d] != size_in(layout, d):
            return False
    return True


cdef bint has_strides_of(Layout layout, TensorImpl tensor) noexcept:
    """Return True if a tensor of the same sizes lies in memory as a layout does."""
    cdef int d
    for d in range(tensor.ndim if tensor.count else 0):
        if tensor.sizes[d] != 1 and tensor.strides[d] != stride_in(layout, d):
            return False
    return True


# ----- Values of calls -----
@cython.final
cdef class Hole:
    """The place of a tensor among the arguments, or in the result, of a call."""
    cdef int number

    def __cinit__(self, int number):
        self.number = number


@cython.final
cdef class Made:
    """A container in a template that a function makes of its items."""
    cdef object make
    cdef list items

    def __cinit__(self, make, list items not None):
        self.make, self.items = make, items


cdef object with_holes(object value, object numbers):
    """Return a value with tensors replaced by holes."""
    if isinstance(value, TensorImpl):
        return Hole(numbers[id(value)])
    return mapped(value, with_holes, numbers)


cdef object filled(object value, object tensors):
    """Return a value with tensors in its holes."""
    return tensors[(<Hole>value).number] if isinstance(value, Hole) else mapped(value, filled, tensors)


def put_together(template, tensors):
    """Return the result of a call from its template, a value with holes."""
    return filled(template, tensors)


cdef object mapped(object value, object (*function)(object, object), object argument):
    """Return a value with a function applied to the items of a tuple, list or dict."""
    if not isinstance(value, (tuple, list, dict, Made)):
        return value
    enter_container(" while arguments are read")
    try:
        if isinstance(value, dict):
            return {name: function(item, argument) for name, item in value.items()}
        if isinstance(value, Made):
            return (<Made>value).make([function(item, argument) for item in (<Made>value).items])
        items = [function(item, argument) for item in value]
    finally:
        leave_container()
    return tuple.__new__(type(value), items) if hasattr(value, "_fields") else type(value)(items)
