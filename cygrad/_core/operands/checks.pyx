"""Checks of tensors for operators that are written in Python: dtypes that they take, and shapes."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.sizes cimport parse_sizes
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.operands cimport shape_is
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_loops_of

from cygrad.ops.refusals import REFUSALS, refusal


def check_dtype(str name not None, tensor):
    """Refuse a tensor of a dtype that the operator, or one of its forms, does not take."""
    dtype = dtypes[(<TensorImpl>tensor).dtype_nr] if isinstance(tensor, TensorImpl) else tensor.dtype
    if (name, dtype.kind) in <dict>REFUSALS:
        raise refusal(name, dtype.name)


def checked_operand(operator, tensor):
    """Return a tensor, of a dtype that the operator takes."""
    check_dtype(operator.name, tensor)
    return tensor


def in_loops(*tensors):
    """Return tensors, or None for each that is None, in the dtype that they are computed in: 16-bit ones in float32."""
    cdef TensorImpl tensor
    for tensor in tensors:
        if tensor is not None and cg_loops_of[tensor.dtype_nr] != tensor.dtype_nr:
            break
    else:
        return tensors
    return tuple([x if x is None else (<object>x).to(dtypes[cg_loops_of[(<TensorImpl>x).dtype_nr]]) for x in tensors])


def are_like(TensorImpl tensor not None, tuple shape, *others):
    """Return True if other tensors, or None, have the dtype of a tensor, and a shape."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int ndim = parse_sizes(shape, sizes)
    cdef TensorImpl other
    for other in others:
        if other is not None and (other.dtype_nr != tensor.dtype_nr or not shape_is(other, ndim, sizes)):
            return False
    return True
