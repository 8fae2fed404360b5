"""Buffers (see buffers.pxd for the contract)."""
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE, Py_buffer
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc

from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, export_address, needs_grad, product_of_scipy, refuse_values
from cygrad._core.memory.storage cimport DType, Storage, dtypes, expose, unexpose
from cygrad._kernels.drivers.elementwise cimport cg_itemsize

import sys


cdef struct Layout:
    PyObject* storage           # a reference: the tensor may have another one when the buffer is released
    Py_ssize_t numbers[1]       # the strides, and the sizes


cdef int check_flags(TensorImpl tensor, int flags) except -1:
    if product_of_scipy(sys._getframe()) is not None:
        raise BufferError("SciPy leaves the product of a sparse matrix and a tensor to the tensor, and needs no buffer")
    refuse_values(tensor, "the buffer protocol", BufferError)
    if needs_grad(tensor):
        raise BufferError("a Tensor that requires grad gives no buffer: its history would be lost. Use tensor.detach().")
    if tensor.storage.readonly and flags & PyBUF_WRITABLE:
        raise BufferError("the tensor's memory is read-only")
    if not tensor.flags & CONTIGUOUS and (flags & PyBUF_STRIDES) != PyBUF_STRIDES:
        raise BufferError("the tensor is not contiguous: ask for strides, or use tensor.contiguous()")
    if not tensor.flags & CONTIGUOUS and flags & (PyBUF_C_CONTIGUOUS & ~PyBUF_STRIDES):
        raise BufferError("the tensor is not contiguous; use tensor.contiguous()")
    if not (<DType>dtypes[tensor.dtype_nr]).buffer_code:
        raise BufferError(f"buffers have no format for {dtypes[tensor.dtype_nr].name}: convert the tensor, e.g. with .float(), or export "
                          "it by DLPack")
    return 0


cdef int fill_buffer(TensorImpl tensor, Py_buffer* buffer, int flags) except -1:
    cdef int d, itemsize = cg_itemsize[tensor.dtype_nr]
    cdef Layout* layout
    cdef Py_ssize_t* strides
    check_flags(tensor, flags)
    layout = <Layout*>malloc(sizeof(Layout) + 2 * tensor.ndim * sizeof(Py_ssize_t))
    if layout is NULL:
        raise MemoryError()
    strides = layout.numbers
    for d in range(tensor.ndim):
        strides[d], strides[tensor.ndim + d] = tensor.strides[d] * itemsize, tensor.sizes[d]
    expose(tensor.storage)
    Py_INCREF(tensor.storage)
    layout.storage = <PyObject*>tensor.storage
    buffer.buf, buffer.len, buffer.itemsize = export_address(tensor), tensor.count * itemsize, itemsize
    buffer.readonly, buffer.ndim, buffer.suboffsets, buffer.internal = tensor.storage.readonly, tensor.ndim, NULL, layout
    buffer.format = PyBytes_AS_STRING((<DType>dtypes[tensor.dtype_nr]).buffer_code) if flags & PyBUF_FORMAT else NULL
    buffer.shape = strides + tensor.ndim if flags & PyBUF_ND else NULL
    buffer.strides = strides if (flags & PyBUF_STRIDES) == PyBUF_STRIDES else NULL
    return 0


cdef void release_buffer(Py_buffer* buffer) noexcept:
    cdef Layout* layout = <Layout*>buffer.internal
    unexpose(<Storage>layout.storage)
    Py_XDECREF(layout.storage)
    free(layout)
