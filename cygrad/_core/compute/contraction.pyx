# cython: cdivision=True
"""Sums of products as products of matrices (see contraction.pxd for the contract)."""
from libc.stdint cimport intptr_t

from cygrad._core.compute.products cimport product
from cygrad._core.graph.tensor cimport TensorImpl, new_tensor, view_of
from cygrad._core.memory.storage cimport Storage
from cygrad._core.operands.operands cimport fill_from
from cygrad._core.programs.pending_reductions cimport pending_product
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, Operand, cg_itemsize

cdef enum:
    LEAST = 4           # rows, columns and summands from which a product of matrices is quicker than a pass

contracts = True


def set_contraction(bint enabled):
    """Sum products by products of matrices where that is quicker (True, the default), or element by element; return the setting before.

    It is about `(a * b).sum(dims)` of large floats of which each lacks a dim of the other, and about gradients that are such sums. They
    have other last bits than the sum of the elements, and may depend on the threads of BLAS.

    >>> from cygrad import config
    >>> config.set_contraction(False)
    True
    >>> config.set_contraction(True)
    False
    """
    global contracts
    before = contracts
    contracts = enabled
    return before


cdef struct Dim:
    intptr_t size, left, right      # elements, and bytes between them in both factors
    intptr_t out                    # elements between them in the result


cdef bint contract(TensorImpl x, const char* is_reduced, TensorImpl result) except -1:
    cdef Operand factors[2]
    cdef Dim dims[MAX_DIMS + 2]     # batches; then the rows of the left, and the columns of the right matrices
    cdef Dim inner, dim
    cdef int batches = 0, d, rows = -1, columns = -1
    cdef intptr_t out = 1
    cdef list storages = []
    if not contracts or not pending_product(x, factors, storages):
        return False
    inner.size, inner.left, inner.right = 1, 0, 0
    for d in range(x.ndim - 1, -1, -1):
        dim.size, dim.left, dim.right, dim.out = x.sizes[d], factors[0].strides[d], factors[1].strides[d], out
        if is_reduced[d]:
            if dim.size == 1:
                continue
            if not dim.left or not dim.right or inner.size > 1 and (dim.left != inner.left * inner.size
                                                                    or dim.right != inner.right * inner.size):
                return False
            if inner.size == 1:
                inner = dim
            else:
                inner.size *= dim.size
            continue
        out *= dim.size
        if dim.size == 1:
            continue
        dims[batches] = dim
        if dim.left and not dim.right and (rows < 0 or dim.size > dims[rows].size):
            rows = batches
        if dim.right and not dim.left and (columns < 0 or dim.size > dims[columns].size):
            columns = batches
        batches += 1
    if rows < 0 or columns < 0 or min(inner.size, min(dims[rows].size, dims[columns].size)) < LEAST:
        return False
    multiply_batches(dims, batches, rows, columns, &inner, factors, storages, result)
    return True


cdef int multiply_batches(const Dim* dims, int batches, int rows, int columns, const Dim* inner, const Operand* factors, list storages,
                          TensorImpl result) except -1:
    """Multiply matrices of some dims for all places in the others."""
    cdef intptr_t shapes[3][MAX_DIMS]
    cdef intptr_t strides[3][MAX_DIMS]
    cdef intptr_t size = cg_itemsize[result.dtype_nr]
    cdef TensorImpl left, right
    cdef int d, count = 0
    for d in range(batches):
        if d != rows and d != columns:
            shapes[0][count] = shapes[1][count] = shapes[2][count] = dims[d].size
            strides[0][count], strides[1][count], strides[2][count] = dims[d].left // size, dims[d].right // size, dims[d].out
            count += 1
    shapes[0][count] = shapes[2][count] = dims[rows].size
    shapes[1][count] = shapes[0][count + 1] = inner.size
    shapes[1][count + 1] = shapes[2][count + 1] = dims[columns].size
    strides[0][count], strides[0][count + 1] = dims[rows].left // size, inner.left // size
    strides[1][count], strides[1][count + 1] = inner.right // size, dims[columns].right // size
    strides[2][count], strides[2][count + 1] = dims[rows].out, dims[columns].out
    left = matrices(<Storage>storages[0], &factors[0], count + 2, shapes[0], strides[0])
    right = matrices(<Storage>storages[1], &factors[1], count + 2, shapes[1], strides[1])
    return fill_from(view_of(result, 0, count + 2, shapes[2], strides[2]), product(left, right))


cdef TensorImpl matrices(Storage storage, const Operand* factor, int ndim, const intptr_t* shape, const intptr_t* strides):
    return new_tensor(storage, factor.data - storage.data, factor.dtype, ndim, shape, strides)
