# cython: cdivision=True
"""Operands of operators: reading, broadcasting, checking and copying them (see operands.pxd for the contract)."""
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_Check, PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsDouble, PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.object cimport PyObject
from libc.math cimport isinf, ldexp
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from cygrad._core.graph.constants cimport copy_as_described, move, tensor_of_number
from cygrad._core.graph.modes cimport grad_mode, is_inference_mode, is_inference_suspended
from cygrad._core.graph.saved cimport is_followed
from cygrad._core.graph.tensor cimport (CONTIGUOUS, INFERENCE, TensorImpl, count_change, empty, empty_strided, is_dense, needs_grad,
                                        new_tensor, place_of, tensor_type)
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport DType, default_dtype, dtypes
from cygrad._core.operands.arrays cimport foreign_operand
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_COMPLEX128, CG_FLOAT64, CG_INT64, CG_REFUSED, MAX_DIMS, Operand, cast,
                                                  cg_complex, cg_is_complex, cg_is_differentiable, cg_is_floating_point, cg_is_integer,
                                                  cg_itemsize, cg_kind, cg_promotion, cg_rank)
from cygrad._kernels.drivers.copying cimport Copy
from cygrad._kernels.programs.settings cimport noted

from cygrad.ops.dtypes import DTYPES, refused_promotion

cdef extern from "Python.h":
    bint PyObject_TypeCheck(object o, type t)


# ----- Values -----
cdef object to_value(object argument, Value* value):
    """Read an operand. Return the tensor that must be kept alive (None for a scalar), or NotImplemented."""
    cdef int overflow = 0
    value.tensor = NULL
    if type(argument) is tensor_type or PyObject_TypeCheck(argument, TensorImpl):
        value.tensor = <PyObject*>argument
        return argument
    if PyFloat_Check(argument):
        value.kind, value.real = b"f", PyFloat_AS_DOUBLE(argument)
        return None
    if PyLong_Check(argument):
        value.integer = PyLong_AsLongLongAndOverflow(argument, &overflow)
        value.kind, value.huge = b"b" if PyBool_Check(argument) else b"i", overflow != 0
        value.real = <double>value.integer if not overflow else real_of(argument)
        return None
    if PyComplex_Check(argument):
        value.kind, value.huge = b"c", False
        value.real, value.imaginary = PyComplex_RealAsDouble(argument), PyComplex_ImagAsDouble(argument)
        return None
    operand = foreign_operand(argument)
    if isinstance(operand, TensorImpl):
        value.tensor = <PyObject*>operand
        return operand
    return operand if operand is NotImplemented else to_value(operand, value)


cdef object python_number(const Value* value):
    """Return a scalar as a Python number."""
    if value.kind == b"c":
        return complex(value.real, value.imaginary)
    return value.real if value.kind == b"f" else int(value.real) if value.huge else value.integer


cdef object number_from(const char* place, int dtype):
    cdef double[2] parts
    cdef long long integer
    if cg_is_complex[dtype]:
        cast(dtype, CG_COMPLEX128)(<char*>parts, 0, place, 0, 1)
        return complex(parts[0], parts[1])
    if cg_is_floating_point[dtype]:
        cast(dtype, CG_FLOAT64)(<char*>parts, 0, place, 0, 1)
        return parts[0]
    cast(dtype, CG_INT64)(<char*>&integer, 0, place, 0, 1)
    return bool(integer) if dtype == CG_BOOL else integer


cdef double real_of(object integer) except? -1:
    """Return an integer beyond int64 as a float."""
    try:
        return PyLong_AsDouble(integer)
    except OverflowError:
        raise RuntimeError("value cannot be converted to type double without overflow: an integer of "
                           f"{integer.bit_length()} bits") from None


# ----- Numbers -----
cdef int to_number(Value* value, int dtype) except -1:
    """Convert a number to a dtype: rounded, truncated, or for bool whether it is not 0, so that NaN is true, as in Python.

    RuntimeError where an integer dtype does not hold it, or a real one a number with an imaginary part: nothing wraps.
    """
    memset(&value.number, 0, sizeof(value.number))      # equal numbers have equal bytes
    if value.kind == b"c" and (value.imaginary or cg_is_complex[dtype]):
        if not cg_is_complex[dtype] and dtype != CG_BOOL:
            raise overflow_error(value, dtype)
        cast(CG_COMPLEX128, dtype)(<char*>&value.number, 0, <char*>&value.real, 0, 1)
    elif dtype == CG_FLOAT64:
        (<double*>&value.number)[0] = value.real
    elif not cg_is_integer[dtype] or is_fractional(value.kind) and holds(value.real, dtype):
        cast(CG_FLOAT64, dtype)(<char*>&value.number, 0, <char*>&value.real, 0, 1)
    elif not is_fractional(value.kind) and fits_dtype(value, dtype):
        cast(CG_INT64, dtype)(<char*>&value.number, 0, <char*>&value.integer, 0, 1)
    else:
        raise overflow_error(value, dtype)
    return 0


cdef inline bint is_fractional(char kind) noexcept:
    """Return True if a Python number of a kind has no integer."""
    return kind == b"f" or kind == b"c"


cdef inline bint is_signed(int dtype) noexcept:
    return (<DType>dtypes[dtype]).is_signed


cdef bint fits_dtype(const Value* value, int dtype) noexcept:
    """Return True if an integer dtype holds an integer."""
    cdef int bits = 8 * cg_itemsize[dtype]
    if value.huge or bits == 64:
        return not value.huge and (is_signed(dtype) or value.integer >= 0)
    if is_signed(dtype):
        return -(1LL << (bits - 1)) <= value.integer < (1LL << (bits - 1))
    return 0 <= value.integer < (1LL << bits)


cdef bint holds(double number, int dtype) noexcept:
    """Return True if a number lies between the ends of an integer dtype, as torch asks before it truncates; NaN does not."""
    cdef int bits = 8 * cg_itemsize[dtype] - is_signed(dtype)
    cdef double end = ldexp(1, bits)
    return (-end if is_signed(dtype) else 0) <= number and (number < end if bits >= 63 else number <= end - 1)


cdef object overflow_error(const Value* value, int dtype):
    return RuntimeError(f"value cannot be converted to type {DTYPES[dtype].spelling} without overflow: {python_number(value)} is outside "
                        f"of the range of {dtypes[dtype]!r}")


cdef TensorImpl number_tensor(const Value* value, int dtype):
    """Return a number as a 0-d tensor that is to be written somewhere.

    A finite one must not become infinite there. A negative integer is written into unsigned ones modulo their size, as in torch.
    """
    cdef Value written = value[0]
    cdef int bits = 8 * cg_itemsize[dtype]
    cdef double[2] read_again
    if value.kind != b"c":
        written.imaginary = 0
    if value.kind == b"i" and not value.huge and value.integer < 0 and cg_is_integer[dtype] and not is_signed(dtype):
        if bits == 64:
            return tensor_of_number(&value.integer, dtype)      # has the same bits
        if -(1LL << bits) < value.integer:
            written.integer += 1LL << bits
    to_number(&written, dtype)
    if cg_is_differentiable[dtype]:
        cast(dtype, CG_COMPLEX128)(<char*>read_again, 0, <char*>&written.number, 0, 1)
        if isinf(read_again[0]) and not isinf(written.real) or isinf(read_again[1]) and not isinf(written.imaginary):
            raise overflow_error(value, dtype)
    return tensor_of_number(&written.number, dtype)


# ----- Recording -----
cdef bint any_followed(int count, const Value* values) noexcept:
    """Return True if an operator that has a tensor among its operands that needs a gradient is to be recorded."""
    cdef int k
    for k in range(count):
        if values[k].tensor is not NULL and is_followed(<TensorImpl>values[k].tensor):
            return True
    return False


# ----- Promotion -----
cdef bint may_cast(int source, int target) noexcept:
    """Return True if a dtype is of no higher kind than another: results are cast to that, if not always exactly."""
    return cg_rank[source] <= cg_rank[target]


cdef int common_of(int a, int b) except -2:
    """Return the common dtype of two, of which the first may be none (-1)."""
    if a < 0:
        return b
    if cg_promotion[a][b] == CG_REFUSED:
        raise RuntimeError(refused_promotion(DTYPES[a], DTYPES[b]))
    return cg_promotion[a][b]


cdef int outranked(int higher, int lower) except -2:
    """Return the dtype of two categories: the lower one counts only where it is of a higher kind; floats become as wide complex numbers."""
    if higher < 0:
        return lower
    if lower < 0 or may_cast(lower, higher):
        return higher
    return cg_complex[higher] if cg_is_floating_point[higher] else common_of(higher, lower) if higher == CG_BOOL else lower


cdef int promoted(int count, const Value* values, int masks, int as_numbers) except -2:
    """Return the common dtype of operands but `masks` (bits), by torch's categories: tensors with dims, 0-d tensors, numbers.

    Of operands `as_numbers` (bits) 0-d tensors count as numbers, too.
    """
    cdef int with_dims = -1, without = -1, numbers = -1, k
    cdef char kind
    for k in range(count):
        if masks >> k & 1:
            continue
        if values[k].tensor is NULL or as_numbers >> k & 1 and (<TensorImpl>values[k].tensor).ndim == 0:
            kind = values[k].kind if values[k].tensor is NULL else cg_kind[(<TensorImpl>values[k].tensor).dtype_nr]
            numbers = common_of(numbers, default_dtype() if kind == b"f" else cg_complex[default_dtype()] if kind == b"c"
                                else CG_BOOL if kind == b"b" else CG_INT64)
        elif (<TensorImpl>values[k].tensor).ndim:
            with_dims = common_of(with_dims, (<TensorImpl>values[k].tensor).dtype_nr)
        else:
            without = common_of(without, (<TensorImpl>values[k].tensor).dtype_nr)
    return outranked(with_dims, outranked(without, numbers))


cdef int holding_all(int count, const Value* values, int dtype) noexcept:
    """Return the integer dtype that holds all operands exactly, of which `dtype` is the common one."""
    cdef int k, other
    for k in range(count):
        if values[k].tensor is not NULL:
            other = cg_promotion[dtype][(<TensorImpl>values[k].tensor).dtype_nr]
            dtype = CG_INT64 if other == CG_REFUSED else other
    for k in range(count):
        if values[k].tensor is NULL and not fits_dtype(&values[k], dtype):
            return CG_INT64
    return dtype


cdef object refused(str name, int dtype, str accepted=""):
    """Return the exception for a dtype that an operator does not take; `accepted` are the kinds that it does. The words are read now."""
    from cygrad.ops.refusals import refusal
    return refusal(name, dtypes[dtype].name, accepted)


cdef int check_no_bools(str name, int arity, const Value* values) except -1:
    """Refuse operands that are bool, all of them or some."""
    cdef int k, count = 0
    for k in range(arity):
        count += values[k].kind == b"b" if values[k].tensor is NULL else (<TensorImpl>values[k].tensor).dtype_nr == CG_BOOL
    if count:
        from cygrad.ops.refusals import TWO_BOOLS
        raise RuntimeError(TWO_BOOLS) if count == arity == 2 else refused(name, CG_BOOL)
    return 0


cdef int check_cast(int result, int target) except -1:
    if not may_cast(result, target):
        raise RuntimeError(f"result type {dtypes[result].name} can't be cast to the desired output type {dtypes[target].name}")
    return 0


def common_dtype(a, b):
    """Return the dtype that an operator computes in with two tensors or numbers."""
    cdef Value values[2]
    left, right = to_value(a, &values[0]), to_value(b, &values[1])
    for value, operand in (left, a), (right, b):
        if value is NotImplemented:
            raise TypeError(f"argument must be Tensor or Number, not {type(operand).__name__}")
    return dtypes[promoted(2, values, 0, 0)]


def castable(DType source not None, DType target not None):
    """Return True if a dtype is of no higher kind than another."""
    return may_cast(source.number, target.number)


# ----- Geometry -----
cdef bint same_shape(TensorImpl a, TensorImpl b) noexcept:
    cdef int d
    if a.ndim != b.ndim:
        return False
    for d in range(a.ndim):
        if a.sizes[d] != b.sizes[d]:
            return False
    return True


cdef int broadcast(int count, const Value* values, intptr_t* shape) except -1:
    """Write the common shape of the tensors and return its number of dims."""
    cdef TensorImpl tensor
    cdef int k, d, ndim = 0, offset
    for k in range(count):
        if values[k].tensor is not NULL:
            ndim = max(ndim, (<TensorImpl>values[k].tensor).ndim)
    for d in range(ndim):
        shape[d] = 1
    for k in range(count):
        if values[k].tensor is NULL:
            continue
        tensor = <TensorImpl>values[k].tensor
        offset = ndim - tensor.ndim
        for d in range(tensor.ndim):
            if shape[offset + d] == 1:
                shape[offset + d] = tensor.sizes[d]
            elif tensor.sizes[d] != 1 and tensor.sizes[d] != shape[offset + d]:
                raise broadcast_error(count, values, ndim)
    return ndim


def broadcast_shape(*tensors):
    """Return the shape that tensors broadcast to; RuntimeError where they do not."""
    cdef intptr_t shape[MAX_DIMS]
    cdef TensorImpl tensor
    cdef int k, ndim
    cdef Value* values = <Value*>malloc(max(len(tensors), 1) * sizeof(Value))
    if values is NULL:
        raise MemoryError()
    try:
        for k, tensor in enumerate(tensors):
            values[k].tensor = <PyObject*>tensor
        ndim = broadcast(<int>len(tensors), values, shape)
    finally:
        free(values)
    return sizes_tuple(ndim, shape)


cdef object broadcast_error(int count, const Value* values, int ndim):
    """Return the error for the last dim at which shapes do not fit."""
    cdef list shapes = [sizes_tuple((<TensorImpl>values[j].tensor).ndim, (<TensorImpl>values[j].tensor).sizes)
                        for j in range(count) if values[j].tensor is not NULL]
    for d in range(1, ndim + 1):
        sizes = [shape[-d] for shape in shapes if len(shape) >= d and shape[-d] != 1]
        for size in sizes:
            if size != sizes[0]:
                return RuntimeError(f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({size}) at non-singleton "
                                    f"dimension {ndim - d}; the shapes {' and '.join(map(str, shapes))} do not broadcast: sizes, "
                                    "aligned at the last dim, must be equal or 1")


cdef void describe_operand(Operand* operand, TensorImpl tensor, int loop_dtype, int ndim) noexcept:
    """Describe to the drivers where a tensor lies that is broadcast to so many dims; its value may be pending."""
    cdef int d, offset = ndim - tensor.ndim, size = cg_itemsize[tensor.dtype_nr]
    operand.data, operand.dtype, operand.loop_dtype = tensor.unsettled, tensor.dtype_nr, loop_dtype
    operand.padded = tensor.storage.padded
    for d in range(offset):
        operand.strides[d] = 0
    for d in range(tensor.ndim):
        operand.strides[offset + d] = 0 if tensor.sizes[d] == 1 else tensor.strides[d] * size


cdef TensorImpl tensor_of_operand(const Operand* operand, int ndim, const intptr_t* shape, Storage storage, intptr_t start):
    """Return a tensor that lies as an operand does, from a byte of a storage on."""
    cdef intptr_t strides[MAX_DIMS]
    cdef int d
    for d in range(ndim):
        strides[d] = operand.strides[d] // cg_itemsize[operand.dtype]
    return new_tensor(storage, start, operand.dtype, ndim, shape, strides)


cdef void describe_number(Operand* operand, const cg_number* number, int dtype, int loop_dtype, int ndim) noexcept:
    """Describe a number that stands in every place of so many dims."""
    operand.data, operand.dtype, operand.loop_dtype, operand.padded = <char*>number, dtype, loop_dtype, False
    memset(operand.strides, 0, ndim * sizeof(intptr_t))


cdef bint is_one_number(TensorImpl tensor) noexcept:
    cdef int d
    for d in range(tensor.ndim):
        if tensor.strides[d] and tensor.sizes[d] > 1:
            return False
    return True


cdef bint same_strides(TensorImpl a, TensorImpl b) noexcept:
    cdef int d
    for d in range(a.ndim):
        if a.strides[d] != b.strides[d]:
            return False
    return True


cdef int compare_dims(int a, int b, int ndim, const intptr_t* shape, int count, const Value* values) noexcept:
    """Return True if dim a lies inside (-1) or outside (1) dim b in the first operand that is repeated along neither, or 0."""
    cdef int k, offset
    cdef intptr_t inner, outer
    cdef TensorImpl tensor
    for k in range(count):
        if values[k].tensor is NULL:
            continue
        tensor = <TensorImpl>values[k].tensor
        offset = ndim - tensor.ndim
        if a < offset or b < offset or tensor.sizes[a - offset] != shape[a] or tensor.sizes[b - offset] != shape[b]:
            continue
        inner, outer = tensor.strides[a - offset], tensor.strides[b - offset]
        if inner == 0 or outer == 0:
            continue
        if inner != outer:
            return -1 if inner < outer else 1
        if shape[a] > shape[b]:
            return 1
    return 0


cdef void order_as_operands(int ndim, const intptr_t* shape, int count, const Value* values, intptr_t* strides) noexcept:
    """Find the strides of a dense tensor whose dims lie in the order of the operands' strides."""
    cdef int order[MAX_DIMS]
    cdef intptr_t expected = 1
    cdef int d, k, position, compared
    # Innermost first. Dims with equal strides in all operands stay as in row-major memory: insertion that stops only where one lies inside.
    for d in range(ndim):
        order[d] = ndim - 1 - d
        position = d
        for k in range(d - 1, -1, -1):
            compared = compare_dims(order[k], order[position], ndim, shape, count, values)
            if compared < 0:
                break
            if compared > 0:
                order[k], order[position] = order[position], order[k]
                position = k
    for k in range(ndim):
        strides[order[k]] = expected
        expected *= max(shape[order[k]], 1)


cdef bint lies_as_operands(int ndim, const intptr_t* shape, int count, const Value* values, intptr_t* strides) noexcept:
    cdef TensorImpl first
    cdef int k, strided = -1
    for k in range(count):
        if values[k].tensor is not NULL and not (<TensorImpl>values[k].tensor).flags & CONTIGUOUS:
            strided = k
            break
    if strided < 0 or ndim < 2:
        return False
    first = <TensorImpl>values[strided].tensor
    for k in range(count):
        if values[k].tensor is not NULL and not (shape_is(<TensorImpl>values[k].tensor, ndim, shape)
                                                 and same_strides(<TensorImpl>values[k].tensor, first)):
            order_as_operands(ndim, shape, count, values, strides)
            return True
    if is_dense(first):
        memcpy(strides, first.strides, ndim * sizeof(intptr_t))
    else:
        order_as_operands(ndim, shape, count, values, strides)
    return True


cdef TensorImpl empty_for(int dtype, int ndim, const intptr_t* shape, int count, const Value* values):
    cdef intptr_t strides[MAX_DIMS]
    if lies_as_operands(ndim, shape, count, values, strides):
        return empty_strided(dtype, ndim, shape, strides)
    return empty(dtype, ndim, shape)


# ----- Memory that is written to -----
cdef object write_guard = None


def set_write_guard(guard):
    """Have a function called with each tensor that an operator is about to write into (None: no function)."""
    global write_guard
    write_guard = guard


cdef int check_changeable(TensorImpl target) except -1:
    """Refuse tensors made in inference mode, whose changes are not counted outside it."""
    if write_guard is not None:
        write_guard(target)
    if target.flags & INFERENCE and not is_inference_mode() and not is_inference_suspended():
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
                           "tensor before doing inplace update.")
    return 0


cdef int check_writable(TensorImpl target) except -1:
    """Refuse targets that are read-only, made in inference mode or whose elements share memory."""
    cdef int d
    check_changeable(target)
    if target.storage.readonly:
        raise ValueError("assignment destination is read-only: the tensor shares memory with a read-only buffer; use clone()")
    if target.flags & CONTIGUOUS:
        return 0
    for d in range(target.ndim):
        if target.sizes[d] > 1 and target.strides[d] == 0:
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                               "location. Please clone() the tensor before performing the operation.")
    return 0


cdef int check_out(TensorImpl out, bint recorded) except -1:
    """Refuse an `out=` that autograd would have to record."""
    if recorded or (grad_mode()[0] and needs_grad(out)):
        raise RuntimeError("functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                           "requires grad; call the function inside `with cygrad.no_grad():`, or without out=.")
    return check_writable(out)


cdef TensorImpl write_out(TensorImpl out, TensorImpl result, bint recorded):
    """Write a result into a tensor given as out=, and return that."""
    check_out(out, recorded)
    if not same_shape(out, result):
        raise out_shape_error(out, result.ndim, result.sizes)
    check_cast(result.dtype_nr, out.dtype_nr)
    copy_into(out, result)
    count_change(out)
    return out


def checked_out(TensorImpl out not None, TensorImpl result not None):
    """Write a result into a tensor given as out=, and return that."""
    return write_out(out, result, needs_grad(result))


cdef object out_shape_error(TensorImpl out, int ndim, const intptr_t* shape):
    return RuntimeError(f"out= has shape {list(sizes_tuple(out.ndim, out.sizes))} but the result has shape "
                        f"{list(sizes_tuple(ndim, shape))}; give an out of that shape")


cdef bint overlaps(TensorImpl target, TensorImpl source) noexcept:
    """Return True if two tensors share memory in another way than element by element."""
    cdef size_t target_end = place_of(target), source_end = place_of(source)
    cdef bint same = target_end == source_end and target.dtype_nr == source.dtype_nr and target.ndim == source.ndim
    cdef int d
    if target.count == 0 or source.count == 0:
        return False
    for d in range(target.ndim):
        target_end += (target.sizes[d] - 1) * target.strides[d] * cg_itemsize[target.dtype_nr]
        same = same and target.sizes[d] == source.sizes[d] and (target.sizes[d] == 1 or target.strides[d] == source.strides[d])
    for d in range(source.ndim):
        source_end += (source.sizes[d] - 1) * source.strides[d] * cg_itemsize[source.dtype_nr]
    return not same and (place_of(target) < source_end + cg_itemsize[source.dtype_nr]
                         and place_of(source) < target_end + cg_itemsize[target.dtype_nr])


cdef int copy_into(TensorImpl target, TensorImpl source) except -1:
    """Copy with broadcasting and conversion, without recording. Keeps the GIL, which guards memory that other threads can see."""
    return copy_elements(target, source, False)


cdef int fill_from(TensorImpl fresh, TensorImpl source) except -1:
    """Copy into memory that no other thread has a reference to: without the GIL."""
    return copy_elements(fresh, source, True)


cdef int copy_elements(TensorImpl target, TensorImpl source, bint release_gil) except -1:
    cdef Copy elements
    cdef Value values[2]
    values[0].tensor, values[1].tensor = <PyObject*>target, <PyObject*>source
    elements.ndim = broadcast(2, values, elements.shape)
    if elements.ndim != target.ndim or not shape_is(target, elements.ndim, elements.shape):
        raise RuntimeError("The expanded size of the tensor must match the existing size: cannot write a tensor of shape "
                           f"{list(sizes_tuple(source.ndim, source.sizes))} into one of shape "
                           f"{list(sizes_tuple(target.ndim, target.sizes))}")
    if overlaps(target, source):
        source = copy_of(source, source.dtype_nr)
    if noted and target.flags & source.flags & CONTIGUOUS and target.dtype_nr == source.dtype_nr and target.count == source.count:
        return move(target, source)
    describe_operand(&elements.source, source, source.dtype_nr, elements.ndim)
    describe_operand(&elements.target, target, target.dtype_nr, elements.ndim)
    return copy_as_described(&elements, target, source, release_gil and target.count >= RELEASE_GIL)


cdef bint shape_is(TensorImpl tensor, int ndim, const intptr_t* shape) noexcept:
    cdef int d
    if tensor.ndim != ndim:
        return False
    for d in range(ndim):
        if tensor.sizes[d] != shape[d]:
            return False
    return True


cdef TensorImpl copy_of(TensorImpl tensor, int dtype):
    """Return a new tensor of the same elements, without history; dense layouts are kept."""
    cdef Value value
    value.tensor = <PyObject*>tensor
    cdef TensorImpl result = empty_for(dtype, tensor.ndim, tensor.sizes, 1, &value)
    fill_from(result, tensor)
    return result


cdef TensorImpl out_argument(str name, object out):
    """Return the tensor given as out=, or None."""
    if out is not None and not isinstance(out, TensorImpl):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    return out
