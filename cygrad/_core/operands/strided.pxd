"""Views by strides and offset, and their transposes: the derivatives of in-place changes of views use them.

A geometry is a tuple: sizes, strides and dtype of a whole, the same of a part, and the part's offset from the first element of the whole
in bytes. The dtypes differ where one is of the parts of the other's complex numbers.
"""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

cdef bint overlaps_itself(int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept
cdef TensorImpl copy_in_geometry(TensorImpl x, tuple geometry)
cdef TensorImpl part_of(TensorImpl whole, tuple geometry)
cdef bint lies_within(tuple geometry) except -1
