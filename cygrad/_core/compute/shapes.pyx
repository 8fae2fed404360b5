# cython: cdivision=True
"""Views of other shapes and of dims in another order (see shapes.pxd for the contract).

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, view_of
from cygrad._core.memory.sizes cimport (checked_numel, dim_bits, integer, parse_sizes, read_dims, sizes_argument, sizes_tuple,
                                        wrap_dim)
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize

from cygrad._core.compute.copies import contiguous
from cygrad._core.compute.dtype_views import _dtype_given, view_as_dtype


for rule in ("view", "squeeze", "unsqueeze", "expand"):
    rule_op(rule, ("shape",))
cdef RuleOp PERMUTE = rule_op("permute", ("inverse",)), TRANSPOSE = rule_op("transpose", ("dim0", "dim1")), T = rule_op("t", ())


# ----- Shapes -----
cdef bint view_strides(TensorImpl x, int ndim, const intptr_t* shape, intptr_t* strides) noexcept:
    """Write the strides under which the elements of x have another shape; False if there are none."""
    cdef int old = x.ndim - 1, new = ndim - 1
    cdef intptr_t chunk = 1, covered, stride
    if x.count == 0:
        stride = 1
        for new in range(ndim - 1, -1, -1):
            strides[new] = stride
            stride *= max(shape[new], 1)
        return True
    while old >= 0:
        # A run of old dims that lie as one, then the new dims that divide it.
        while old >= 0 and x.sizes[old] == 1:
            old -= 1
        if old < 0:
            break
        stride = x.strides[old]
        chunk = x.sizes[old]
        while old > 0 and (x.sizes[old - 1] == 1 or x.strides[old - 1] == stride * chunk):
            old -= 1
            chunk *= x.sizes[old]
        old -= 1
        covered = 1
        while new >= 0 and (covered < chunk or shape[new] == 1):
            if chunk % (covered * shape[new]):
                return False
            strides[new] = stride * covered
            covered *= shape[new]
            new -= 1
        if covered != chunk:
            return False
    while new >= 0:
        strides[new] = 1
        new -= 1
    return True


cdef TensorImpl reshape_to(TensorImpl x, int ndim, intptr_t* shape, str rule, bint may_copy):
    """Return the elements in another shape (-1: inferred), as a view if possible."""
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t known
    cdef int d, inferred = -1
    cdef TensorImpl view
    for d in range(ndim):
        if shape[d] == -1 and inferred < 0:
            inferred = d
        elif shape[d] < 0:
            raise RuntimeError("only one dimension can be inferred" if shape[d] == -1 else f"invalid shape dimension {shape[d]}")
    if inferred >= 0:
        shape[inferred] = 1
    known = checked_numel(ndim, shape, cg_itemsize[x.dtype_nr])
    if inferred >= 0:
        shape[inferred] = -1
    if inferred >= 0 and known == 0 and x.count == 0:
        raise RuntimeError(f"cannot reshape tensor of {x.count} elements into shape {list(sizes_tuple(ndim, shape))} because the "
                           "unspecified dimension size -1 can be any value and is ambiguous")
    if inferred >= 0 and known and x.count % known == 0:
        shape[inferred] = x.count // known
        known = x.count
    if known != x.count or inferred >= 0 and shape[inferred] < 0:
        raise RuntimeError(f"shape '{list(sizes_tuple(ndim, shape))}' is invalid for input of size {x.count}")
    if x.flags & CONTIGUOUS:
        view = view_of(x, 0, ndim, shape, NULL)
    elif view_strides(x, ndim, shape, strides):
        view = view_of(x, 0, ndim, shape, strides)
    elif may_copy:
        return reshape_to(contiguous(x), ndim, shape, rule, False)
    else:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                           f"contiguous subspaces): sizes {list(sizes_tuple(x.ndim, x.sizes))}, strides "
                           f"{list(sizes_tuple(x.ndim, x.strides))}. Use .reshape(...) instead.")
    if needs_node(x, None):
        record(rule_op(rule), x, None, view, (sizes_tuple(x.ndim, x.sizes),))
    return view


def reshape(TensorImpl input not None, *shape, **keywords):
    """Return the elements in another shape; one size may be -1. A view where possible, else a copy."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int ndim = sizes_argument(shape, keywords, "shape", sizes)
    return reshape_to(input, ndim, sizes, "view", True)


def view(TensorImpl input not None, *shape, **keywords):
    """Return a view of another shape, or of another dtype; RuntimeError where the strides do not allow one."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int ndim
    dtype = _dtype_given(shape, keywords)
    if dtype is not None:
        return view_as_dtype(input, dtype)
    ndim = sizes_argument(shape, keywords, "size", sizes)
    return reshape_to(input, ndim, sizes, "view", False)


def flatten(TensorImpl input not None, start_dim=0, end_dim=-1):
    """Return the dims from `start_dim` to `end_dim` joined into one."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t start = integer(start_dim, "start_dim"), end = integer(end_dim, "end_dim")
    cdef int first = wrap_dim(start, input.ndim), last = wrap_dim(end, input.ndim), d, ndim = 0
    if first > last:
        raise RuntimeError(f"flatten() has invalid args: start_dim cannot come after end_dim, got {start} and {end}")
    if input.ndim == 1:
        return input
    for d in range(input.ndim):
        if d <= first or d > last:
            sizes[ndim] = input.sizes[d]
            ndim += 1
        else:
            sizes[ndim - 1] *= input.sizes[d]
    if input.ndim == 0:
        sizes[0], ndim = 1, 1
    return reshape_to(input, ndim, sizes, "view", True)


def squeeze(TensorImpl input not None, dim=None):
    """Return a view without the dims of size 1: all of them, or those named."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int d, ndim = 0
    cdef unsigned long long dims = dim_bits(read_dims(dim), input.ndim)
    for d in range(input.ndim):
        if input.sizes[d] != 1 or not dims >> d & 1:
            sizes[ndim], strides[ndim] = input.sizes[d], input.strides[d]
            ndim += 1
    return shape_view(input, ndim, sizes, strides, "squeeze")


def unsqueeze(TensorImpl input not None, dim):
    """Return a view with a dim of size 1 put in at `dim`."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t requested_position = integer(dim, "dim")
    cdef int position = wrap_dim(requested_position, input.ndim + 1), d
    if input.ndim == MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions")
    for d in range(input.ndim):
        sizes[d + (d >= position)], strides[d + (d >= position)] = input.sizes[d], input.strides[d]
    sizes[position] = 1
    strides[position] = input.sizes[position] * input.strides[position] if position < input.ndim else 1
    return shape_view(input, input.ndim + 1, sizes, strides, "unsqueeze")


cdef TensorImpl shape_view(TensorImpl x, int ndim, const intptr_t* sizes, const intptr_t* strides, str rule):
    """Make a view whose gradient is reshaped back."""
    cdef TensorImpl result = view_of(x, 0, ndim, sizes, strides)
    if needs_node(x, None):
        record(rule_op(rule), x, None, result, (sizes_tuple(x.ndim, x.sizes),))
    return result


def permute(TensorImpl input not None, *dims, **keywords):
    """Return a view with the dims in another order."""
    cdef intptr_t order[MAX_DIMS]
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t inverse[MAX_DIMS]
    cdef int ndim = sizes_argument(dims, keywords, "dims", order), d, source
    cdef TensorImpl result
    if ndim != input.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
                           f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {ndim}")
    memset(inverse, 255, sizeof(inverse))
    for d in range(ndim):
        source = wrap_dim(order[d], ndim)
        if inverse[source] >= 0:
            raise RuntimeError(f"permute(): duplicate dims are not allowed, got {list(sizes_tuple(ndim, order))}")
        inverse[source] = d
        sizes[d], strides[d] = input.sizes[source], input.strides[source]
    result = view_of(input, 0, ndim, sizes, strides)
    if needs_node(input, None):
        record(PERMUTE, input, None, result, (sizes_tuple(ndim, inverse),))
    return result


cdef TensorImpl exchanged(TensorImpl x, int dim0, int dim1):
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    memcpy(sizes, x.sizes, x.ndim * sizeof(intptr_t))
    memcpy(strides, x.strides, x.ndim * sizeof(intptr_t))
    if x.ndim:
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
        strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return view_of(x, 0, x.ndim, sizes, strides)


cdef TensorImpl transposed(TensorImpl x, int dim0, int dim1, RuleOp rule):
    cdef TensorImpl result = exchanged(x, dim0, dim1)
    if needs_node(x, None):
        record(rule, x, None, result, (dim0, dim1) if rule is TRANSPOSE else ())
    return result


def transpose(TensorImpl input not None, dim0=None, dim1=None, *dims, axes=None):
    """Return a view with two dims exchanged; or, as NumPy has it, with all dims in another order, by default reversed."""
    cdef intptr_t first, second
    if dim1 is None or dims or axes is not None:
        return permute(input, numpy_order(input.ndim, dim0, dim1, dims, axes))
    first, second = integer(dim0, "dim0"), integer(dim1, "dim1")
    return transposed(input, wrap_dim(first, input.ndim), wrap_dim(second, input.ndim), TRANSPOSE)


cdef extern from "Python.h":
    bint PyIndex_Check(object value)


cdef tuple numpy_order(int ndim, object dim0, object dim1, tuple dims, object axes):
    """Return the order of dims that a call of `transpose` gives in NumPy's way."""
    cdef intptr_t order[MAX_DIMS]
    if axes is not None and dim0 is not None:
        raise TypeError("transpose(): the order of dims was given twice, by position and as axes=")
    if axes is None and dim0 is None and dim1 is None:
        return tuple(range(ndim))[::-1]
    if dims:
        return (dim0, dim1, *dims)
    if axes is None and PyIndex_Check(dim0):
        raise TypeError('transpose() missing 1 required positional argument: "dim1"; or give the order of all dims')
    ndim = parse_sizes(dim0 if axes is None else axes, order, "axes")
    return sizes_tuple(ndim, order)


def t(TensorImpl input not None):
    """Return the transpose of a matrix; a vector or scalar as it is."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D; use .mT for a batch of matrices")
    return transposed(input, 0, 1, T) if input.ndim == 2 else input


def matrix_transpose(TensorImpl input not None):
    """Return a view with the last two dims exchanged (`.mT`)."""
    if input.ndim == 0:
        return permute(input)
    if input.ndim == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transposed(input, input.ndim - 2, input.ndim - 1, TRANSPOSE)


def reverse_dims(TensorImpl input not None):
    """Return a view with the dims in reverse order (`.T`)."""
    return t(input) if input.ndim == 2 else permute(input, *range(input.ndim - 1, -1, -1))


def expand(TensorImpl input not None, *sizes, **keywords):
    """Return a view in which dims of size 1 are repeated without a copy; -1 keeps a size."""
    cdef intptr_t shape[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int ndim = sizes_argument(sizes, keywords, "size", shape), d, source
    cdef TensorImpl result
    if ndim < input.ndim:
        raise RuntimeError(f"expand: the number of sizes provided ({ndim}) must be greater or equal to the number of dimensions in the "
                           f"tensor ({input.ndim})")
    for d in range(ndim):
        source = d - (ndim - input.ndim)
        if source < 0:
            if shape[d] < 0:
                raise RuntimeError(f"The expanded size of the tensor ({shape[d]}) isn't allowed in a leading, non-existing dimension {d}")
            strides[d] = 0
        elif shape[d] == -1 or shape[d] == input.sizes[source]:
            shape[d], strides[d] = input.sizes[source], input.strides[source]
        elif input.sizes[source] == 1 and shape[d] >= 0:
            strides[d] = 0
        else:
            raise RuntimeError(f"The expanded size of the tensor ({shape[d]}) must match the existing size ({input.sizes[source]}) at "
                               f"non-singleton dimension {d}.  Target sizes: {list(sizes_tuple(ndim, shape))}.  "
                               f"Tensor sizes: {list(sizes_tuple(input.ndim, input.sizes))}")
    checked_numel(ndim, shape, cg_itemsize[input.dtype_nr])
    result = view_of(input, 0, ndim, shape, strides)
    if needs_node(input, None):
        record(rule_op("expand"), input, None, result, (sizes_tuple(input.ndim, input.sizes),))
    return result


def sum_to_size(TensorImpl input not None, *size, **keywords):
    """Return the sum over the dims that broadcasting from `size` has made."""
    cdef intptr_t shape[MAX_DIMS]
    cdef int ndim = sizes_argument(size, keywords, "size", shape), d, leading = 0
    leading = input.ndim - ndim
    cdef list dims = list(range(leading)) if leading > 0 else []
    cdef bint keeps_dims
    for d in range(ndim):
        if leading < 0 or shape[d] != 1 and shape[d] != input.sizes[leading + d]:
            raise RuntimeError(f"size {{{list(sizes_tuple(ndim, shape))}}} is not expandable to size "
                               f"{{{list(sizes_tuple(input.ndim, input.sizes))}}}.")
        if shape[d] == 1 and input.sizes[leading + d] != 1:
            dims.append(leading + d)
    if not dims:
        return input if leading == 0 else reshape_to(input, ndim, shape, "view", True)
    keeps_dims = len(dims) > leading
    summed = (<object>input).sum(dims[0] if len(dims) == 1 else tuple(dims), keeps_dims)
    return reshape_to(summed, ndim, shape, "view", True) if leading and keeps_dims else summed
