# cython: cdivision=True
"""Views by strides (see strided.pxd for the contract)."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.history cimport geometry_of
from cygrad._core.graph.rule_nodes cimport record, record_view, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport VIEW, TensorImpl, byte_offset, empty, empty_strided, is_dense, new_tensor, offset_of, view_of
from cygrad._core.memory.looks cimport note_question
from cygrad._core.memory.sizes cimport (add_overflows, bytes_needed, checked_numel, integer, multiply_overflows, parse_sizes,
                                        sizes_tuple, span)
from cygrad._core.memory.storage cimport DType
from cygrad._core.operands.arrays cimport array_of, values_of
from cygrad._core.operands.operands cimport copy_into, copy_of
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize, cg_loops_of

import numpy

from cygrad._core.memory.storage import dtype_by_name

cdef enum:      # in a geometry
    PART = 3        # where sizes, strides and dtype of the part begin
    OFFSET = 6

cdef int UINT8 = dtype_by_name["uint8"].number
cdef RuleOp GATHER_VIEW = rule_op("gather_view", ("geometry",)), SCATTER_VIEW = rule_op("scatter_view", ("geometry",))
cdef RuleOp PUT_VIEW = rule_op("put_view", ("geometry",))


# ----- Geometry -----
cdef bint overlaps_itself(int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept:
    """Return True if two elements may share a place; False is sure."""
    cdef intptr_t extent = 1
    cdef bint used[MAX_DIMS]
    cdef int d, least
    for d in range(ndim):
        if sizes[d] == 0:
            return False
        used[d] = sizes[d] == 1
    for _ in range(ndim):
        least = -1
        for d in range(ndim):
            if not used[d] and (least < 0 or strides[d] < strides[least]):
                least = d
        if least < 0:
            break
        if strides[least] < extent:
            return True
        extent += (sizes[least] - 1) * strides[least]
        used[least] = True
    return False


cdef inline DType dtype_in(tuple geometry, int index):
    return <DType?>geometry[index]


cdef TensorImpl part_of(TensorImpl whole, tuple geometry):
    """Return the part of a tensor that is laid out as the whole of a geometry, without recording."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int ndim = parse_sizes(geometry[PART], sizes)
    parse_sizes(geometry[PART + 1], strides)
    return new_tensor(whole.storage, byte_offset(whole) + <intptr_t>geometry[OFFSET], dtype_in(geometry, PART + 2).number, ndim, sizes,
                      strides)


cdef TensorImpl copy_in_geometry(TensorImpl x, tuple geometry):
    """Return a copy of a tensor in the layout of the whole of a geometry, without recording."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t length
    cdef int ndim = parse_sizes(geometry[0], sizes)
    cdef TensorImpl result
    parse_sizes(geometry[1], strides)
    result = empty_strided(x.dtype_nr, ndim, sizes, strides)
    if not is_dense(result):
        length = span(ndim, sizes, strides)
        zero(new_tensor(result.storage, byte_offset(result), x.dtype_nr, 1, &length, NULL))
    copy_into(result, x)
    return result


cdef bint lies_within(tuple geometry) except -1:
    """Return True if the part of a geometry lies between the first and the last element of the whole."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t part_sizes[MAX_DIMS]
    cdef intptr_t part_strides[MAX_DIMS]
    cdef int ndim = parse_sizes(geometry[0], sizes), part_ndim = parse_sizes(geometry[PART], part_sizes)
    cdef intptr_t offset = geometry[OFFSET]
    parse_sizes(geometry[1], strides)
    parse_sizes(geometry[PART + 1], part_strides)
    return offset >= 0 and (bytes_needed(part_ndim, part_sizes, part_strides, 0, dtype_in(geometry, PART + 2).itemsize)
                            <= bytes_needed(ndim, sizes, strides, 0, dtype_in(geometry, 2).itemsize) - offset)


cdef object element_offsets(object sizes, object strides):
    """Return the array of the places of elements, from the first one on."""
    result = numpy.zeros(sizes, numpy.intp)
    for d, stride in enumerate(strides):
        result += (numpy.arange(sizes[d]) * stride).reshape([-1 if d == k else 1 for k in range(len(sizes))])
    return result


# ----- Operators -----
def as_strided(TensorImpl input not None, size, stride, storage_offset=None):
    """Return a view of the tensor's memory with given sizes and strides, in elements."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int ndim = parse_sizes(size, sizes), steps = parse_sizes(stride, strides, "stride"), d
    cdef intptr_t offset = -1 if storage_offset is None else integer(storage_offset, "storage_offset")
    cdef intptr_t itemsize = cg_itemsize[input.dtype_nr], needed
    cdef TensorImpl result
    if storage_offset is None:
        offset = offset_of(input)
    elif input.flags & VIEW:
        note_question("its place in memory was asked for")
    if steps != ndim:
        raise RuntimeError(f"mismatch in length of strides and shape: {list(sizes_tuple(ndim, sizes))} and "
                           f"{list(sizes_tuple(steps, strides))}")
    for d in range(ndim):
        if strides[d] < 0:
            raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: "
                               f"{list(sizes_tuple(ndim, strides))}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    checked_numel(ndim, sizes, itemsize)
    needed = bytes_needed(ndim, sizes, strides, offset, itemsize)
    if needed > <intptr_t>input.storage.nbytes:
        raise RuntimeError(f"setStorage: sizes {list(sizes_tuple(ndim, sizes))}, strides {list(sizes_tuple(ndim, strides))}, storage "
                           f"offset {offset}, and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for "
                           f"storage of size {input.storage.nbytes}")
    result = view_of(input, offset - offset_of(input), ndim, sizes, strides)
    if needs_node(input, None):
        record_view(input, result, geometry_of(input, result))
    return result


cdef class Geometry:
    """A geometry read, and zeros that hold its whole and its part."""
    cdef intptr_t[64] sizes
    cdef intptr_t[64] strides
    cdef intptr_t[64] part_sizes
    cdef intptr_t[64] part_strides
    cdef intptr_t offset, low
    cdef int ndim, part_ndim
    cdef bint shared                # elements of the whole share places
    cdef tuple geometry
    cdef int dtype, part_dtype      # in which sums are computed
    cdef TensorImpl buffer          # of bytes

    def __cinit__(self, tuple geometry):
        cdef intptr_t length, end
        self.geometry, self.dtype = geometry, cg_loops_of[dtype_in(geometry, 2).number]
        self.part_dtype = cg_loops_of[dtype_in(geometry, PART + 2).number]
        if multiply_overflows(geometry[OFFSET], cg_itemsize[self.dtype] // dtype_in(geometry, 2).itemsize, &self.offset):
            raise RuntimeError(f"a part cannot begin {geometry[OFFSET]} bytes behind its whole")
        self.ndim, self.part_ndim = parse_sizes(geometry[0], self.sizes), parse_sizes(geometry[PART], self.part_sizes)
        parse_sizes(geometry[1], self.strides)
        parse_sizes(geometry[PART + 1], self.part_strides)
        self.shared = overlaps_itself(self.ndim, self.sizes, self.strides)
        self.low = min(0, self.offset)
        length = bytes_needed(self.ndim, self.sizes, self.strides, 0, cg_itemsize[self.dtype])
        end = bytes_needed(self.part_ndim, self.part_sizes, self.part_strides, 0, cg_itemsize[self.part_dtype])
        if add_overflows(self.offset, end, &end) or add_overflows(max(length, end), -self.low, &length):
            raise RuntimeError(f"a part cannot begin {geometry[OFFSET]} bytes behind its whole")
        self.buffer = empty(UINT8, 1, &length)
        zero(self.buffer)

    cdef TensorImpl whole(self):
        return new_tensor(self.buffer.storage, -self.low, self.dtype, self.ndim, self.sizes, self.strides)

    cdef TensorImpl part(self):
        return new_tensor(self.buffer.storage, self.offset - self.low, self.part_dtype, self.part_ndim, self.part_sizes, self.part_strides)

    cdef int add(self, TensorImpl elements, TensorImpl target) except -1:
        """Add elements at the places of the whole or the part, however often places repeat."""
        cdef intptr_t length = span(target.ndim, target.sizes, target.strides)
        row = new_tensor(self.buffer.storage, byte_offset(target), target.dtype_nr, 1, &length, NULL)
        offsets = element_offsets(sizes_tuple(target.ndim, target.sizes), sizes_tuple(target.ndim, target.strides))
        numpy.add.at(array_of(row), offsets, values_of(elements))
        return 0

    cdef object shares(self):
        """Return by how many elements the place of each element of the whole is shared."""
        cdef object offsets = element_offsets(self.geometry[0], self.geometry[1])
        return numpy.bincount(offsets.reshape(-1))[offsets]


cdef TensorImpl divided(TensorImpl x, object shares):
    """Return a copy of a tensor with its elements divided."""
    cdef TensorImpl result = copy_of(x, cg_loops_of[x.dtype_nr])
    elements = array_of(result)
    elements /= shares
    return result


def _gather_view(TensorImpl input not None, tuple geometry):
    """Return the part of a tensor that a geometry describes; zero where that is no part of it."""
    cdef Geometry memory = Geometry(geometry)
    cdef TensorImpl result
    if memory.shared:
        memory.add(divided(input, memory.shares()), memory.whole())
    else:
        copy_into(memory.whole(), input)
    result = copy_of(memory.part(), dtype_in(geometry, PART + 2).number)
    if needs_node(input, None):
        record(GATHER_VIEW, input, None, result, (geometry,))
    return result


def _scatter_view(TensorImpl input not None, tuple geometry):
    """Return zeros in the shape of a geometry's whole with `input` added at its part: the transpose of gathering.

    Elements of the whole that share a place share its gradient.
    """
    cdef Geometry memory = Geometry(geometry)
    cdef TensorImpl result
    if overlaps_itself(memory.part_ndim, memory.part_sizes, memory.part_strides):
        memory.add(input, memory.part())
    else:
        copy_into(memory.part(), input)
    result = copy_of(divided(memory.whole(), memory.shares()) if memory.shared else memory.whole(), dtype_in(geometry, 2).number)
    if needs_node(input, None):
        record(SCATTER_VIEW, input, None, result, (geometry,))
    return result


def _put_view(TensorImpl input not None, TensorImpl src not None, tuple geometry):
    """Return a copy with the part that a geometry describes replaced by `src`."""
    cdef TensorImpl result
    if not lies_within(geometry):
        raise RuntimeError(f"as_strided_scatter: sizes {list(geometry[PART])} and strides {list(geometry[PART + 1])} from byte "
                           f"{geometry[OFFSET]} on reach beyond a tensor of sizes {list(geometry[0])} and strides {list(geometry[1])}")
    if sizes_tuple(src.ndim, src.sizes) != geometry[PART]:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(sizes_tuple(src.ndim, src.sizes))}, "
                           f"slice size = {list(geometry[PART])}")
    result = copy_in_geometry(input, geometry)
    copy_into(part_of(result, geometry), src)
    if needs_node(input, src):
        record(PUT_VIEW, input, src, result, (geometry,))
    return result
