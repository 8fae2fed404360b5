# cython: cdivision=True
"""Views of other shapes, and copies (see views.pxd).

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

from cygrad._core.graph.rules cimport RuleOp, record, rule_op, wanted
from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, empty, empty_strided, view_of
from cygrad._core.memory.formats cimport fill_strides, lies_in_order, order_of
from cygrad._core.memory.sizes cimport add_overflows, checked_numel, integer, read_dims, sizes_argument, sizes_tuple, wrap_dim
from cygrad._core.memory.storage cimport dtype_number, dtypes
from cygrad._core.operands.operands cimport copy_into, copy_of
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize, cg_kind, cg_promotion

from cygrad._core.memory.formats import preserve_format
from cygrad._core.operands.operands import checked_out
from cygrad._core.graph.rules import record_rule


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
    if wanted(x, None):
        record(rule_op(rule), x, None, view, (sizes_tuple(x.ndim, x.sizes),))
    return view


def reshape(TensorImpl input not None, *shape, **keywords):
    """Return the elements in another shape; one size may be -1. A view where possible, else a copy."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int ndim = sizes_argument(shape, keywords, "shape", sizes)
    return reshape_to(input, ndim, sizes, "view", True)


def view(TensorImpl input not None, *shape, **keywords):
    """Return a view of another shape; RuntimeError where the strides do not allow one."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int ndim = sizes_argument(shape, keywords, "size", sizes)
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
    cdef tuple dims = read_dims(dim)
    cdef set chosen = None if dims is None else {wrap_dim(item, input.ndim) for item in dims}
    for d in range(input.ndim):
        if input.sizes[d] != 1 or chosen is not None and d not in chosen:
            sizes[ndim], strides[ndim] = input.sizes[d], input.strides[d]
            ndim += 1
    return shape_view(input, ndim, sizes, strides, "squeeze")


def unsqueeze(TensorImpl input not None, dim):
    """Return a view with a dim of size 1 put in at `dim`."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t wanted_place = integer(dim, "dim")
    cdef int place = wrap_dim(wanted_place, input.ndim + 1), d
    if input.ndim == MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions")
    for d in range(input.ndim):
        sizes[d + (d >= place)], strides[d + (d >= place)] = input.sizes[d], input.strides[d]
    sizes[place] = 1
    strides[place] = input.sizes[place] * input.strides[place] if place < input.ndim else 1
    return shape_view(input, input.ndim + 1, sizes, strides, "unsqueeze")


cdef TensorImpl shape_view(TensorImpl x, int ndim, const intptr_t* sizes, const intptr_t* strides, str rule):
    """Make a view whose gradient is reshaped back."""
    cdef TensorImpl result = view_of(x, 0, ndim, sizes, strides)
    if wanted(x, None):
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
    if wanted(input, None):
        record(rule_op("permute"), input, None, result, (sizes_tuple(ndim, inverse),))
    return result


cdef TensorImpl transposed(TensorImpl x, int dim0, int dim1, str rule):
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef TensorImpl result
    memcpy(sizes, x.sizes, x.ndim * sizeof(intptr_t))
    memcpy(strides, x.strides, x.ndim * sizeof(intptr_t))
    if x.ndim:
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
        strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    result = view_of(x, 0, x.ndim, sizes, strides)
    if wanted(x, None):
        record(rule_op(rule), x, None, result, (dim0, dim1) if rule == "transpose" else ())
    return result


def transpose(TensorImpl input not None, dim0, dim1):
    """Return a view with two dims exchanged."""
    cdef intptr_t first = integer(dim0, "dim0"), second = integer(dim1, "dim1")
    return transposed(input, wrap_dim(first, input.ndim), wrap_dim(second, input.ndim), "transpose")


def t(TensorImpl input not None):
    """Return the transpose of a matrix; a vector or scalar as it is."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D; use .mT for a batch of matrices")
    return transposed(input, 0, 1, "t") if input.ndim == 2 else input


def matrix_transpose(TensorImpl input not None):
    """Return a view with the last two dims exchanged (`.mT`)."""
    if input.ndim == 0:
        return permute(input)
    if input.ndim == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transposed(input, input.ndim - 2, input.ndim - 1, "transpose")


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
    if wanted(input, None):
        record(rule_op("expand"), input, None, result, (sizes_tuple(input.ndim, input.sizes),))
    return result


def sum_to_size(TensorImpl input not None, *size, **keywords):
    """Return the sum over the dims that broadcasting from `size` has made."""
    cdef intptr_t shape[MAX_DIMS]
    cdef int ndim = sizes_argument(size, keywords, "size", shape), d, leading = 0
    leading = input.ndim - ndim
    cdef list dims = list(range(leading)) if leading > 0 else []
    for d in range(ndim):
        if leading < 0 or shape[d] != 1 and shape[d] != input.sizes[leading + d]:
            raise RuntimeError(f"size {{{list(sizes_tuple(ndim, shape))}}} is not expandable to size "
                               f"{{{list(sizes_tuple(input.ndim, input.sizes))}}}.")
        if shape[d] == 1 and input.sizes[leading + d] != 1:
            dims.append(leading + d)
    if not dims:
        return input if leading == 0 else reshape_to(input, ndim, shape, "view", True)
    summed = (<object>input).sum(tuple(dims), keepdim=True)
    return reshape_to(summed, ndim, shape, "view", True) if leading else summed


# ----- Copies -----
cdef TensorImpl empty_in_order(tuple order, int dtype, int ndim, const intptr_t* sizes):
    """Return an unset tensor whose dims lie in an order, None: row-major."""
    cdef intptr_t strides[MAX_DIMS]
    if order is None:
        return empty(dtype, ndim, sizes)
    fill_strides(order, sizes, strides)
    return empty_strided(dtype, ndim, sizes, strides)


def clone(TensorImpl input not None, *, memory_format=None):
    """Return a copy that gradients flow through; a dense tensor's dims keep their order unless a memory format is given.

    >>> import cygrad
    >>> cygrad.ones(2).clone()
    tensor([1., 1.])
    """
    cdef TensorImpl result
    if memory_format is None or memory_format is preserve_format:
        result = copy_of(input, input.dtype_nr)
    else:
        result = empty_in_order(order_of("clone", memory_format, input.ndim), input.dtype_nr, input.ndim, input.sizes)
        copy_into(result, input)
    if wanted(input, result):      # written into a tensor of its own, which may be followed where the input is not
        record(rule_op("clone"), input, None, result, ())
    return result


def contiguous(TensorImpl input not None, *, memory_format=None):
    """Return the tensor itself if it is dense and row-major, or as a memory format has it, else a copy that is.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).T.contiguous().is_contiguous()
    True
    """
    cdef TensorImpl result
    cdef tuple order = None if memory_format is None else order_of("contiguous", memory_format, input.ndim)
    if input.flags & CONTIGUOUS if order is None else lies_in_order(order, input.ndim, input.sizes, input.strides):
        return input
    result = empty_in_order(order, input.dtype_nr, input.ndim, input.sizes)
    copy_into(result, input)
    if wanted(input, None):
        record(rule_op("clone"), input, None, result, ())
    return result


def convert(TensorImpl input not None, dtype, copy=False):
    """Return the tensor in another dtype; itself if it has that dtype and no copy is asked for."""
    cdef int number = dtype_number(dtype)
    cdef TensorImpl result
    if number == input.dtype_nr:
        return clone(input) if copy else input
    result = copy_of(input, number)
    if wanted(input, result) and cg_kind[number] == b"f":
        record(rule_op("to_copy"), input, None, result, (dtypes[input.dtype_nr],))
    return result


cdef RuleOp CAT = rule_op("cat")


def cat(tensors, dim=0, *, out=None):
    """Return tensors joined along a dim; all other sizes must be equal."""
    if isinstance(tensors, TensorImpl):
        raise TypeError("cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    if not hasattr(tensors, "__iter__"):
        raise TypeError(f"cat(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    cdef tuple parts = tuple(tensors)
    cdef TensorImpl part, first, result, place
    cdef intptr_t shape[MAX_DIMS]
    cdef intptr_t start = 0, joined = integer(dim, "dim")
    cdef list sizes = []
    cdef int d, along, dtype
    if not parts:
        raise RuntimeError("cat(): expected a non-empty list of Tensors")
    for k, item in enumerate(parts):
        if not isinstance(item, TensorImpl):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {type(item).__name__}")
    # An empty vector joins with anything: torch's and NumPy's starting value of loops.
    shaped = tuple([part for part in parts if (<TensorImpl>part).ndim != 1 or (<TensorImpl>part).count]) or parts
    first = shaped[0]
    dtype = first.dtype_nr
    if first.ndim == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated; use stack()")
    along = wrap_dim(joined, first.ndim)
    memcpy(shape, first.sizes, first.ndim * sizeof(intptr_t))
    shape[along] = 0
    for k, part in enumerate(parts):
        dtype = cg_promotion[dtype][part.dtype_nr]
        if part.ndim == 1 and part.count == 0 and first.ndim != 1:
            sizes.append(None)
            continue
        if part.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {part.ndim}")
        for d in range(first.ndim):
            if d != along and part.sizes[d] != shape[d]:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {along}. Expected size {shape[d]} but got size "
                                   f"{part.sizes[d]} for tensor number {k} in the list.")
        if add_overflows(shape[along], part.sizes[along], &shape[along]):
            raise RuntimeError(f"cat(): the sizes in dim {along} add up to 2**63 or more")
        sizes.append(part.sizes[along])
    parts = tuple([convert(part, dtypes[dtype]) for part in parts])
    result = empty(dtype, first.ndim, shape)
    for k, part in enumerate(parts):
        if sizes[k] is None:
            continue
        shape[along] = part.sizes[along]
        place = view_of(result, start * result.strides[along], first.ndim, shape, result.strides)
        copy_into(place, part)
        start += part.sizes[along]
    record_rule(CAT, parts, result, sizes=sizes, dim=along)
    return result if out is None else checked_out(out, result)
