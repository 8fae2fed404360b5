"""Kernels over operands: the common case at once, everything else broadcast, converted and given to the driver. Nothing is recorded.

The GIL is released for large results only that no other thread can see. Needs the GIL.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl, address, empty_like, value_address
from cygrad._core.operands.operands cimport Value, fits_loop, same_shape
from cygrad._kernels.drivers.elementwise cimport cg_itemsize, cg_kernel, takes_numbers
from cygrad._kernels.programs.settings cimport noted
from cygrad._kernels.programs.steps cimport PARTS

cdef enum:
    SMALL_COUNT = 1 << 11   # elements up to which no kernel is worth a thread

cdef inline bint is_simple(const cg_kernel* kernel, int dtype, int count, const Value* values) noexcept:
    """Return True if operands are few, small, dense and of one shape and dtype: no broadcasting, no driver, no launch."""
    cdef PyObject* first = values[0].tensor
    cdef PyObject* second = values[1].tensor if count == 2 else first
    if first is NULL or count > 2 or kernel.loops[dtype] is NULL or noted:
        return False
    if second is NULL:
        if not takes_numbers(kernel, dtype, 2, 1):
            return False
        second = first
    if (<TensorImpl>first).count >= SMALL_COUNT or not fits_loop(<TensorImpl>first, dtype) or not fits_loop(<TensorImpl>second, dtype):
        return False
    return first == second or same_shape(<TensorImpl>first, <TensorImpl>second)

cdef inline TensorImpl map_simple(const cg_kernel* kernel, int dtype, int out_dtype, int count, Value* values, const void* params,
                                  TensorImpl target):
    """Run a kernel over operands that `is_simple` has passed, into a target of their shape if given."""
    cdef TensorImpl result = empty_like(<TensorImpl>values[0].tensor, out_dtype) if target is None else target
    cdef char* pointers[3]
    cdef intptr_t strides[2]
    strides[0] = strides[1] = cg_itemsize[dtype]
    pointers[0] = value_address(<TensorImpl>values[0].tensor)
    if count == 2:
        if values[1].tensor is not NULL:
            pointers[1] = value_address(<TensorImpl>values[1].tensor)
        else:
            pointers[1], strides[1] = <char*>&values[1].number, 0
    pointers[count] = address(result)
    kernel.loops[dtype](pointers, strides, result.count, params)
    return result

cdef TensorImpl map_kernel(const cg_kernel* kernel, int dtype, int out_dtype, int masks, int count, Value* values,
                           const void* params, int cost, TensorImpl target, bint private=*, bint waits=*)
