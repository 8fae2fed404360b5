# cython: cdivision=True
"""Matrix products by NumPy's own inner loop, hence by its BLAS, or by one of the same interface: no GIL, batches, any strides.

Ours are for small matrices, and for real ones that are quicker by blocks than by BLAS. NumPy's sets floating-point status flags and leaves
them. The output must not overlap an input, so it is always new. Bits may depend on BLAS's own threads (OpenBLAS: from n = 300).
"""
from libc.stdint cimport intptr_t

from cygrad._core.compute.matrices cimport RELEASE_GIL, Call, begin_matrices, check_memory, numpy_loop
from cygrad._core.compute.shapes cimport reshape_to
from cygrad._core.graph.launches cimport Launch, add_input, add_output, clear_arguments, run_launch
from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport TensorImpl, empty, stand_alone, view_of
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.operands.arrays cimport foreign_operand
from cygrad._core.operands.operands cimport copy_of, refused
from cygrad._kernels.drivers.elementwise cimport CG_DTYPES, MAX_DIMS, cg_is_opaque, cg_itemsize, cg_loops_of
from cygrad._kernels.matrices.loops cimport (BLAS_THREADS, BLAS_THREADS_COLUMN, matrix_kernel_of, matrix_loop, multiplies_quickly,
                                             note_blas, small_product_of)

import numpy

from cygrad._core.operands.operands import checked_out, common_dtype
from cygrad.ops.dtypes import DTYPES

cdef enum:
    SMALL = 128             # multiplications up to which BLAS is slower than a loop
    SMALL_COLUMN = 32       # where there is one column


cdef matrix_loop[CG_DTYPES] loops, block_loops      # NULL: none
cdef (void*)[CG_DTYPES] loop_data


cdef RuleOp MATMUL = rule_op("matmul", ("input_shape", "other_shape"))


cdef int find_loops() except -1:
    """Look up the loop of each dtype."""
    cdef int types[3]
    cdef int number
    for number in range(CG_DTYPES):
        if cg_loops_of[number] == number:
            numpy_loop(numpy.matmul, number, &loops[number], &loop_data[number], types)
        block_loops[number] = matrix_kernel_of("matmul").loops[number]
    return 0


find_loops()


cdef inline matrix_loop loop_of(int dtype, intptr_t n, intptr_t m, intptr_t inner) noexcept nogil:
    """Choose by sizes alone, so that the bits depend on nothing else."""
    cdef matrix_loop loop
    if n * m * inner <= (SMALL if m > 1 else SMALL_COLUMN):
        loop = small_product_of(dtype, m, inner)
        return loops[dtype] if loop is NULL else loop
    if block_loops[dtype] is not NULL and multiplies_quickly(dtype, n, m, inner):
        return block_loops[dtype]
    return loops[dtype]


cdef tuple factors(str name, str second, object a, object b, bint promotes=False):
    """Return two arguments as tensors. Unlike dtypes are refused later; beside a NumPy array they promote, as everywhere."""
    cdef list tensors = []
    for argument, value in ("input", a), (second, b):
        if isinstance(value, numpy.ndarray):
            value, promotes = foreign_operand(value), True
        elif not isinstance(value, TensorImpl):
            raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(value).__name__}")
        tensors.append(value)
    if promotes:
        dtype = common_dtype(*tensors)
        tensors = [tensor.to(dtype) for tensor in tensors]
    return tuple(tensors)


def promoted_factors(a, b):
    """Return tensors or arrays as tensors of their common dtype, as NumPy's own `matmul` has it."""
    return factors("matmul", "other", a, b, True)


cdef object shape_error(TensorImpl a, TensorImpl b):
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, sizes_tuple(a.ndim, a.sizes)))} and "
                        f"{'x'.join(map(str, sizes_tuple(b.ndim, b.sizes)))}): the last size of the first must equal the last but one of "
                        "the second, and batch sizes must broadcast")


cdef object unlike(str words, TensorImpl a, TensorImpl b):
    """Return the exception for two dtypes, in torch's words for this product."""
    return RuntimeError(words.format(DTYPES[a.dtype_nr], DTYPES[b.dtype_nr]) + "; convert one with .to(dtype)")


cdef bint repeats_lines(TensorImpl matrix) noexcept:
    """Return True if the rows or the columns of a matrix are one in memory, as in the gradient of a sum."""
    cdef int d
    for d in range(matrix.ndim - 2, matrix.ndim):
        if matrix.strides[d] == 0 and matrix.sizes[d] > 1:
            return True
    return False


cdef TensorImpl product(TensorImpl a, TensorImpl b):
    """Multiply (batches of) matrices without recording."""
    cdef Call call
    cdef Launch launch
    cdef intptr_t shape[MAX_DIMS]
    cdef matrix_loop loop
    cdef TensorImpl out
    cdef int size = cg_itemsize[a.dtype_nr], ndim = max(a.ndim, b.ndim), batch = ndim - 2, d
    cdef intptr_t n = a.sizes[a.ndim - 2], m = b.sizes[b.ndim - 1], inner = a.sizes[a.ndim - 1], work = n * m * inner, left, right
    clear_arguments(&call, sizeof(call))
    if inner != b.sizes[b.ndim - 2]:
        raise shape_error(a, b)
    if a.dtype_nr != b.dtype_nr:
        raise unlike("expected scalar type {0.title} but found {1.title}" if ndim > 2 else
                     "expected m1 and m2 to have the same dtype, but got: {0.spelling} != {1.spelling}", a, b)
    if cg_loops_of[a.dtype_nr] != a.dtype_nr:
        if not cg_is_opaque[a.dtype_nr]:
            raise refused("matmul", a.dtype_nr)
        return copy_of(product(copy_of(a, cg_loops_of[a.dtype_nr]), copy_of(b, cg_loops_of[b.dtype_nr])), a.dtype_nr)
    loop = loop_of(a.dtype_nr, n, m, inner)
    if loop is loops[a.dtype_nr] and (repeats_lines(a) or repeats_lines(b)):
        # NumPy's loop has no BLAS for them, and adds in another order.
        return product(copy_of(a, a.dtype_nr) if repeats_lines(a) else a, copy_of(b, b.dtype_nr) if repeats_lines(b) else b)
    for d in range(batch):
        left = a.sizes[d - (ndim - a.ndim)] if d >= ndim - a.ndim else 1
        right = b.sizes[d - (ndim - b.ndim)] if d >= ndim - b.ndim else 1
        if left != right and left != 1 and right != 1:
            raise RuntimeError(f"The size of tensor a ({left}) must match the size of tensor b ({right}) at non-singleton dimension {d}: "
                               "batch sizes must be equal or 1")
        shape[d] = call.shape[d] = right if left == 1 else left
        call.steps[0][d] = 0 if left == 1 else a.strides[d - (ndim - a.ndim)] * size
        call.steps[1][d] = 0 if right == 1 else b.strides[d - (ndim - b.ndim)] * size
    shape[batch], shape[batch + 1] = n, m
    out = empty(a.dtype_nr, ndim, shape)
    if out.count == 0:
        return out
    for d in range(batch):
        call.steps[2][d] = out.strides[d] * size
    call.arguments, call.batch = 3, batch
    call.dims[1], call.dims[2], call.dims[3] = n, inner, m
    call.strides[3], call.strides[4] = a.strides[a.ndim - 2] * size, a.strides[a.ndim - 1] * size
    call.strides[5], call.strides[6] = b.strides[b.ndim - 2] * size, b.strides[b.ndim - 1] * size
    call.strides[7], call.strides[8] = out.strides[ndim - 2] * size, out.strides[ndim - 1] * size
    begin_matrices(&launch, &call, loop, loop_data[a.dtype_nr])
    add_input(&launch, a)
    add_input(&launch, b)
    add_output(&launch, out)
    run_launch(&launch, <double>work * <double>(out.count // (n * m)) >= RELEASE_GIL)
    if loop is block_loops[a.dtype_nr]:
        check_memory()
    elif work >= (BLAS_THREADS if n > 1 and m > 1 else BLAS_THREADS_COLUMN):
        note_blas()
    return out


cdef TensorImpl multiply(TensorImpl a, TensorImpl b):
    """Multiply as matmul does: vectors become matrices, and lose the dim again."""
    cdef TensorImpl result
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 1:
        return dot(a, b)
    if a.ndim == 1:
        result = multiply((<object>a).unsqueeze(0), b)
        return (<object>result).squeeze(-2)
    if a.ndim == 2 and b.ndim == 1 and a.sizes[1] != b.sizes[0]:
        raise RuntimeError(f"size mismatch, got input ({a.sizes[0]}), mat ({a.sizes[0]}x{a.sizes[1]}), vec ({b.sizes[0]})")
    if b.ndim == 1 and a.dtype_nr != b.dtype_nr:
        raise unlike("addmv input tensors must have the same dtype, but got {1.title}, {0.title}, and {1.title}", a, b)
    if b.ndim == 1:
        return (<object>multiply(a, (<object>b).unsqueeze(1))).squeeze(-1)
    result = product(a, b)
    if needs_node(a, b):
        record(MATMUL, a, b, result, (sizes_tuple(a.ndim, a.sizes), sizes_tuple(b.ndim, b.sizes)))
    return result


def matmul(input, other, *, out=None):
    """Return the matrix product; vectors, matrices and batches that broadcast, as NumPy's `@`."""
    cdef TensorImpl result
    if isinstance(input, TensorImpl) and isinstance(other, TensorImpl):     # one check for operators and calls
        result = multiply(<TensorImpl>input, <TensorImpl>other)
    else:
        input, other = factors("matmul", "other", input, other)
        result = multiply(<TensorImpl>input, <TensorImpl>other)
    return result if out is None else checked_out(out, result)


cdef object with_dims(str name, int dims_a, int dims_b, object a, object b, object out):
    """Multiply tensors of exactly these numbers of dims."""
    cdef TensorImpl left, right, result
    left, right = factors(name, "vec" if dims_b == 1 else "mat2", a, b)
    kinds = {1: "vector", 2: "matrix", 3: "3D tensor"}
    first, second = {"mm": ("self", "mat2"), "bmm": ("batch1", "batch2")}.get(name, ("", ""))
    if name == "mv" and (left.ndim != 2 or right.ndim != 1):
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {left.ndim}, {right.ndim}")
    for argument, tensor, dims in ((first, left, dims_a), (second, right, dims_b)):
        if (<TensorImpl>tensor).ndim != dims:
            raise RuntimeError(f"{argument} must be a {kinds[dims]}: {name}() got a {(<TensorImpl>tensor).ndim}D tensor; "
                               "matmul() takes any")
    result = multiply(left, right)
    return result if out is None else checked_out(out, result)


def mm(input, mat2, *, out=None):
    """Return the product of two matrices."""
    return with_dims("mm", 2, 2, input, mat2, out)


def bmm(input, mat2, *, out=None):
    """Return the products of two batches of matrices."""
    return with_dims("bmm", 3, 3, input, mat2, out)


def mv(input, vec, *, out=None):
    """Return the product of a matrix and a vector."""
    return with_dims("mv", 2, 1, input, vec, out)


def dot(input, tensor, *, out=None):
    """Return the inner product of two vectors of one size."""
    cdef TensorImpl a, b, result
    a, b = factors("dot", "tensor", input, tensor)
    cdef intptr_t row[2]
    cdef intptr_t column[2]
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype_nr != b.dtype_nr:
        raise unlike("dot : expected both vectors to have same dtype, but found {0.title} and {1.title}", a, b)
    if a.sizes[0] != b.sizes[0]:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{a.sizes[0]}] and src [{b.sizes[0]}] to have the same number of "
                           f"elements, but got {a.sizes[0]} and {b.sizes[0]} elements respectively")
    row[0], row[1], column[0], column[1] = 1, a.sizes[0], b.sizes[0], 1
    cdef intptr_t[2] row_strides = [a.sizes[0] * a.strides[0], a.strides[0]]
    cdef intptr_t[2] column_strides = [b.strides[0], 1]
    result = product(view_of(a, 0, 2, row, row_strides), view_of(b, 0, 2, column, column_strides))
    result = reshape_to(result, 0, row, "view", False)
    stand_alone(result)
    if needs_node(a, b):
        record(rule_op("dot"), a, b, result, ())
    return result if out is None else checked_out(out, result)
