# cython: cdivision=True
"""Several tensors joined to one, and parts of one in another order."""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._core.compute.parts cimport view_along
from cygrad._core.graph.history cimport attach
from cygrad._core.graph.rule_nodes cimport any_needs_node, rule_node_of_inputs
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, empty, new_address, value_address, view_of
from cygrad._core.memory.sizes cimport add_overflows, integer, sizes_tuple, wrap_dim
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.operands cimport common_of, same_shape
from cygrad._core.programs.deferred cimport copy_later
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize
from cygrad._kernels.programs.settings cimport noted

from cygrad._core.compute.copies import convert
from cygrad._core.operands.operands import checked_out

cdef RuleOp CAT = rule_op("cat", ("sizes", "dim")), STACK = rule_op("stack", ("dim",))

cdef enum:
    SMALL_BLOCK = 1 << 12       # bytes of a piece that are copied without a launch


cdef int write_piece(TensorImpl joined, TensorImpl piece, int along, intptr_t start) except -1:
    """Copy one of the pieces of a new tensor to its place; it may lack the dim that they lie along."""
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t itemsize = cg_itemsize[joined.dtype_nr]
    cdef intptr_t offset = start * joined.strides[along]
    cdef int d, lacks = joined.ndim - piece.ndim
    if (along == 0 and piece.flags & CONTIGUOUS and piece.dtype_nr == joined.dtype_nr and piece.count * itemsize <= SMALL_BLOCK
            and not noted):
        memcpy(new_address(joined) + offset * itemsize, value_address(piece), piece.count * itemsize)
        return 0
    for d in range(piece.ndim):
        strides[d] = joined.strides[d + lacks if d >= along else d]
    return copy_later(view_of(joined, offset, piece.ndim, piece.sizes, strides), piece, True)


cdef int write_pieces(TensorImpl joined, tuple pieces, int along) except -1:
    """Copy the pieces of a new tensor to their places: at last those that are pending, which may stay so."""
    cdef TensorImpl piece
    cdef list pending = None
    cdef intptr_t start = 0
    for piece in pieces:
        if piece.count == 0:        # it may have no such dim
            continue
        if piece.storage.program is not NULL:
            pending = [*(pending or ()), (piece, start)]
        else:
            write_piece(joined, piece, along, start)
        start += piece.sizes[along] if piece.ndim == joined.ndim else 1
    if pending is not None:
        for piece, start in pending:
            write_piece(joined, piece, along, start)
    return 0


cdef tuple given_tensors(str name, object tensors):
    """Return the tensors of a sequence."""
    cdef tuple parts
    if not isinstance(tensors, (list, tuple)) and (isinstance(tensors, TensorImpl) or not hasattr(tensors, "__iter__")):
        kind = "Tensor" if isinstance(tensors, TensorImpl) else type(tensors).__name__
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")
    parts = tuple(tensors)
    for k, item in enumerate(parts):
        if not isinstance(item, TensorImpl):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {type(item).__name__}")
    return parts


def cat(tensors, dim=0, *, out=None):
    """Return tensors joined along a dim; all other sizes must be equal."""
    cdef tuple parts = given_tensors("cat", tensors)
    cdef TensorImpl part, first, result
    cdef intptr_t shape[MAX_DIMS]
    cdef intptr_t joined = integer(dim, "dim")
    cdef list sizes = []
    cdef int d, along, dtype
    cdef bint mixed = False
    if not parts:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    for part in parts:      # an empty vector joins with anything: torch's and NumPy's starting value of loops
        if part.ndim != 1 or part.count:
            first = part
            break
    else:
        first = parts[0]
    dtype = first.dtype_nr
    if first.ndim == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated; use stack()")
    along = wrap_dim(joined, first.ndim)
    memcpy(shape, first.sizes, first.ndim * sizeof(intptr_t))
    shape[along] = 0
    for k, part in enumerate(parts):
        mixed = mixed or part.dtype_nr != first.dtype_nr
        dtype = common_of(dtype, part.dtype_nr)
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
    if mixed:
        parts = tuple([convert(part, dtypes[dtype]) for part in parts])
    result = empty(dtype, first.ndim, shape)
    write_pieces(result, parts, along)
    if any_needs_node(parts):
        attach(result, rule_node_of_inputs(CAT, parts, result, (tuple(sizes), along), 1), 0)
    return result if out is None else checked_out(out, result)


def stack(tensors, dim=0, *, out=None):
    """Return tensors of one shape joined along a new dim."""
    cdef tuple parts = given_tensors("stack", tensors)
    cdef TensorImpl part, first, result
    cdef intptr_t shape[MAX_DIMS]
    cdef intptr_t joined = integer(dim, "dim")
    cdef int along, dtype
    cdef bint mixed = False
    if not parts:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = parts[0]
    dtype = first.dtype_nr
    for k, part in enumerate(parts):
        if not same_shape(part, first):
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(sizes_tuple(first.ndim, first.sizes))} at entry "
                               f"0 and {list(sizes_tuple(part.ndim, part.sizes))} at entry {k}")
        mixed = mixed or part.dtype_nr != first.dtype_nr
        dtype = common_of(dtype, part.dtype_nr)
    along = wrap_dim(joined, first.ndim + 1)
    if first.ndim == MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions")
    memcpy(shape, first.sizes, along * sizeof(intptr_t))
    shape[along] = len(parts)
    memcpy(shape + along + 1, first.sizes + along, (first.ndim - along) * sizeof(intptr_t))
    if mixed:
        parts = tuple([convert(part, dtypes[dtype]) for part in parts])
    result = empty(dtype, first.ndim + 1, shape)
    write_pieces(result, parts, along)
    if any_needs_node(parts):
        attach(result, rule_node_of_inputs(STACK, parts, result, (along,), 1), 0)
    return result if out is None else checked_out(out, result)


def rolled(TensorImpl input not None, tuple steps not None, tuple dims not None):
    """Return a copy whose elements are moved along dims, those beyond the end to the start. Nothing is recorded."""
    cdef TensorImpl x = input, result
    cdef intptr_t size, start
    cdef int d
    for step, dim in zip(steps, dims):
        d = dim
        size = x.sizes[d]
        start = step % max(<object>size, 1)
        result = empty(x.dtype_nr, x.ndim, x.sizes)
        write_piece(result, view_along(x, d, size - start, start), d, 0)
        write_piece(result, view_along(x, d, 0, size - start), d, start)
        x = result
    return x
