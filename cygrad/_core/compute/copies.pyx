# cython: cdivision=True
"""Copies of whole tensors, in another layout or dtype (see copies.pxd for the contract)."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, empty, empty_strided, shallow_copy
from cygrad._core.levels.observers cimport profiling_threads
from cygrad._core.memory.formats cimport fill_strides, lies_in_order, order_of
from cygrad._core.memory.storage cimport DType, dtype_number, dtypes
from cygrad._core.operands.operands cimport copy_of, fill_from
from cygrad._core.programs.deferred cimport defer_copy
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, MAX_DIMS, cg_is_differentiable

import warnings

from cygrad._core.memory.formats import preserve_format

cdef RuleOp CONVERT = rule_op("convert", ("dtype",))


cdef TensorImpl empty_in_order(tuple order, int dtype, int ndim, const intptr_t* sizes):
    """Return an unset tensor whose dims lie in an order, None: row-major."""
    cdef intptr_t strides[MAX_DIMS]
    if order is None:
        return empty(dtype, ndim, sizes)
    fill_strides(order, sizes, strides)
    return empty_strided(dtype, ndim, sizes, strides)


def clone(TensorImpl input not None, *, memory_format=None):
    """Return a copy that gradients flow through; a dense tensor's dims keep their order unless a memory format is given."""
    cdef TensorImpl result
    if memory_format is None or memory_format is preserve_format:
        result = copy_of(input, input.dtype_nr)
    else:
        result = empty_in_order(order_of("clone", memory_format, input.ndim), input.dtype_nr, input.ndim, input.sizes)
        fill_from(result, input)
    if needs_node(input, result):      # written into a tensor of its own, which may be followed where the input is not
        record(rule_op("clone"), input, None, result, ())
    return result


def contiguous(TensorImpl input not None, *, memory_format=None):
    """Return the tensor itself if it is dense and row-major, or as a memory format has it, else a copy that is."""
    cdef TensorImpl result
    cdef tuple order = None if memory_format is None else order_of("contiguous", memory_format, input.ndim)
    if input.flags & CONTIGUOUS if order is None else lies_in_order(order, input.ndim, input.sizes, input.strides):
        return input
    result = empty_in_order(order, input.dtype_nr, input.ndim, input.sizes)
    fill_from(result, input)
    if needs_node(input, None):
        record(rule_op("clone"), input, None, result, ())
    return result


def detach(TensorImpl input not None):
    """Return a tensor of the same memory, and the same version counter, that needs no gradient."""
    return shallow_copy(input)


def convert(TensorImpl input not None, dtype, copy=False):
    """Return the tensor in another dtype; itself if it has that dtype and no copy is asked for."""
    cdef int number = dtype_number(dtype)
    cdef TensorImpl result = None
    if number == input.dtype_nr:
        return clone(input) if copy else input
    if (input.storage.program is not NULL or needs_node(input, None)) and not profiling_threads:
        result = defer_copy(input, number)
    if result is None:
        result = copy_of(input, number)
    if needs_node(input, result) and cg_is_differentiable[number]:
        record(CONVERT, input, None, result, (dtypes[input.dtype_nr],))
    return result


def warn_of_parts(DType source not None, DType target not None, int stacklevel=1):
    """Warn where a user's conversion drops imaginary parts; gradients of real operands beside complex ones drop them silently."""
    if source.is_complex and not target.is_complex and target.number != CG_BOOL:
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=stacklevel)
