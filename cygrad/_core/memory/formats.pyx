"""Memory formats, which are orders of dims; and layouts, dense or sparse (see formats.pxd)."""
cimport cython
from libc.stdint cimport intptr_t

cdef extern from "memory/type_slots.h":
    void cg_refuse_new(type kind) noexcept


@cython.final
@cython.binding(False)
cdef class MemoryFormat:
    """The order in which dims lie in memory, such as `cygrad.channels_last`."""
    cdef readonly str name
    cdef readonly tuple order       # dims from the outermost in; None: row-major

    def __repr__(self):
        return f"cygrad.{self.name}"

    def __reduce__(self):
        return memory_format_named, (self.name,)


@cython.final
@cython.binding(False)
cdef class Layout:
    """How a tensor has its elements: all in memory (`cygrad.strided`), or the values at some places (the others)."""
    cdef readonly str name

    def __repr__(self):
        return f"cygrad.{self.name}"

    def __reduce__(self):
        return layout_named, (self.name,)


cdef MemoryFormat new_format(str name, tuple order):
    cdef MemoryFormat memory_format = MemoryFormat.__new__(MemoryFormat)
    memory_format.name, memory_format.order = name, order
    return memory_format


cdef Layout new_layout(str name):
    cdef Layout layout = Layout.__new__(Layout)
    layout.name = name
    return layout


contiguous_format = new_format("contiguous_format", None)
preserve_format = new_format("preserve_format", None)
channels_last = new_format("channels_last", (0, 2, 3, 1))
channels_last_3d = new_format("channels_last_3d", (0, 2, 3, 4, 1))
strided, sparse_coo, sparse_csr, sparse_csc = map(new_layout, ("strided", "sparse_coo", "sparse_csr", "sparse_csc"))
cdef dict formats = {(<MemoryFormat>each).name: each for each in (contiguous_format, preserve_format, channels_last, channels_last_3d)}
cdef dict layouts = {(<Layout>each).name: each for each in (strided, sparse_coo, sparse_csr, sparse_csc)}
cg_refuse_new(MemoryFormat)
cg_refuse_new(Layout)


def memory_format_named(str name not None):
    """Return the memory format of a name: pickles call it."""
    if name not in formats:
        raise ValueError(f"there is no memory format {name!r}; choose one of {', '.join(formats)}")
    return formats[name]


def layout_named(str name not None):
    """Return the layout of a name: pickles call it."""
    if name not in layouts:
        raise ValueError(f"there is no layout {name!r}; choose one of {', '.join(layouts)}")
    return layouts[name]


def check_layout(str function, layout, refusal=None):
    """Refuse another layout than strided, for which None stands; a function may have an error of its own."""
    if layout is None or layout is strided:
        return
    if isinstance(layout, Layout):
        raise refusal or NotImplementedError(f"{function}() makes tensors of the layout {strided!r}, not {layout!r}: convert the result, "
                                             "by to_sparse()")
    raise TypeError(f"{function}(): argument 'layout' must be cygrad.layout, not {type(layout).__name__}")


cdef tuple known_order(str function, object memory_format):
    if not isinstance(memory_format, MemoryFormat):
        raise TypeError(f"{function}(): argument 'memory_format' must be cygrad.memory_format, not {type(memory_format).__name__}")
    return (<MemoryFormat>memory_format).order


cdef tuple order_of(str function, object memory_format, int ndim):
    """Return the order of dims that a memory format asks for; None: row-major."""
    cdef tuple order = known_order(function, memory_format)
    if order is not None and len(order) != ndim:
        raise RuntimeError(f"required rank {len(order)} tensor to use {(<MemoryFormat>memory_format).name} format, got one of {ndim} dims")
    return order


cdef bint is_in_format(object memory_format, int ndim, const intptr_t* sizes, const intptr_t* strides) except -1:
    """Return True if elements lie dense as a memory format has them."""
    cdef tuple order = known_order("is_contiguous", memory_format)
    if order is None:
        order = tuple(range(ndim))
    return len(order) == ndim and lies_in_order(order, ndim, sizes, strides)


cdef bint lies_in_order(tuple order, int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept:
    """Return True if elements lie dense in an order of dims."""
    cdef intptr_t expected = 1
    cdef int k, d
    for k in range(ndim):
        if sizes[k] == 0:
            return True
    for k in range(ndim - 1, -1, -1):
        d = order[k]
        if sizes[d] != 1 and strides[d] != expected:
            return False
        expected *= sizes[d]
    return True


cdef int fill_strides(tuple order, const intptr_t* sizes, intptr_t* strides) except -1:
    """Write the strides of elements that lie dense in an order of dims."""
    cdef intptr_t stride = 1
    for d in reversed(order):
        strides[<int>d] = stride
        stride *= max(sizes[<int>d], 1)
    return 0
