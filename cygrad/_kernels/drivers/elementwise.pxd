"""The elementwise driver: broadcasting, blocks, conversion and threads around the generated inner loops.

There are no tensors here. All code that runs per element is `noexcept nogil`.
Output and inputs are the same memory or disjoint: callers put a temporary between arrays that overlap otherwise.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.packing cimport (CG_LARGEST, MAX_DIMS, STREAM_BYTES, Operand, cast, cg_cast, cg_itemsize, copy, pack,
                                              stream_row, vector_bytes)

cdef extern from "kernels.h" nogil:
    enum:
        CG_DTYPES
        CG_OTHER_FORM
        CG_SUM                      # a + b
        CG_DIFFERENCE
        CG_SCALED_SUM               # a + p * b, p a number of the call
        CG_SCALED_DIFFERENCE
        CG_PRODUCT
        CG_NEGATIVE
        CG_REFUSED                  # in place of a common dtype
        CG_WIDENED                  # bytes of a number in the loop, of dtypes that are widened
        CG_BOOL
        CG_UINT8
        CG_INT8
        CG_INT16
        CG_INT32
        CG_INT64
        CG_FLOAT16
        CG_BFLOAT16
        CG_FLOAT32
        CG_FLOAT64
        CG_COMPLEX64
        CG_COMPLEX128
    ctypedef struct cg_number:      # of any dtype
        pass
    const char cg_kind[]
    const char cg_rank[]                # of its kind: results may be cast to none that is lower
    const char cg_is_differentiable[]
    const char cg_is_floating_point[]
    const char cg_is_complex[]
    const char cg_is_integer[]
    const char cg_is_index[]
    const char cg_is_opaque[]           # floats that C has no arithmetic for
    const signed char cg_real[]         # the dtype of the parts of a complex one; else the dtype itself
    const signed char cg_complex[]      # that whose parts are of a dtype
    const signed char cg_loops_of[]     # dtype of the loop: wider for 16-bit floats and large unsigned integers, else the same
    const signed char cg_promotion[CG_DTYPES][CG_DTYPES]
    ctypedef void (*cg_loop)(char** pointers, const intptr_t* strides, intptr_t n, const void* params) noexcept nogil
    ctypedef struct cg_kernel:
        const char* name
        int inputs
        char stored                     # of numbers that are stored only: its loops read them as they are
        char form                       # of arithmetic, which may be part of a sum
        char blocked[CG_DTYPES]
        cg_loop loops[CG_DTYPES]
        cg_loop streams[CG_DTYPES]
    int cg_block_bytes(int dtype, int vector_bytes)
    void cg_stream_end() noexcept

cdef enum:
    MAX_OPERANDS = 6    # inputs and the output of one kernel
    MAX_PARAMS = 3      # numbers that a row takes besides
    SMALL_COUNT = 1 << 11   # elements up to which no kernel is worth a thread

# A number is read in place by an exact loop, as one of two inputs. Vector mathematics reads whole vectors.
cdef inline bint takes_numbers(const cg_kernel* kernel, int dtype, int inputs, int numbers) noexcept nogil:
    return numbers == 0 or numbers == 1 and inputs == 2 and not kernel.blocked[dtype]

cdef const cg_kernel* elementwise_kernel(str name) except NULL
cdef int block_bytes(int dtype) noexcept nogil  # of a number in a blocked loop
# `fresh`: the output is new, padded memory, so loops may run over its end.
cdef void run_elementwise(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
                          const void* params, int cost, bint fresh) noexcept nogil
# The same of a part of an iteration, by the calling thread; `stream`: no cache will hold the whole output until it is read.
cdef void run_elementwise_part(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
                               const void* params, bint fresh, bint stream) noexcept nogil
