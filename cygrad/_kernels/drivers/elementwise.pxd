"""The elementwise driver: broadcasting, blocks, conversion and threads around the generated inner loops.

Knows nothing of tensors. Everything that runs per element is `noexcept nogil`.
Output and inputs are the same memory or disjoint: callers put a temporary between arrays that overlap otherwise.
"""
from libc.stdint cimport intptr_t

cdef extern from "kernels.h" nogil:
    enum:
        CG_DTYPES
        CG_LARGEST      # item size
        CG_BOOL
        CG_INT64
        CG_FLOAT32
        CG_FLOAT64
    ctypedef struct cg_number:      # of any dtype
        pass
    const int cg_itemsize[]
    const char cg_kind[]
    const signed char cg_promotion[CG_DTYPES][CG_DTYPES]
    ctypedef void (*cg_loop)(char** pointers, const intptr_t* strides, intptr_t n, const void* params) noexcept nogil
    ctypedef void (*cg_cast)(char* target, intptr_t target_stride, const char* source, intptr_t source_stride, intptr_t n) noexcept nogil
    ctypedef struct cg_kernel:
        const char* name
        int inputs
        int blocked
        cg_loop loops[CG_DTYPES]
        cg_loop streams[CG_DTYPES]
    ctypedef void (*cg_copy)(char* target, const char* block, intptr_t nbytes) noexcept nogil
    int cg_team_size()
    void cg_stream_end() noexcept

cdef enum:
    MAX_DIMS = 64       # as in torch and NumPy 2
    MAX_OPERANDS = 6    # inputs and the output of one kernel
    MAX_PARAMS = 3      # numbers that a row takes besides
    STREAM_BYTES = 1 << 21      # of a thread's part of an output from which no cache will hold it until it is read

cdef struct Operand:
    char* data
    int dtype               # of the memory
    int loop_dtype          # of the loop; the driver converts block by block where they differ
    bint padded             # 64 bytes may be read after the end of its memory
    intptr_t strides[MAX_DIMS]   # in bytes, 0 where the operand is repeated

cdef const cg_kernel* kernel(str name) except NULL
cdef cg_cast cast(int source, int target) noexcept nogil
cdef int vector_bytes() noexcept nogil
cdef cg_copy stream_copy() noexcept nogil       # past the caches; whole vectors, both aligned to one
cdef void pack(const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t n, char* target) noexcept nogil
cdef void run(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
              const void* params, int cost, bint fresh) noexcept nogil
cdef void copy(Operand* target, Operand* source, int ndim, const intptr_t* shape) noexcept nogil
