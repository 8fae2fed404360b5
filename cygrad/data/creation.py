"""Factories: tensors from data, from shapes, and over the memory of others."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.copies import warn_of_parts
from cygrad._core.compute.creation import arange_into, empty_tensor, fill_value, scalar_tensor
from cygrad._core.compute.inplace import write_constant, write_values
from cygrad._core.exchange import dlpack
from cygrad._core.exchange.aliases import strided
from cygrad._core.graph.noted_calls import call_again
from cygrad._core.graph.notes import is_noting, note_array, note_array_below
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import refuse_special
from cygrad._core.memory.formats import check_layout
from cygrad._core.memory.sizes import extent_of_strides, index_argument, size_from_arguments
from cygrad._core.memory.storage import DType, dtype_by_name, get_default_dtype, resolve_dtype, set_default_dtype
from cygrad._core.operands.arrays import from_array, from_bits, is_sparse, type_of_bits
from cygrad._core.operands.operands import checked_out, common_dtype
from cygrad.data.reading import read_array
from cygrad.device import device as Device
from cygrad.device import resolve_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.memory.formats import Layout
    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike, Factory, Number, Real

__all__ = ["arange", "as_tensor", "asarray", "empty", "empty_strided", "eye", "from_dlpack", "frombuffer", "from_numpy",
           "full", "get_default_dtype", "linspace", "ones", "set_default_dtype", "tensor", "tril_indices",
           "triu_indices", "zeros"]

int64 = dtype_by_name["int64"]


def out_tensor(out: Any) -> Any:
    """Return the tensor given as `out`; TypeError if it is none."""
    if not isinstance(out, TensorImpl):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    return out


def finished(result: Any, requires_grad: bool) -> Any:
    """Return a new tensor as the leaf that was asked for."""
    if requires_grad is False:
        return result
    if requires_grad is not None and not isinstance(requires_grad, (bool, np.bool_)):
        raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if requires_grad and not result.dtype.is_differentiable:
        raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients, got {result.dtype}; give a "
                           "floating-point dtype=, or floating-point data")
    if requires_grad:
        result.requires_grad = True
    return result


def dtype_of_result(dtype: Any, out: Any, default: DType) -> DType:
    """Return the dtype to compute in: `out`'s, else the argument, else the default."""
    requested = None if dtype is None else resolve_dtype(dtype)
    if out is None:
        return default if requested is None else requested
    if requested is not None and requested != out_tensor(out).dtype:
        raise RuntimeError(f"dtype {requested} does not match dtype of out parameter ({out.dtype})")
    return out_tensor(out).dtype


def check_room(*sizes: int) -> None:
    """Raise OutOfMemoryError where there is no memory for so many numbers: NumPy has errors of its own, and wraps around at 2**63."""
    empty_tensor([min(size, 2**63 - 1) for size in sizes], int64)


def repeated(array: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the elements of a vector, each as often as a count says."""
    check_room(int(counts.sum(dtype=np.float64)))       # a sum of integers may wrap around
    return np.repeat(array, counts)


def placed(result: Any, out: Any, requires_grad: bool) -> Any:
    """Return a new tensor as the leaf that was asked for, or `out` with its elements."""
    return finished(result, requires_grad) if out is None else checked_out(out, result)


# ----- From data -----
def _dtype_argument(function: str, dtype: Any) -> DType:
    if isinstance(dtype, str):
        raise TypeError(f"{function}(): argument 'dtype' must be cygrad.dtype, not str; write cygrad.{dtype}")
    return resolve_dtype(dtype)


def tensor(data: Any, *, dtype: DTypeLike | None = None, device: str | Device | None = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """Return a new tensor with a copy of numbers, nested sequences, an array or a tensor.

    Data that names its dtype keeps it: arrays and their scalars, also in sequences, and objects with `__array__`,
    `__array_interface__`, `__dlpack__` or a buffer. Python's numbers are bool, int64 or the default dtype.

    ValueError for ragged sequences, TypeError for values that are no numbers.

    >>> import cygrad
    >>> cygrad.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    resolve_device(device)
    if hasattr(type(data), "__tensor__"):
        data = data.__tensor__()
    if hasattr(type(data), "__operand__") and (dtype is None or _dtype_argument("tensor", dtype).is_floating_point):
        # A number that is an input of a program.
        dtype = (get_default_dtype() if data.kind is float else int64 if data.kind is int else None) if dtype is None else dtype
        data = data.__operand__()
    if isinstance(data, TensorImpl):
        result = data.detach().clone()
        return finished(result if dtype is None else result.to(dtype), requires_grad)
    requested = None if dtype is None else _dtype_argument("tensor", dtype)
    copied = call_again(_copied, (data, requested), {}) if is_noting() and isinstance(data, (list, tuple)) else _copied(data, requested)
    return finished(copied, requires_grad)


def _copied(data: Any, requested: DType | None) -> Tensor:
    """Return a tensor with a copy of numbers."""
    array, result_dtype = read_array(data, requested)
    result = empty_tensor(array.shape, result_dtype)
    if array.dtype.kind == "c" and result_dtype.kind in "if":
        warn_of_parts(dtype_by_name[array.dtype.name], result_dtype, 3)
        array = array.real
    with np.errstate(invalid="ignore", over="ignore"):
        write = write_constant if is_noting() and _is_constant(data) else write_values
        write(result, lambda memory: memory.__setitem__(..., array))
    return result


def _is_constant(data: Any) -> bool:
    """Return True if a program may copy data: numbers, and arrays, which are noted, also in sequences."""
    if isinstance(data, (list, tuple, range)):
        return all(map(_is_constant, data))
    if type(data) is np.ndarray and data.dtype.kind in "biufc":
        note_array(data)
        return True
    return isinstance(data, (int, float, complex, np.generic))


def constant_tensor(array: np.ndarray, dtype: DType | None = None) -> Tensor:
    """Return an array that the package computes from sizes and the like as a tensor, which programs may copy."""
    result = empty_tensor(array.shape, dtype or dtype_by_name[array.dtype.name])
    write_constant(result, lambda memory: memory.__setitem__(..., array))
    return result


def as_tensor(data: Any, dtype: DTypeLike | None = None, device: str | Device | None = None) -> Tensor:
    """Return data as a tensor, sharing its memory where that is possible; a sparse matrix of SciPy's as a sparse tensor.

    >>> import cygrad, numpy
    >>> array = numpy.zeros(2)
    >>> cygrad.as_tensor(array).data_ptr() == array.ctypes.data
    True
    """
    resolve_device(device)
    if is_sparse(data):
        data = import_module("cygrad.operators._sparse.scipy_matrices").from_scipy(data)
    if isinstance(data, np.ndarray):
        data = from_numpy(data)
    if isinstance(data, TensorImpl):
        return data if dtype is None else data.to(dtype)
    return tensor(data, dtype=dtype)


def asarray(obj: Any, *, dtype: DTypeLike | None = None, device: str | Device | None = None, copy: bool | None = None,
            requires_grad: bool = False) -> Tensor:
    """Return anything array-like as a tensor: without a copy where its memory can be shared, unless `copy`.

    >>> import cygrad
    >>> cygrad.asarray([1., 2.])
    tensor([1., 2.])
    """
    resolve_device(device)
    if isinstance(obj, TensorImpl):
        shared = obj
    elif isinstance(obj, np.ndarray):
        shared = from_numpy(obj)
    elif not isinstance(obj, (list, tuple, str, np.generic)) and _has_buffer(obj):
        shared = from_array(np.asarray(obj))
    elif hasattr(obj, "__dlpack__"):
        shared = from_dlpack(obj)
    else:
        if copy is False:
            raise ValueError(f"can't alias the memory of a {type(obj).__name__}; leave copy=False out")
        return tensor(obj, dtype=dtype, requires_grad=requires_grad)
    result = shared if dtype is None else shared.to(dtype)
    if copy is False and result is not shared:
        raise ValueError(f"can't alias memory as {dtype}: it holds {shared.dtype}")
    if copy and result is shared:
        result = shared.clone()
    return finished(result, requires_grad)


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return hasattr(obj, "__array__") or hasattr(obj, "__array_interface__")
    return True


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Return a tensor over the memory of an array, both ways visible; read-only if the array is.

    TypeError for dtypes without a counterpart, ValueError for negative strides.

    >>> import cygrad, numpy
    >>> cygrad.from_numpy(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=cygrad.float64)
    """
    array: Any = ndarray
    if hasattr(type(array), "__tensor__"):      # it is an input of a program
        return array.__tensor__()
    return note_array_below(from_array(array), array)


def from_dlpack(ext_tensor: Any, *, device: str | Device | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of another library's array, or of a DLPack capsule; read-only where that says so.

    `copy=True` copies, `copy=False` refuses to. BufferError for other devices and for dtypes without a counterpart.

    >>> import cygrad, numpy
    >>> cygrad.from_dlpack(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=cygrad.float64)
    """
    resolve_device(device)
    if isinstance(ext_tensor, TensorImpl) and not ext_tensor.requires_grad:
        refuse_special(ext_tensor, "from_dlpack()", BufferError)
        return ext_tensor.clone() if copy else ext_tensor.detach()      # with its version counter
    if not hasattr(ext_tensor, "__dlpack__"):
        result, copied = dlpack.from_capsule(ext_tensor)
    else:
        kind, _ = ext_tensor.__dlpack_device__()
        if kind != dlpack.CPU_DEVICE[0]:
            raise BufferError(f"cygrad computes on the CPU only, got a {type(ext_tensor).__name__} on DLPack device type {int(kind)}; "
                              "copy it to the CPU first")
        options = {} if copy is None else {"copy": copy}
        try:
            capsule = ext_tensor.__dlpack__(max_version=dlpack.NEWEST, **options)
        except TypeError:       # a producer from before DLPack 1.0 has no keywords
            capsule = ext_tensor.__dlpack__()
        result, copied = dlpack.from_capsule(capsule)
    if copied and copy is False:
        raise ValueError(f"cannot share the memory of a {type(ext_tensor).__name__}: it gave a copy; leave copy=False out")
    return result.clone() if copy and not copied else result


def frombuffer(buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return a one-dimensional tensor over the bytes of a buffer, from `offset` (bytes) on.

    >>> import cygrad
    >>> cygrad.frombuffer(bytearray(b"\\x01\\x02"), dtype=cygrad.uint8)
    tensor([1, 2], dtype=cygrad.uint8)
    """
    result_dtype = resolve_dtype(dtype)
    try:
        nbytes = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError(f"object does not implement Python buffer protocol: {type(buffer).__name__}") from None
    if nbytes == 0:
        raise ValueError(f"both buffer length (0) and count ({count}) must not be 0")
    if not 0 <= offset < nbytes:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({nbytes} bytes) - 1")
    if count == 0 or count < -1:
        raise ValueError(f"count must be -1 or positive, got {count}")
    if count > 0 and offset + count * result_dtype.itemsize > nbytes:
        raise ValueError(f"requested buffer length ({count} * {result_dtype.itemsize} bytes) after offset ({offset} "
                         f"bytes) must not be greater "
                         f"than actual buffer length ({nbytes} bytes)")
    if count < 0 and (nbytes - offset) % result_dtype.itemsize:
        raise ValueError(f"buffer length ({nbytes - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
                         f"({result_dtype.itemsize})")
    return finished(from_bits(np.frombuffer(buffer, type_of_bits(result_dtype), count, offset), result_dtype), requires_grad)


# ----- From shapes -----
def _shape_of(function: str, sizes: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[int, ...]:
    for name in ("size", "shape"):
        if name in keywords and not sizes:
            sizes = (keywords.pop(name),)
    return size_from_arguments(sizes, function)


def _constant(name: str, value: float | None, doc: str) -> Factory:
    """Return a factory of tensors full of one value (None: not filled)."""

    def factory(*sizes: Any, dtype: DTypeLike | None = None, device: str | Device | None = None, requires_grad: bool = False,
                out: Tensor | None = None, layout: Layout | None = None, pin_memory: bool = False, memory_format: Any = None,
                **keywords: Any) -> Any:
        shape = _shape_of(name, sizes, keywords) if keywords else size_from_arguments(sizes, name)
        if keywords:
            raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(keywords))!r}")
        if device is not None:
            resolve_device(device)
        if layout is not None:
            check_layout(name, layout)
        if out is not None:
            if tuple(out_tensor(out).shape) != tuple(shape):
                raise RuntimeError(f"out= has shape {list(out.shape)}, but {list(shape)} was asked for")
            return out if value is None else out.fill_(value)
        result = empty_tensor(shape, get_default_dtype() if dtype is None else resolve_dtype(dtype), None, memory_format)
        return finished(result if value is None else fill_value(result, value), requires_grad)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = (f"{doc}\n\nSizes as ints or a tuple. RuntimeError for negative sizes, OutOfMemoryError where memory is short.\n\n"
                       f">>> import cygrad\n>>> cygrad.{name}(2, 3).shape\ncygrad.Size([2, 3])\n")
    return factory


empty: Factory = _constant("empty", None, "Return a tensor whose elements are not set.")
zeros: Factory = _constant("zeros", 0, "Return a tensor of zeros.")
ones: Factory = _constant("ones", 1, "Return a tensor of ones.")


def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: DTypeLike | None = None, layout: Layout | None = None,
                  device: str | Device | None = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Return a tensor of given strides whose elements are not set, over as much memory as they need.

    RuntimeError for negative ones, and where there are not as many strides as sizes.

    >>> import cygrad
    >>> cygrad.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    resolve_device(device)
    check_layout("empty_strided", layout)
    sizes, strides = size_from_arguments((size,), "empty_strided"), size_from_arguments((stride,), "empty_strided")
    if len(sizes) != len(strides):
        raise RuntimeError(f"mismatch in length of strides and shape: got strides {list(strides)} for shape {list(sizes)}")
    if any(number < 0 for number in (*sizes, *strides)):
        raise RuntimeError(f"sizes and strides must be non-negative, got {list(sizes)} and {list(strides)}")
    result_dtype = get_default_dtype() if dtype is None else resolve_dtype(dtype)
    memory = empty_tensor((extent_of_strides(result_dtype.itemsize, sizes, strides),), np.uint8)
    return finished(strided(memory, result_dtype, 0, sizes, strides), requires_grad)


def full(size: Sequence[int], fill_value: Tensor | Number, *, dtype: DTypeLike | None = None, device: str | Device | None = None,
         requires_grad: bool = False, out: Tensor | None = None, layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return a tensor full of one number, of its dtype unless another is given.

    >>> import cygrad
    >>> cygrad.full((2,), 7)
    tensor([7, 7])
    """
    fill_value = fill_value if isinstance(fill_value, TensorImpl) else number_of(fill_value)
    result_dtype = dtype_of_result(dtype, out, common_dtype(fill_value, fill_value))
    return placed(filled(empty(size, dtype=result_dtype, device=device, layout=layout), fill_value), out, requires_grad)


def number_of(value: Any) -> Real:
    """Return a number among arguments as Python's: of a 0-d tensor, too, and of a number that is an input of a program."""
    if isinstance(value, (TensorImpl, np.generic)):
        return value.item()
    return value.number if hasattr(type(value), "__operand__") else value


def filled(tensor: Tensor, value: Tensor | Number) -> Tensor:
    """Set all elements of a new tensor to a number, or to a 0-d tensor's, which the dtype must hold."""
    return tensor.fill_(scalar_tensor(value, tensor.dtype))


def arange(start: Tensor | Real | None = None, end: Tensor | Real | None = None, step: Tensor | Real = 1, *,
           dtype: DTypeLike | None = None, device: str | Device | None = None, requires_grad: bool = False, out: Tensor | None = None,
           layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return the numbers from `start` (default 0) up to but without `end`, in steps of `step`.

    int64 where all three are ints, else the default dtype. RuntimeError for a step of 0 or of the wrong sign.

    >>> import cygrad
    >>> cygrad.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("arange() missing 1 required argument: 'end'")
    start = 0 if start is None else start
    start, end, step = map(number_of, (start, end, step))
    for value in (start, end, step):
        if isinstance(value, complex):
            raise RuntimeError(f"value cannot be converted to type double without overflow: {value} is no end or step of a range")
        if not isinstance(value, (int, float)):
            raise TypeError(f"arange(): arguments must be numbers, not {type(value).__name__}")
    for name, value in (("start", start), ("end", end), ("step", step)):
        if isinstance(value, int):
            index_argument(int(value), name)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(np.isfinite((start, end, step))):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: from {start} to {end} in steps of {step}")
    result_dtype = dtype_of_result(dtype, out, common_dtype(start, end + step))
    resolve_device(device)
    check_layout("arange", layout)
    if result_dtype.kind in "buc":
        from cygrad.ops.refusals import refusal
        raise refusal("arange", result_dtype.name)
    exact = all(isinstance(value, int) for value in (start, end, step))
    count = int(-((start - end) // step) if exact else np.ceil((end - start) / step))
    if count >= 2**63:
        raise RuntimeError(f"invalid size, possible overflow? From {start} to {end} in steps of {step} there are 2**63 numbers or more")
    for value in (start, start + (count - 1) * step) if count else ():
        scalar_tensor(value, result_dtype)        # refuses numbers that the dtype does not hold
    return placed(arange_into(empty_tensor((count,), result_dtype), start, step), out, requires_grad)


def linspace(start: Tensor | Number, end: Tensor | Number, steps: int, *, dtype: DTypeLike | None = None,
             device: str | Device | None = None, requires_grad: bool = False, out: Tensor | None = None, layout: Layout | None = None,
             pin_memory: bool = False) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included.

    >>> import cygrad
    >>> cygrad.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return spaced("linspace", start, end, steps, lambda numbers: numbers, dtype, device, requires_grad, out, layout)


def spaced(function: str, start: Any, end: Any, steps: int, change: Callable[[np.ndarray], np.ndarray], dtype: Any, device: Any,
           requires_grad: bool, out: Any, layout: Any) -> Any:
    """Return evenly spaced numbers, changed, for a function of that name."""
    try:
        for name, value in (("start", start), ("end", end)):
            if isinstance(value, TensorImpl) and value.ndim:
                raise RuntimeError(f"{function} only supports 0-dimensional start and end tensors, but got {name} with {value.ndim} "
                                   "dimension(s).")
            if not isinstance(value, (int, float, complex, np.number, TensorImpl)):
                raise TypeError(f"{function}(): argument '{name}' must be Number, not {type(value).__name__}")
        steps = index_argument(steps, "steps")
    except TypeError as error:
        from cygrad.signatures import with_forms
        raise with_forms(function, error, (start, end, steps), {}) from None
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {steps}")
    start, end = map(number_of, (start, end))
    requested = common_dtype(start, end)
    result_dtype = dtype_of_result(dtype, out, requested if requested.is_complex else get_default_dtype())
    if requested.is_complex and not result_dtype.is_complex:
        raise RuntimeError(f"torch.{function}(): inferred dtype {requested} can't be safely cast to passed dtype {result_dtype}")
    if result_dtype.kind == "b":
        raise NotImplementedError(f"\"{function}\" not implemented for 'bool'; give another dtype and compare")
    resolve_device(device)
    check_layout(function, layout)
    result = empty_tensor((steps,), result_dtype)
    number: Any = complex if result_dtype.is_complex else float
    for value in (start, end):
        scalar_tensor(number(value), result_dtype)    # refuses numbers that the dtype does not hold
    numbers = np.linspace(number(start), number(end), steps)
    numbers[1:][-1:] += 0 * number(start)   # NumPy writes the end there, also where the start is NaN
    with np.errstate(all="ignore"):
        write_constant(result, lambda memory: memory.__setitem__(..., change(numbers)))
    return placed(result, out, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: DTypeLike | None = None, device: str | Device | None = None, requires_grad: bool = False,
        out: Tensor | None = None, layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return a matrix with ones on the diagonal and zeros elsewhere, n x n or n x m.

    >>> import cygrad
    >>> cygrad.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    columns = n if m is None else m
    for name, size in (("n", n), ("m", columns)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    result = zeros(n, columns, dtype=dtype_of_result(dtype, out, get_default_dtype()), device=device, layout=layout)
    result.view(-1)[:min(n, columns) * columns:columns + 1] = 1
    return placed(result, out, requires_grad)


def _triangle_indices(name: str, below: bool, row: int, col: int, offset: int, dtype: DTypeLike | None,
                      device: str | Device | None, requires_grad: bool) -> Tensor:
    row, col, offset = index_argument(row, "row"), index_argument(col, "col"), index_argument(offset, "offset")
    for word, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{word} must be non-negative, got {size}")
    resolve_device(device)
    result_dtype = int64 if dtype is None else resolve_dtype(dtype)
    if result_dtype.name not in ("int64", "int32"):
        raise NotImplementedError(f"\"{name}\" not implemented for '{result_dtype.name}': indices are int64 or int32")
    offset = min(max(offset, -row), col)       # offsets beyond the matrix make no difference
    check_room(row)
    start = min(offset + below, col)
    bounds = np.clip(np.arange(row), max(-start, 0), min(col - start, row)) + start      # of each row, up to or from a column on
    first, counts = (0, bounds) if below else (bounds, col - bounds)
    rows = repeated(np.arange(row), counts)
    columns = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts - first, counts)
    return finished(constant_tensor(np.array([rows, columns]), result_dtype), requires_grad)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: str | Device | None = None,
                 requires_grad: bool = False, layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return the places on and below the diagonal of a matrix, row by row: row numbers, then column numbers.

    `offset` counts the diagonal above the main one; `dtype` is int64 or int32.

    >>> import cygrad
    >>> cygrad.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_indices("tril_indices", True, row, col, offset, dtype, device, requires_grad)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: str | Device | None = None,
                 requires_grad: bool = False, layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return the places on and above the diagonal of a matrix, row by row: row numbers, then column numbers.

    `offset` counts the diagonal above the main one; `dtype` is int64 or int32.

    >>> import cygrad
    >>> cygrad.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_indices("triu_indices", False, row, col, offset, dtype, device, requires_grad)
