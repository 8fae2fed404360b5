"""Packing: arrays that are strided, repeated or of another dtype as dense blocks, and back; copies from array to array.

There are no tensors here. All code that runs per element is `noexcept nogil`.
"""
from libc.stdint cimport intptr_t

cdef extern from "kernels.h" nogil:
    enum:
        CG_LARGEST      # item size
    const int cg_itemsize[]
    ctypedef void (*cg_cast)(char* target, intptr_t target_stride, const char* source, intptr_t source_stride, intptr_t n) noexcept nogil
    ctypedef struct cg_cursor:
        char* address
        int ndim
        intptr_t shape[64]
        intptr_t strides[64]
        intptr_t index[64]
    void cg_advance(cg_cursor* cursor, int d, intptr_t n) noexcept

cdef enum:
    MAX_DIMS = 64       # as in torch and NumPy 2
    BLOCK = 512         # elements of a block: a handful of them fit the first-level cache
    CHUNK = 1024        # threads get multiples of this, hence of whole vectors
    LONG_ROW = 64       # elements from which a row is worth a call
    STREAM_BYTES = 1 << 21      # of a thread's part of an output from which no cache will hold it until it is read

cdef struct Operand:
    char* data
    int dtype               # of the memory
    int loop_dtype          # of the loop; the driver converts block by block where they differ
    bint padded             # 64 bytes may be read after the end of its memory
    intptr_t strides[MAX_DIMS]   # in bytes, 0 where the operand is repeated

cdef inline intptr_t count_elements(int ndim, const intptr_t* shape) noexcept nogil:
    cdef intptr_t count = 1
    cdef int d
    for d in range(ndim):
        count *= shape[d]
    return count

# An operand in as many words as its dims take, and back; both return the next word.
cdef inline size_t operand_words(int ndim) noexcept nogil:
    return 3 + ndim

cdef inline intptr_t* store_operand(const Operand* operand, int ndim, intptr_t* words) noexcept nogil:
    cdef int d
    words[0], words[1], words[2] = operand.dtype, operand.loop_dtype, operand.padded
    for d in range(ndim):
        words[3 + d] = operand.strides[d]
    return words + operand_words(ndim)

cdef inline const intptr_t* load_operand(Operand* operand, int ndim, const intptr_t* words) noexcept nogil:
    cdef int d
    operand.dtype, operand.loop_dtype, operand.padded = <int>words[0], <int>words[1], words[2]
    for d in range(ndim):
        operand.strides[d] = words[3 + d]
    return words + operand_words(ndim)

cdef cg_cast cast(int source, int target) noexcept nogil
cdef int vector_bytes() noexcept nogil
# Write dense bytes past the caches, but for parts of vectors at the ends.
cdef void stream_row(char* target, const char* row, intptr_t nbytes) noexcept nogil
# Of byte strides over some dims: one number in every place; row-major.
cdef bint repeats_number(const intptr_t* strides, int ndim, const intptr_t* shape) noexcept nogil
cdef bint lies_row_major(const intptr_t* strides, intptr_t itemsize, int ndim, const intptr_t* shape) noexcept nogil
# Return how many elements a space has, if an operand lies row-major over it; else 0.
cdef intptr_t row_major_count(const Operand* operand, int ndim, const intptr_t* shape) noexcept nogil
# Drop dims of size 1, order the others by the output's strides (the last operand's), join contiguous ones; strides are rewritten.
cdef int merge(int count, Operand* operands, int ndim, const intptr_t* shape, intptr_t* merged) noexcept nogil
# The least cost of an element, as a class of `threads_for`, of merged operands: where rows are short or strided, as much as a
# transcendental function.
cdef int cost_of_layout(int count, const Operand* operands, int ndim, const intptr_t* shape) noexcept nogil
# Join the contiguous dims of one operand, where other operands' dims are not contiguous.
cdef void lay(cg_cursor* cursor, const Operand* operand, int ndim, const intptr_t* shape) noexcept nogil
# From the first element to another one of the first `dims` dims.
cdef void seek(cg_cursor* cursor, int dims, intptr_t index) noexcept nogil
cdef bint is_dense_cursor(const cg_cursor* cursor, int itemsize) noexcept nogil
# The next n elements, in the dtype of the loop, from or to a block.
cdef void gather(const Operand* operand, cg_cursor* cursor, intptr_t n, char* block) noexcept nogil
cdef void scatter(const Operand* operand, cg_cursor* cursor, intptr_t n, char* block) noexcept nogil
cdef void pack(const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t n, char* target) noexcept nogil
# The bytes of n elements in a row, by the threads of elementwise loops: the first thread that writes a page has it near.
cdef void zero_dense(char* data, intptr_t n, int itemsize) noexcept nogil
# Between arrays of one shape, converting; they must be disjoint or the same.
cdef void copy(Operand* target, Operand* source, int ndim, const intptr_t* shape) noexcept nogil
# Elements of each thread, from the first thread on: all that goes through memory element by element is dealt out like this.
cdef intptr_t chunk_of(intptr_t total, int threads) noexcept nogil
