"""Look-ups: elements at places that tensors of integers name in several dims, taken, put and added. Nothing is recorded.

`items` is an index of tensors of integers, ints, slices, None and an ellipsis. None, or another case that is for NumPy, is None or False.
"""
from cygrad._core.graph.tensor cimport TensorImpl

# An index, as `read_key` gives it, with tensors of integers in place of lists, arrays and masks; None: it is for NumPy.
cdef tuple with_tensors(TensorImpl x, tuple items)
# Return True if an item of an index is a plain tensor of integers that names places.
cdef bint is_index(object item) noexcept
# Return True if an item of an index is a plain tensor of bools, or of uint8 in their place, with dims.
cdef bint is_mask(object item) noexcept
# Return True if a mask has the sizes of a tensor's dims from one on.
cdef bint fits_mask(TensorImpl x, int dim, TensorImpl mask) noexcept
# Return True if 0-d tensors of integers in a user's index are places: as integers they would be read, which no program repeats. A part that
# is read would be a copy, no view, so then only beside places that are looked up.
cdef bint keeps_places(object key, bint writes) noexcept
# Return True if a part is read at places that 0-d tensors alone name: eager code gives a view.
cdef bint names_part(tuple items) noexcept
# Write a number where a mask, which broadcasts to a tensor, holds. Nothing is recorded, and the change is not counted.
cpdef object fill_where(TensorImpl target, TensorImpl mask, TensorImpl number)
# The sizes of the part at an index.
cdef tuple part_sizes(TensorImpl x, tuple items)
cdef TensorImpl look_up(TensorImpl x, tuple items)
# Put a tensor, broadcast, at an index, or add it there, as often as the index names each element.
cdef bint put_at(TensorImpl x, tuple items, TensorImpl value, bint adds) except -1
