# cython: cdivision=True
"""Views by strides (see strided.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.string cimport memset

from cygrad._core.graph.rules cimport record, rule_op, wanted
from cygrad._core.graph.tensor cimport (TensorImpl, byte_offset, empty, empty_strided, new_tensor, offset_of, settled_address, view_of,
                                        zero)
from cygrad._core.memory.sizes cimport bytes_needed, checked_numel, integer, parse_sizes, sizes_tuple, span
from cygrad._core.operands.arrays cimport array_of, values_of
from cygrad._core.operands.operands cimport copy_into, copy_of, is_dense
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize, cg_loops_of

import numpy


# ----- Geometry -----
cdef bint overlaps_itself(int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept:
    """Say whether two elements may share a place; False is sure."""
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


cdef TensorImpl part_of(TensorImpl whole, tuple geometry):
    """Return the part of a tensor that is laid out as the whole of a geometry, without recording."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int ndim = parse_sizes(geometry[2], sizes)
    parse_sizes(geometry[3], strides)
    return new_tensor(whole.storage, byte_offset(whole) + <intptr_t>geometry[4] * cg_itemsize[whole.dtype_nr], whole.dtype_nr, ndim, sizes,
                      strides)


cdef TensorImpl laid_out(TensorImpl x, tuple geometry):
    """Return a copy of a tensor in the layout of the whole of a geometry, without recording."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int ndim = parse_sizes(geometry[0], sizes)
    cdef TensorImpl result
    parse_sizes(geometry[1], strides)
    result = empty_strided(x.dtype_nr, ndim, sizes, strides)
    if not is_dense(result):
        memset(settled_address(result), 0, span(ndim, sizes, strides) * cg_itemsize[x.dtype_nr])
    copy_into(result, x)
    return result


cdef bint lies_within(tuple geometry) except -1:
    """Say whether the part of a geometry lies between the first and the last element of the whole."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t part_sizes[MAX_DIMS]
    cdef intptr_t part_strides[MAX_DIMS]
    cdef int ndim = parse_sizes(geometry[0], sizes), part_ndim = parse_sizes(geometry[2], part_sizes)
    cdef intptr_t offset = geometry[4]
    parse_sizes(geometry[1], strides)
    parse_sizes(geometry[3], part_strides)
    return offset >= 0 and offset + span(part_ndim, part_sizes, part_strides) <= span(ndim, sizes, strides)


cdef object places(object sizes, object strides, object offset):
    """Return the array of the places of elements."""
    result = numpy.full(sizes, offset)
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
    if wanted(input, None):
        record(rule_op("as_strided"), input, None, result, ((
            sizes_tuple(input.ndim, input.sizes), sizes_tuple(input.ndim, input.strides), sizes_tuple(ndim, sizes),
            sizes_tuple(ndim, strides), offset - offset_of(input)),))
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
    cdef tuple given
    cdef TensorImpl buffer

    def __cinit__(self, tuple geometry, int dtype):
        cdef intptr_t length
        self.given, self.offset = geometry, geometry[4]
        self.ndim, self.part_ndim = parse_sizes(geometry[0], self.sizes), parse_sizes(geometry[2], self.part_sizes)
        parse_sizes(geometry[1], self.strides)
        parse_sizes(geometry[3], self.part_strides)
        self.shared = overlaps_itself(self.ndim, self.sizes, self.strides)
        self.low = min(0, self.offset)
        length = max(span(self.ndim, self.sizes, self.strides),
                     self.offset + span(self.part_ndim, self.part_sizes, self.part_strides)) - self.low
        self.buffer = empty(dtype, 1, &length)
        zero(self.buffer)

    cdef TensorImpl at(self, intptr_t place, int ndim, const intptr_t* sizes, const intptr_t* strides):
        return new_tensor(self.buffer.storage, place * cg_itemsize[self.buffer.dtype_nr], self.buffer.dtype_nr, ndim, sizes, strides)

    cdef TensorImpl whole(self):
        return self.at(-self.low, self.ndim, self.sizes, self.strides)

    cdef TensorImpl part(self):
        return self.at(self.offset - self.low, self.part_ndim, self.part_sizes, self.part_strides)

    cdef object share(self):
        """Return by how many elements the place of each element of the whole is shared, and the places."""
        cdef object taken = places(self.given[0], self.given[1], -self.low)
        return numpy.bincount(taken.reshape(-1))[taken], taken


def _gather_view(TensorImpl input not None, tuple geometry):
    """Return the part of a tensor that a geometry describes; zero where that is no part of it."""
    cdef Geometry memory = Geometry(geometry, cg_loops_of[input.dtype_nr])
    cdef TensorImpl result
    if memory.shared:
        shares, taken = memory.share()
        numpy.add.at(array_of(memory.buffer), taken, values_of(input) / shares)
    else:
        copy_into(memory.whole(), input)
    result = copy_of(memory.part(), input.dtype_nr)
    if wanted(input, None):
        record(rule_op("gather_view"), input, None, result, (geometry,))
    return result


def _scatter_view(TensorImpl input not None, tuple geometry):
    """Return zeros in the shape of a geometry's whole with `input` added at its part: the transpose of gathering.

    Elements of the whole that share a place share its gradient.
    """
    cdef Geometry memory = Geometry(geometry, cg_loops_of[input.dtype_nr])
    cdef TensorImpl result
    if overlaps_itself(memory.part_ndim, memory.part_sizes, memory.part_strides):
        numpy.add.at(array_of(memory.buffer), places(geometry[2], geometry[3], memory.offset - memory.low), values_of(input))
    else:
        copy_into(memory.part(), input)
    result = memory.whole()
    if memory.shared:
        result = copy_of(result, result.dtype_nr)
        elements = array_of(result)
        elements /= memory.share()[0]
    result = copy_of(result, input.dtype_nr)
    if wanted(input, None):
        record(rule_op("scatter_view"), input, None, result, (geometry,))
    return result


def _put_view(TensorImpl input not None, TensorImpl src not None, tuple geometry):
    """Return a copy with the part that a geometry describes replaced by `src`."""
    cdef TensorImpl result
    if not lies_within(geometry):
        raise RuntimeError(f"as_strided_scatter: sizes {list(geometry[2])}, strides {list(geometry[3])} and offset {geometry[4]} reach "
                           f"beyond a tensor of sizes {list(geometry[0])} and strides {list(geometry[1])}")
    if sizes_tuple(src.ndim, src.sizes) != geometry[2]:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(sizes_tuple(src.ndim, src.sizes))}, "
                           f"slice size = {list(geometry[2])}")
    result = laid_out(input, geometry)
    copy_into(part_of(result, geometry), src)
    if wanted(input, src):
        record(rule_op("put_view"), input, src, result, (geometry,))
    return result
