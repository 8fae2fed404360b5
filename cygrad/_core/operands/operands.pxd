"""Operands: values that are tensors or Python scalars, their common shape, and the memory that results go to.

Code that writes into a tensor calls check_in_place (of `inplace`) or check_out first. Nothing here is recorded. Needs the GIL.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl
from cygrad._core.memory.storage cimport Storage
from cygrad._kernels.drivers.elementwise cimport Operand, cg_number

cdef enum:
    RELEASE_GIL = 1 << 15   # elements from which other threads may run meanwhile

cdef struct Value:
    PyObject* tensor    # borrowed; NULL for a scalar
    char kind           # of a Python scalar: b, i, f, c
    bint huge           # an integer beyond int64: only `real` is set
    long long integer
    double real
    double imaginary    # of a complex one; with `real` a number of complex128
    cg_number number    # a scalar in the dtype of the loop, once `to_number` has been asked

cdef object to_value(object argument, Value* value)
cdef object python_number(const Value* value)
# A number in its dtype as a Python number.
cdef object number_from(const char* place, int dtype)
cdef bint any_followed(int count, const Value* values) noexcept
cdef int common_of(int a, int b) except -2
cdef int promoted(int count, const Value* values, int masks, int as_numbers) except -2
cdef int holding_all(int count, const Value* values, int dtype) noexcept
cdef object refused(str name, int dtype, str accepted=*)
cdef int check_no_bools(str name, int arity, const Value* values) except -1
cdef bint may_cast(int source, int target) noexcept
cdef int check_cast(int result, int target) except -1
cdef int to_number(Value* value, int dtype) except -1
cdef bint same_shape(TensorImpl a, TensorImpl b) noexcept
cdef void describe_operand(Operand* operand, TensorImpl tensor, int loop_dtype, int ndim) noexcept
cdef TensorImpl tensor_of_operand(const Operand* operand, int ndim, const intptr_t* shape, Storage storage, intptr_t start)
cdef void describe_number(Operand* operand, const cg_number* number, int dtype, int loop_dtype, int ndim) noexcept
cdef int check_changeable(TensorImpl target) except -1
cdef int check_writable(TensorImpl target) except -1
cdef int check_out(TensorImpl out, bint recorded) except -1
cdef TensorImpl write_out(TensorImpl out, TensorImpl result, bint recorded)
cdef int copy_into(TensorImpl target, TensorImpl source) except -1
cdef int fill_from(TensorImpl fresh, TensorImpl source) except -1
cdef TensorImpl copy_of(TensorImpl tensor, int dtype)
cdef TensorImpl out_argument(str name, object out)
cdef int broadcast(int count, const Value* values, intptr_t* shape) except -1
cdef bint overlaps(TensorImpl target, TensorImpl source) noexcept
cdef bint shape_is(TensorImpl tensor, int ndim, const intptr_t* shape) noexcept
cdef object out_shape_error(TensorImpl out, int ndim, const intptr_t* shape)
# Find the strides of the result if it is dense in the order of the operands' strides, as in torch; False: all operands are row-major, and
# so is the result.
cdef bint lies_as_operands(int ndim, const intptr_t* shape, int count, const Value* values, intptr_t* strides) noexcept
# Make the result.
cdef TensorImpl empty_for(int dtype, int ndim, const intptr_t* shape, int count, const Value* values)
cdef TensorImpl number_tensor(const Value* value, int dtype)
# All elements are the same one, as in the gradient of a sum.
cdef bint is_one_number(TensorImpl tensor) noexcept

cdef inline bint fits_loop(TensorImpl tensor, int dtype) noexcept:
    """Return True if loops of a dtype take a tensor as it lies: row-major, and memory after its end may be read."""
    return tensor.dtype_nr == dtype and tensor.flags & CONTIGUOUS and tensor.storage.padded
