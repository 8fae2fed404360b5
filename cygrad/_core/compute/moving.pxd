"""Elements moved, or added, between a whole and a part of it, at places that indices name or that lie with strides of any sign."""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, intptr_t

from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize, cg_real
from cygrad._kernels.programs.kernel cimport MAX_TENSORS

cdef enum:
    MOST_INDICES = MAX_TENSORS - 2

cdef enum Change:
    TAKE        # from the whole to the part
    PUT         # from the part to the whole
    ADD
    SUBTRACT
    EITHER      # the sum of bools

# Elements by their width; only sums of floats need the floats.
ctypedef fused element:
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

# A dim of the part. Strides count real numbers, of indices elements.
cdef struct Axis:
    intptr_t size, step, own            # own: of the part; step: of the whole, 0 where an index has the dim
    intptr_t[MOST_INDICES] places       # strides of indices

cdef struct Moves:
    int dtype, ndim, indices
    Change change
    intptr_t start, block               # from the first element of the whole; numbers that lie side by side in both
    intptr_t[MOST_INDICES] lengths, along       # of the dims of the whole that are looked up: sizes and strides
    Axis[MAX_DIMS] axes                 # a launch has as many as the part has dims

# Real numbers in an element.
cdef inline int parts_of_element(int dtype) noexcept:
    return cg_itemsize[dtype] // cg_itemsize[cg_real[dtype]]

# Begin moves of a part of so many dims, whose axes are set then.
cdef void begin_moves(Moves* moves, int dtype, int ndim, Change change) noexcept
# Move in the order of the part's dims. Indices are of int64 and checked; the whole is the tensor from which the moves start.
cdef void launch_moves(const char* name, Moves* moves, TensorImpl whole, TensorImpl part, list indices, bint release) noexcept
