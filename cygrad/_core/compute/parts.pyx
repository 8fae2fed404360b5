# cython: cdivision=True
"""Parts of a tensor (see parts.pxd for the contract)."""
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Check, PySlice_Unpack
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.history cimport attach, connect
from cygrad._core.graph.launches cimport Launch, add_part, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.node cimport finish_node_type
from cygrad._core.graph.rule_nodes cimport RuleNode, init_rule_node, record
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport BATCHED, TENSOR_TRACKED, TensorImpl, offset_of, view_of
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.sizes cimport multiply_overflows, sizes_tuple, written
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize

cdef extern from *:
    """
    #include "memory/type_slots.h"
    CG_RECYCLE(part)
    """
    void cg_recycle_part(type kind) noexcept

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX, PY_SSIZE_T_MIN
    ctypedef struct PySliceObject:
        PyObject* start
        PyObject* stop
        PyObject* step

cdef enum:
    LONG_ROW = 128      # elements from which a call for each row of a box pays

cdef RuleOp SLICE = rule_op("slice", ("shape", "key")), SELECT = rule_op("select", ("shape", "key"))


# ----- Views -----
cdef inline Py_ssize_t bound_of(PyObject* bound, Py_ssize_t missing) except? -1:
    """Return a bound of a slice, which is an exact int or None."""
    cdef int overflow = 0
    cdef Py_ssize_t index
    if <object>bound is None:
        return missing
    index = PyLong_AsLongLongAndOverflow(<object>bound, &overflow)
    return index if not overflow else PY_SSIZE_T_MAX if overflow > 0 else PY_SSIZE_T_MIN


cdef inline int unpack_slice(object item, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) except -1:
    """Read a slice of exact items; one without a step in a third of the time that Python takes for any."""
    cdef PySliceObject* part = <PySliceObject*><PyObject*>item
    if <object>part.step is not None:
        PySlice_Unpack(item, start, stop, step)
    else:
        start[0], stop[0], step[0] = bound_of(part.start, 0), bound_of(part.stop, PY_SSIZE_T_MAX), 1
    return 0


cdef bint read_cuts(TensorImpl x, tuple key, Cuts* cuts) except -1:
    """Read the cut that a basic index makes of each dim; False if it holds an index array or a mask."""
    cdef Py_ssize_t index, start, stop, step
    cdef int d = 0, ndim = 0, consumed = 0, ellipses = 0, overflow = 0
    cuts.adds_dims = False
    if len(key) > MAX_DIMS:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    for item in key:
        if PySlice_Check(item):
            consumed += 1
        elif item is Ellipsis:
            ellipses += 1
        elif item is None:
            cuts.adds_dims = True
        else:
            if type(item) is not int:
                return False
            consumed += 1
    if consumed and x.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor." if PySlice_Check(key[0]) else
                         "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number")
    if consumed > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    for item in key:
        if PySlice_Check(item):
            unpack_slice(item, &start, &stop, &step)
            if step <= 0:
                raise ValueError("step must be greater than zero; use flip() for the reverse order")
            cuts.dims[d].length = PySlice_AdjustIndices(x.sizes[d], &start, &stop, step)
            cuts.dims[d].start, cuts.dims[d].step = start, step
            cuts.sources[ndim] = d
            ndim += 1
            d += 1
        elif item is None:
            cuts.sources[ndim] = -1
            ndim += 1
        elif item is Ellipsis:
            ndim = keep_dims(x, cuts, d, d + x.ndim - consumed, ndim)
            d += x.ndim - consumed
        else:
            index = PyLong_AsLongLongAndOverflow(item, &overflow)
            if overflow or index < -x.sizes[d] or index >= x.sizes[d]:
                raise IndexError(f"index {written(item)} is out of bounds for dimension {d} with size {x.sizes[d]}")
            cuts.dims[d].start, cuts.dims[d].length, cuts.dims[d].step = index + x.sizes[d] if index < 0 else index, -1, 1
            d += 1
    cuts.ndim = keep_dims(x, cuts, d, x.ndim, ndim)
    if cuts.ndim > MAX_DIMS:
        raise IndexError(f"tensors have at most {MAX_DIMS} dimensions")
    return True


cdef inline int keep_dims(TensorImpl x, Cuts* cuts, int first, int end, int ndim) noexcept:
    """Keep dims as they are; return how many the view has then."""
    cdef int d
    for d in range(first, end):
        cuts.dims[d].start, cuts.dims[d].length, cuts.dims[d].step = 0, x.sizes[d], 1
        cuts.sources[ndim] = d
        ndim += 1
    return ndim


cdef inline void cut_dim(TensorImpl x, int d, const Cut* cut, intptr_t* offset, intptr_t* size, intptr_t* stride) noexcept:
    """Write the offset, size and stride that a view has from the cut of a dim."""
    if cut.length:
        offset[0] += cut.start * x.strides[d]
    size[0] = cut.length
    if cut.step == 1:
        stride[0] = x.strides[d]
    elif multiply_overflows(x.strides[d], cut.step, stride):
        stride[0] = 1       # of at most one element


cdef TensorImpl basic_view(TensorImpl x, tuple key, Cuts* cuts):
    """Return the view of a basic index, as `read_key` gives it, without recording; None if it holds an index array or a mask."""
    cdef intptr_t sizes[2 * MAX_DIMS]
    cdef intptr_t strides[2 * MAX_DIMS]
    cdef intptr_t offset = 0
    cdef int d, k
    if not read_cuts(x, key, cuts):
        return None
    for k in range(cuts.ndim):
        d = cuts.sources[k]
        if d < 0:
            sizes[k], strides[k] = 1, 0
        else:
            cut_dim(x, d, &cuts.dims[d], &offset, &sizes[k], &strides[k])
    for d in range(x.ndim):
        if cuts.dims[d].length < 0:
            offset += cuts.dims[d].start * x.strides[d]
    return view_of(x, offset, cuts.ndim, sizes, strides)


cdef TensorImpl view_along(TensorImpl x, int d, intptr_t start, intptr_t length):
    """Return the view of some places along a dim, without recording; -1: of one, and the dim is dropped."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int k, dropped = length < 0
    for k in range(d):
        sizes[k], strides[k] = x.sizes[k], x.strides[k]
    sizes[d], strides[d] = length, x.strides[d]
    for k in range(d + 1, x.ndim):
        sizes[k - dropped], strides[k - dropped] = x.sizes[k], x.strides[k]
    return view_of(x, start * x.strides[d] if length else 0, x.ndim - dropped, sizes, strides)


# ----- Nodes -----
cdef inline intptr_t end_of(const Cut* cut) noexcept:
    return cut.start if cut.length == 0 else cut.start + (cut.length - 1) * cut.step + 1


cdef class PartNode(RuleNode):
    """The node of a basic index without None."""

    cdef tuple parameters(self):
        cdef int d
        return (sizes_tuple(self.ndim, self.sizes),
                tuple([self.cuts[d].start if self.cuts[d].length < 0 else
                       slice(self.cuts[d].start, end_of(&self.cuts[d]), self.cuts[d].step) for d in range(self.ndim)]))

    cdef int input_sizes(self, intptr_t* sizes) except -1:
        memcpy(sizes, self.sizes, self.ndim * sizeof(intptr_t))
        return self.ndim

    cdef object place_in(self, TensorImpl whole, PyObject** grads):
        cdef intptr_t sizes[FEW]
        cdef intptr_t strides[FEW]
        cdef intptr_t offset = 0
        cdef int d, ndim = 0
        if whole.flags & BATCHED:
            return RuleNode.place_in(self, whole, grads)
        for d in range(self.ndim):
            if self.cuts[d].length < 0:
                offset += self.cuts[d].start * whole.strides[d]
            else:
                cut_dim(whole, d, &self.cuts[d], &offset, &sizes[ndim], &strides[ndim])
                ndim += 1
        return view_of(whole, offset, ndim, sizes, strides)

    cdef intptr_t run_in(self, TensorImpl whole, TensorImpl g) noexcept:
        cdef intptr_t offset = 0
        cdef int d, left = g.ndim
        cdef bint whole_rows = True
        for d in range(self.ndim - 1, -1, -1):
            offset += self.cuts[d].start * whole.strides[d]
            if self.cuts[d].length < 0:
                whole_rows = whole_rows and whole.sizes[d] == 1
                continue
            left -= 1
            if left < 0 or self.cuts[d].length != g.sizes[left] or self.cuts[d].length > 1 and (
                    not whole_rows or self.cuts[d].step != 1):
                return -1
            whole_rows = whole_rows and self.cuts[d].length == whole.sizes[d]
        return offset if left == 0 and g.count else -1


finish_node_type(PartNode)
cg_recycle_part(PartNode)


cdef int record_part(TensorImpl x, TensorImpl part, tuple items, const Cuts* cuts) except -1:
    """Record a view of a basic index."""
    cdef RuleOp op
    cdef PartNode node
    last = items[len(items) - 1] if items else None
    op = SLICE if PySlice_Check(last) or last is None or last is Ellipsis else SELECT
    if x.ndim > FEW or cuts.adds_dims:
        return record(op, x, None, part, (sizes_tuple(x.ndim, x.sizes), items))
    node = PartNode.__new__(PartNode)
    init_rule_node(node, op, 1)
    node.ndim = x.ndim
    memcpy(node.sizes, x.sizes, x.ndim * sizeof(intptr_t))
    memcpy(node.cuts, cuts.dims, x.ndim * sizeof(Cut))
    connect(node, 0, x)
    if x.flags & TENSOR_TRACKED:
        track_reachable(node)
    return attach(part, node, 0)


# ----- Memory around a part -----
cdef struct Frame:
    int ndim
    intptr_t nbytes
    intptr_t[MAX_DIMS] sizes, starts, lengths


cdef int zero_frame(void* arguments, char** data) noexcept nogil:
    cdef Frame* frame = <Frame*>arguments
    zero_around(data[0], frame.nbytes, frame.ndim, frame.sizes, frame.starts, frame.lengths)
    return 0


cdef void zero_around(char* data, Py_ssize_t size, int ndim, const intptr_t* sizes, const intptr_t* starts, const intptr_t* lengths,
                      ) noexcept nogil:
    """Zero dense memory of `size` bytes except for a box, which is all of it in dims from `ndim` on."""
    cdef Py_ssize_t k, inner = size // sizes[0], start = starts[0], end = starts[0] + lengths[0]
    memset(data, 0, start * inner)
    memset(data + end * inner, 0, (sizes[0] - end) * inner)
    if ndim > 1:
        for k in range(start, end):
            zero_around(data + k * inner, inner, ndim - 1, sizes + 1, starts + 1, lengths + 1)


cdef void zero_outside(TensorImpl whole, TensorImpl part) noexcept:
    """Zero new memory where a view of it is not; all of it where that is as quick."""
    cdef Frame frame
    cdef Launch launch
    cdef Py_ssize_t itemsize = cg_itemsize[whole.dtype_nr], offset = offset_of(part) - offset_of(whole)
    cdef int d, ndim = 0
    cdef bint is_box = part.ndim == whole.ndim and 2 * part.count > whole.count
    clear_arguments(&frame, sizeof(frame))
    for d in range(whole.ndim if is_box else 0):
        is_box = is_box and part.strides[d] == whole.strides[d]
        frame.starts[d] = offset // whole.strides[d]
        offset -= frame.starts[d] * whole.strides[d]
        frame.sizes[d], frame.lengths[d] = whole.sizes[d], part.sizes[d]
        if part.sizes[d] < whole.sizes[d]:
            ndim = d + 1
    if is_box and ndim and whole.sizes[ndim - 1] * whole.strides[ndim - 1] >= LONG_ROW:
        frame.ndim, frame.nbytes = ndim, whole.count * itemsize
        begin_launch(&launch, "frame", zero_frame, &frame, sizeof(frame))
        add_part(&launch, whole)
        run_launch(&launch, False)
    elif not is_box or ndim:
        zero(whole)
