# cython: cdivision=True
"""Views of the same memory as another dtype, and of complex numbers as pairs.

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport rule_op
from cygrad._core.graph.tensor cimport TensorImpl, copy_in, offset_of, place_of, refuse_front, view_in
from cygrad._core.memory.sizes cimport multiply_overflows
from cygrad._core.memory.storage cimport DType, dtype_number, dtypes
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_complex, cg_is_complex, cg_is_floating_point, cg_itemsize, cg_real


cpdef object _dtype_given(tuple arguments, dict keywords):
    """Return the dtype that a call of `view` asks for in place of a shape, or None."""
    argument = arguments[0] if len(arguments) == 1 and not keywords else keywords.get("dtype") if len(keywords) == 1 else None
    return argument if isinstance(argument, (DType, type)) else None


def view_as_dtype(TensorImpl input not None, dtype):
    """Return a tensor over the same memory, and version counter, that reads it as another dtype; no gradient flows through it."""
    cdef int number = dtype_number(dtype), d, last = input.ndim - 1
    cdef intptr_t old = cg_itemsize[input.dtype_nr], new = cg_itemsize[number], ratio
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    refuse_front(input, "view(dtype)")
    purpose = f"to view {dtypes[input.dtype_nr].name} as {dtypes[number].name} (different element sizes)"
    memcpy(sizes, input.sizes, input.ndim * sizeof(intptr_t))
    memcpy(strides, input.strides, input.ndim * sizeof(intptr_t))
    if old != new:
        if last < 0:
            raise RuntimeError(f"self.dim() cannot be 0 {purpose}")
        if strides[last] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {purpose}, but got {strides[last]}")
    if new > old:
        ratio = new // old
        if sizes[last] % ratio:
            raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {purpose}, but got {sizes[last]}")
        if offset_of(input) % ratio:
            raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {purpose}, but got {offset_of(input)}")
        for d in range(last):
            if strides[d] % ratio:
                raise RuntimeError(f"self.stride({d}) must be divisible by {ratio} {purpose}, but got {strides[d]}")
            strides[d] //= ratio
        sizes[last] //= ratio
    elif new < old:
        ratio = old // new
        for d in range(last):
            if multiply_overflows(strides[d], ratio, &strides[d]):
                raise RuntimeError(f"self.stride({d}) is too large {purpose}: {strides[d]}")
        sizes[last] *= ratio
    if input.count and place_of(input) % <size_t>cg_itemsize[cg_real[number]]:
        raise RuntimeError(f"the memory of the tensor, which is another library's, must be aligned to the elements {purpose}")
    return copy_in(input, number, input.ndim, sizes, strides)


def view_as_real(TensorImpl input not None):
    """Return the view of real and imaginary parts, which are the last dim."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef TensorImpl result
    cdef int d
    if not cg_is_complex[input.dtype_nr]:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if input.ndim == MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions")
    for d in range(input.ndim):
        sizes[d], strides[d] = input.sizes[d], 2 * input.strides[d]
    sizes[input.ndim], strides[input.ndim] = 2, 1
    result = view_in(input, 0, cg_real[input.dtype_nr], input.ndim + 1, sizes, strides)
    if needs_node(input, None):
        record(rule_op("view_as_real"), input, None, result, ())
    return result


def view_as_complex(TensorImpl input not None):
    """Return the view of pairs, which are the last dim, as complex numbers."""
    cdef intptr_t strides[MAX_DIMS]
    cdef TensorImpl result
    cdef int d, last = input.ndim - 1, dtype = cg_complex[input.dtype_nr]
    if cg_is_floating_point[input.dtype_nr] and cg_real[dtype] != input.dtype_nr:
        raise NotImplementedError(f"there are no complex numbers of two {dtypes[input.dtype_nr].name}: complex32 is not supported; convert "
                                  "the parts first, e.g. with .float()")
    if not cg_is_floating_point[input.dtype_nr]:
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
                           f"{dtypes[input.dtype_nr].name}")
    if last < 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.sizes[last] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.strides[last] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    for d in range(last):
        if input.strides[d] % 2:
            raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
        strides[d] = input.strides[d] // 2
    if offset_of(input) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    result = view_in(input, 0, dtype, last, input.sizes, strides)
    if needs_node(input, None):
        record(rule_op("view_as_complex"), input, None, result, ())
    return result
