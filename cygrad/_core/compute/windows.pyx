"""Windows along a dim, as views.

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from libc.stdint cimport intptr_t

from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport TensorImpl, view_of
from cygrad._core.memory.sizes cimport checked_numel, integer, multiply_overflows, sizes_tuple, wrap_dim
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize

cdef RuleOp UNFOLD = rule_op("unfold", ("shape", "dim", "size", "step"))


def unfold(TensorImpl input not None, dimension, size, step):
    """Return the view of all windows of `size` along a dim, `step` apart; the windows are the last dim."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t requested_dim = integer(dimension, "dimension"), width = integer(size, "size"), apart = integer(step, "step")
    cdef int along = wrap_dim(requested_dim, input.ndim), d
    cdef intptr_t there = input.sizes[along] if input.ndim else 1
    if input.ndim == MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions")
    if width < 0:
        raise RuntimeError(f"size is {width} but must be >= 0")
    if width > there:
        raise RuntimeError(f"maximum size for tensor at dimension {along} is {there} but size is {width}")
    if apart <= 0:
        raise RuntimeError(f"step is {apart} but must be > 0")
    for d in range(input.ndim):
        sizes[d], strides[d] = input.sizes[d], input.strides[d]
    strides[input.ndim], sizes[input.ndim] = input.strides[along] if input.ndim else 1, width
    if input.ndim:
        sizes[along] = (there - width) // apart + 1
        if multiply_overflows(apart, input.strides[along], &strides[along]):
            strides[along] = 1          # of one window
        checked_numel(input.ndim + 1, sizes, cg_itemsize[input.dtype_nr])
    cdef TensorImpl result = view_of(input, 0, input.ndim + 1, sizes, strides)
    if needs_node(input, None):
        record(UNFOLD, input, None, result, (sizes_tuple(input.ndim, input.sizes), along, width, apart))
    return result
