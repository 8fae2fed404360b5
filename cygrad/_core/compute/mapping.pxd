"""Kernels over operands: the common case at once, everything else broadcast, converted and given to the driver. Nothing is recorded.

The GIL is released for large results only that no other thread can see. Needs the GIL.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl, address, empty_like, value_address
from cygrad._core.operands.operands cimport Value, fits_loop, same_shape
from cygrad._core.programs.pending cimport first_pending
from cygrad._kernels.drivers.elementwise cimport SMALL_COUNT, cg_itemsize, cg_kernel, takes_numbers
from cygrad._kernels.programs.settings cimport noted
from cygrad._kernels.programs.steps cimport PARTS

cdef inline bint is_simple(const cg_kernel* kernel, int dtype, int count, const Value* values) noexcept:
    """Return True if operands are few, small, dense and of one shape and dtype: no broadcasting, and no driver."""
    cdef PyObject* first = values[0].tensor
    cdef PyObject* second = values[1].tensor if count == 2 else first
    if count > 2 or kernel.loops[dtype] is NULL:
        return False
    if first is NULL or second is NULL:
        if count == 1 or not takes_numbers(kernel, dtype, 2, 1):
            return False
        first = second if first is NULL else first
        second = first
        if first is NULL:
            return False
    if (<TensorImpl>first).count >= SMALL_COUNT or not fits_loop(<TensorImpl>first, dtype) or not fits_loop(<TensorImpl>second, dtype):
        return False
    if first_pending is not NULL and ((<TensorImpl>first).storage.program is not NULL or (<TensorImpl>second).storage.program is not NULL):
        return False        # its program runs without the GIL, or the result is pending as well
    return first == second or same_shape(<TensorImpl>first, <TensorImpl>second)

cdef TensorImpl launch_loop(const cg_kernel* kernel, int dtype, int count, const Value* values, const void* params, TensorImpl result)

cdef inline TensorImpl map_simple(const cg_kernel* kernel, int dtype, int out_dtype, int count, Value* values, const void* params,
                                  TensorImpl target):
    """Run a kernel over operands that `is_simple` has passed, into a target of their shape if given."""
    cdef PyObject* like = values[0].tensor if values[0].tensor is not NULL else values[1].tensor
    cdef TensorImpl result = empty_like(<TensorImpl>like, out_dtype) if target is None else target
    cdef char* pointers[3]
    cdef intptr_t strides[2]
    cdef int k
    if noted:
        return launch_loop(kernel, dtype, count, values, params, result)
    for k in range(count):
        if values[k].tensor is not NULL:
            pointers[k], strides[k] = value_address(<TensorImpl>values[k].tensor), cg_itemsize[dtype]
        else:
            pointers[k], strides[k] = <char*>&values[k].number, 0
    pointers[count] = address(result)
    kernel.loops[dtype](pointers, strides, result.count, params)
    return result

cdef enum:
    AT_ONCE             # the result is computed,
    WAITS               # or may be pending, and its sum over dims be a product of matrices (see contraction.pxd),
    WAITS_UNCONTRACTED  # or may be pending alone

cdef TensorImpl map_kernel(const cg_kernel* kernel, int dtype, int out_dtype, int masks, int count, Value* values,
                           const void* params, int cost, TensorImpl target, bint private=*, int waits=*)
