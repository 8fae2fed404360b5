"""Other tensors over memory that is there: as instances of a subclass, as plain bytes, in a layout read from a file.

Nothing here copies or records. `strided` takes sizes and strides from outside, so it checks every bound.
"""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl, new_instance, new_tensor, place_of, refuse_front, special_active, tensor_type
from cygrad._core.graph.tensor cimport byte_offset as first_byte
from cygrad._core.levels.batches cimport is_special
from cygrad._core.levels.tangents cimport share
from cygrad._core.memory.storage cimport dtype_number, owner_of
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize, cg_real

from cygrad._core.memory.sizes import extent_of_strides
from cygrad._core.memory.storage import dtype_by_name

cdef int UINT8 = dtype_by_name["uint8"].number


def as_instance(TensorImpl source not None, cls, bint view=False):
    """Return a leaf of class `cls` over the memory and the version counter of `source`; a view of it if `view`."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, tensor_type):
        raise TypeError("Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. "
                        f"Make sure your class inherits from Tensor; {cls.__name__} does not.")
    instance = new_instance(cls, source, view)
    if special_active and is_special(source):
        share(instance, source)
    return instance


def storages(TensorImpl tensor not None):
    """Return the tensor's Storage and the one that owns its memory: the same, but for `.data`."""
    refuse_front(tensor, "its storage")
    return tensor.storage, owner_of(tensor.storage)


def storage_bytes(TensorImpl tensor not None):
    """Return all the memory that a tensor's views may reach, as a uint8 tensor."""
    refuse_front(tensor, "its storage")
    cdef intptr_t nbytes = tensor.storage.nbytes
    return new_tensor(tensor.storage, 0, UINT8, 1, &nbytes, NULL)


def byte_offset(TensorImpl tensor not None):
    """Return the place of the first element in `storage_bytes`."""
    return first_byte(tensor)


def strided(TensorImpl source not None, dtype, offset, shape, strides):
    """Return a tensor over the memory of a one-dimensional uint8 tensor; ValueError for a layout that does not fit into it."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t steps[MAX_DIMS]
    cdef int number = dtype_number(dtype), d, ndim = len(shape)
    nbytes = extent_of_strides(cg_itemsize[number], shape, strides)
    if type(offset) is not int or offset < 0 or offset + nbytes > source.count:
        raise ValueError(f"{nbytes} bytes from byte {offset} on do not fit into the {source.count} bytes there are")
    if (place_of(source) + <size_t>offset) % <size_t>cg_itemsize[cg_real[number]]:
        raise ValueError(f"elements of {cg_itemsize[number]} bytes cannot start at byte {offset}, which is not aligned to their size")
    for d in range(ndim):
        sizes[d], steps[d] = shape[d], strides[d]
    return new_tensor(source.storage, first_byte(source) + <intptr_t>offset, number, ndim, sizes, steps)
