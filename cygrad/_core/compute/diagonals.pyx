"""Diagonals as views, and triangles of matrices.

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from libc.stdint cimport intptr_t
from libc.string cimport memset

from cygrad._core.graph.launches cimport Launch, add_changed, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport TensorImpl, empty, view_of
from cygrad._core.memory.sizes cimport integer, sizes_tuple, wrap_dim
from cygrad._core.operands.operands cimport fill_from
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize

from cygrad._core.operands.operands import checked_out

cdef RuleOp DIAGONAL = rule_op("diagonal", ("shape", "offset", "dim1", "dim2"))
cdef RuleOp TRIL = rule_op("tril", ("diagonal",)), TRIU = rule_op("triu", ("diagonal",))


def diagonal(TensorImpl input not None, offset=0, dim1=0, dim2=1):
    """Return the view of a diagonal of two dims, as the last dim; `offset` counts above (or, negative, below) the main one."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t above = integer(offset, "offset"), of_rows = integer(dim1, "dim1"), of_columns = integer(dim2, "dim2"), length, start = 0
    cdef int first = wrap_dim(of_rows, input.ndim), second = wrap_dim(of_columns, input.ndim), d, ndim = 0
    if input.ndim < 2 or first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {of_rows}, {of_columns}: a diagonal runs through two dims")
    for d in range(input.ndim):
        if d != first and d != second:
            sizes[ndim], strides[ndim] = input.sizes[d], input.strides[d]
            ndim += 1
    if above >= 0:      # neither difference overflows
        length = min(input.sizes[first], input.sizes[second] - above)
    else:
        length = min(input.sizes[first] + above, input.sizes[second])
    length = max(length, 0)
    if length:
        start = above * input.strides[second] if above >= 0 else -above * input.strides[first]
    sizes[ndim], strides[ndim] = length, input.strides[first] + input.strides[second]
    cdef TensorImpl result = view_of(input, start, ndim + 1, sizes, strides)
    if needs_node(input, None):
        record(DIAGONAL, input, None, result, (sizes_tuple(input.ndim, input.sizes), above, first, second))
    return result


cdef struct Triangle:
    intptr_t count, rows, columns, above    # of rows in all, and of a matrix; from where on the diagonal is
    int itemsize
    bint upper


cdef int zero_triangle(void* arguments, char** data) noexcept nogil:
    cdef Triangle* side = <Triangle*>arguments
    cdef char* row_data = data[0]
    cdef intptr_t row, inside
    for row in range(side.count):
        # Elements in front of where the diagonal cuts.
        inside = max(<intptr_t>0, min(row % side.rows + side.above + (0 if side.upper else 1), side.columns))
        memset(row_data if side.upper else row_data + inside * side.itemsize, 0,
               (inside if side.upper else side.columns - inside) * side.itemsize)
        row_data += side.columns * side.itemsize
    return 0


cdef object triangle(RuleOp rule, TensorImpl input, object diagonal, bint upper, object out):
    """Copy matrices with zeros on one side of a diagonal, row by row."""
    cdef TensorImpl result
    cdef Triangle side
    cdef Launch launch
    cdef intptr_t above, rows, columns
    clear_arguments(&side, sizeof(side))
    if input.ndim < 2:
        raise RuntimeError(f"{rule.name}: input tensor must have at least 2 dimensions, it has {input.ndim}")
    rows, columns = input.sizes[input.ndim - 2], input.sizes[input.ndim - 1]
    above = max(-rows - columns, min(integer(diagonal, "diagonal"), rows + columns))     # further out nothing changes
    result = empty(input.dtype_nr, input.ndim, input.sizes)
    fill_from(result, input)
    side.count, side.rows, side.columns, side.above = result.count // columns if columns else 0, rows, columns, above
    side.itemsize, side.upper = cg_itemsize[input.dtype_nr], upper
    begin_launch(&launch, "triangle", zero_triangle, &side, sizeof(side))
    add_changed(&launch, result)
    run_launch(&launch, False)
    if needs_node(input, None):
        record(rule, input, None, result, (above,))
    return result if out is None else checked_out(out, result)


def tril(TensorImpl input not None, diagonal=0, *, out=None):
    """Copy matrices with zeros above a diagonal."""
    return triangle(TRIL, input, diagonal, False, out)


def triu(TensorImpl input not None, diagonal=0, *, out=None):
    """Copy matrices with zeros below a diagonal."""
    return triangle(TRIU, input, diagonal, True, out)
