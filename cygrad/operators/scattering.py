"""Look-up and scatter: operators that read or write where an index tensor or a mask says.

NumPy's indexing moves the elements; arguments are checked first, so that a refused call changes nothing. A scatter is a
plan: the rule it is recorded under, its other inputs, the rule's parameters, and what it writes. Loaded at first use.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad import creation
from cygrad._core.compute.inplace import check_disjoint, write_in_place
from cygrad._core.graph.rules import record_by_name
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import from_array, to_array
from cygrad._core.operands.operands import scalar_tensor
from cygrad.operators.arguments import checked_tensor, delivered
from cygrad.operators.decompositions import slices_reduced
from cygrad.operators.elementwise import publish

Plan = tuple[str, tuple[Any, ...], tuple[Any, ...], Callable[[np.ndarray], Any]]
_OUT = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)


def scattering(plan: Callable[..., Plan]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the function and the in-place method of a plan."""
    name = plan.__name__.strip("_")

    @functools.wraps(plan)
    def function(input: Any, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        rule, others, params, write = plan(input, *arguments, **keywords)
        result = input.detach().clone()
        write(to_array(result))
        return delivered(record_by_name(rule, (input, *others), result, params), out)

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        rule, others, params, write = plan(self, *arguments, **keywords)
        check_disjoint(self, others)
        return write_in_place(rule, (self, *others), params, write)

    signature = inspect.signature(plan)
    function.__name__ = function.__qualname__ = name
    if "out" not in signature.parameters:
        function.__signature__ = signature.replace(parameters=[*signature.parameters.values(), _OUT])  # type: ignore[attr-defined]
    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"Do as `{name}` does, in place."
    return function, method


# ----- Arguments -----
def shape_of(tensor: Any) -> tuple[int, ...]:
    return tuple(tensor.shape)


def check_index(name: str, position: int, index: Any) -> None:
    if not isinstance(index, TensorImpl):
        raise TypeError(f"{name}(): argument 'index' (position {position}) must be Tensor, not {type(index).__name__}")


def _check_bounds(index: np.ndarray, size: int, dim: int, error: type[Exception] = RuntimeError, prefix: str = "", lowest: int = 0) -> None:
    """Refuse an index outside of a dim, naming the first such."""
    outside = (index < lowest) | (index >= size)
    if outside.any():
        raise error(f"{prefix}index {index[outside][0]} is out of bounds for dimension {dim} with size {size}")


def vector(array: np.ndarray) -> np.ndarray:
    """Return a scalar as a vector over the same memory."""
    return array.reshape(1) if array.ndim == 0 else array


def _places(name: str, input: Any, dim: Any, index: Any, own: str) -> tuple[int, Any]:
    """Return the dim and the key of the elements that `index` names along it, each at its own place in the other dims."""
    checked_tensor(name, input)
    d = normalized_dim(dim, input.ndim)
    check_index(name, 3, index)
    if index.numel() == 0:
        return d, None
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, got {index.dtype}")
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {own} tensor: {index.ndim} and {input.ndim}")
    array = vector(to_array(index))
    for other, (count, size) in enumerate(zip(index.shape, input.shape, strict=False)):
        if other != d and count > size:
            shapes = f"expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {d}"
            raise RuntimeError(f"Size does not match at dimension {other} {shapes}" if own == "input" else shapes.capitalize())
    _check_bounds(array, input.shape[d] if input.ndim else 1, d)
    grid = np.ogrid[tuple(slice(size) for size in array.shape)]
    return d, tuple(array if k == d else axis for k, axis in enumerate(grid))


def _accumulate(ufunc: np.ufunc, array: np.ndarray, key: Any, values: np.ndarray) -> None:
    """Apply a ufunc once for each place that a key names; faster by places in a flat array."""
    if len(key) > 1 and array.flags.c_contiguous:
        key, array = np.ravel_multi_index(key, array.shape), array.reshape(-1)
    ufunc.at(array, key, values)


def _same_dtype(message: str, a: Any, b: Any) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"{message}: {a.dtype} and {b.dtype}; convert one of them first")


def value_for(name: str, input: Any, value: Any) -> Any:
    """Return a number, or a 0-d tensor, as a tensor of the dtype of the input."""
    if not isinstance(value, TensorImpl):
        return scalar_tensor(value, input.dtype)
    if value.ndim:
        raise RuntimeError(f"{name} only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    return value.to(input.dtype)


# ----- Gather and scatter -----
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False, out: Any = None) -> Any:
    """Elements that `index` names along `dim`, each at its own place in the other dims.

    `index` (int32 or int64) has as many dims as `input`, no longer than those of `input` except in `dim`; the result has its
    shape. RuntimeError where it does not fit or is out of bounds.

    >>> import cygrad
    >>> cygrad.gather(cygrad.tensor([[1, 2], [3, 4]]), 1, cygrad.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    d, key = _places("gather", input, dim, index, "input")
    array = np.empty(shape_of(index), input.dtype.name) if key is None else vector(to_array(input))[key].reshape(shape_of(index))
    return delivered(record_by_name("gather", (input, index), from_array(array), (shape_of(input), d)), out)


def _source_of(name: str, input: Any, index: Any, src: Any) -> Any:
    """Check the source of a scatter."""
    if not isinstance(src, TensorImpl):
        raise TypeError(f"{name}(): argument 'src' (position 4) must be Tensor, not {type(src).__name__}")
    _same_dtype(f"{name}(): Expected self.dtype to be equal to src.dtype", input, src)
    sizes = src.shape or (1,)
    if index.numel() and (len(sizes) != max(index.ndim, 1) or any(n > m for n, m in zip(index.shape, sizes, strict=False))):
        raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from the dimension "
                           f"that is indexed and to be no larger size than src {list(src.shape)}")
    return src


def _read_part(src: Any, key: Any) -> np.ndarray:
    """Return what a scatter reads of its source."""
    shape = np.broadcast_shapes(*(axis.shape for axis in key))
    return vector(to_array(src))[tuple(slice(size) for size in shape)]


def _scatter_plan(name: str, rule: str, combine: Any, input: Any, dim: Any, index: Any, src: Any) -> Plan:
    """Plan to write, or (`combine`) to fold, a source into the elements that an index names."""
    d, key = _places(name, input, dim, index, "self")
    _source_of(name, input, index, src)

    def write(array: np.ndarray) -> None:
        if key is None:
            return
        if combine is None:
            vector(array)[key] = _read_part(src, key)
        else:
            _accumulate(combine, vector(array), key, _read_part(src, key))

    return rule, (src, index), (d, shape_of(src)), write


def _scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Plan:
    """Copy of `input` with elements of `src`, or a number, written where `index` says along `dim`.

    The inverse of `gather`. `reduce` "add" or "multiply" combines instead of replacing; otherwise one of several elements that go
    to one place stays. RuntimeError where shapes do not fit, dtypes differ or an index is out of bounds.

    >>> import cygrad
    >>> cygrad.scatter(cygrad.zeros(2, 3), 1, cygrad.tensor([[2], [0]]), 5)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    if src is None or not isinstance(src, TensorImpl):
        number = value if src is None else src
        if number is None:
            raise TypeError("scatter() missing 1 required positional arguments: \"src\"; or give a number as value=")
        d, key = _places("scatter", input, dim, index, "self")
        filling = value_for("scatter", input, number)
        if reduce is None:
            return "scatter", (None, index), (d, ()), lambda array: key and vector(array).__setitem__(key, to_array(filling))
        src = filling.expand(index.shape)
    if reduce is None:
        return _scatter_plan("scatter", "scatter", None, input, dim, index, src)
    if reduce == "add":
        return _scatter_plan("scatter", "scatter_add", np.add, input, dim, index, src)
    if reduce == "multiply":
        return _scatter_plan("scatter", "scatter_prod", np.multiply, input, dim, index, src)
    raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce}")


def _scatter_add(input: Any, dim: int, index: Any, src: Any) -> Plan:
    """Copy of `input` with the elements of `src` added where `index` says along `dim`.

    >>> import cygrad
    >>> cygrad.scatter_add(cygrad.zeros(3), 0, cygrad.tensor([0, 2, 0]), cygrad.ones(3))
    tensor([2., 0., 1.])
    """
    return _scatter_plan("scatter", "scatter_add", np.add, input, dim, index, src)


_FOLDS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _identity(reduce: str, dtype: Any) -> Any:
    """Return the number that changes no fold."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    largest = math.inf if dtype.kind == "f" else 1 if dtype.kind == "b" else np.iinfo(dtype.name).max
    smallest = -math.inf if dtype.kind == "f" else 0 if dtype.kind == "b" else np.iinfo(dtype.name).min
    return largest if reduce == "amin" else smallest


def _scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Plan:
    """Copy of `input` with the elements of `src` folded in where `index` says along `dim`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin". Without `include_self` the elements of `input` at these places do not
    count. Extrema share the gradient evenly at ties.

    >>> import cygrad
    >>> cygrad.scatter_reduce(cygrad.zeros(2), 0, cygrad.tensor([0, 1, 0]), cygrad.tensor([1., 2., 3.]), "amax")
    tensor([3., 2.])
    """
    if reduce not in _FOLDS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduce == "mean" and checked_tensor("scatter_reduce", input).dtype.kind == "b":
        raise NotImplementedError("\"scatter_reduce\" not implemented for 'bool': a mean is of numbers; convert them, e.g. with .float()")
    rule = "scatter_extremum" if reduce in ("amax", "amin") else "scatter_" + reduce
    _, others, params, fold = _scatter_plan("scatter_reduce", rule, _FOLDS[reduce], input, dim, index, src)
    if reduce == "mean":
        count = creation.ones(input.shape, dtype=input.dtype).scatter_add(dim, index, creation.ones(src.shape, dtype=src.dtype))
        if not include_self:
            count = (count - 1).clamp_(min=1)
        params = (count, *params)

    def write(array: np.ndarray) -> None:
        fold(array)
        if reduce == "mean":
            divide = np.divide if array.dtype.kind == "f" else np.floor_divide
            divide(array, to_array(count), out=array)

    return rule, others, params, write


def _excluding(plan: Callable[..., Plan]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the function and the method of scatter_reduce: excluded elements are replaced by what changes no fold."""
    function, method = scattering(plan)

    @functools.wraps(function)
    def excluding(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True, out: Any = None) -> Any:
        if not include_self and reduce in _FOLDS:
            input = scatter(checked_tensor("scatter_reduce", input), dim, index, _identity(reduce, input.dtype))
        return function(input, dim, index, src, reduce, include_self=include_self, out=out)

    @functools.wraps(method)
    def excluding_in_place(self: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
        plan(self, dim, index, src, reduce, include_self=include_self)
        if not include_self:
            check_disjoint(self, (src, index))
            scatter_(self, dim, index, _identity(reduce, self.dtype))
        return method(self, dim, index, src, reduce, include_self=include_self)

    return excluding, excluding_in_place


scatter, scatter_ = scattering(_scatter)
scatter_add, scatter_add_ = scattering(_scatter_add)
scatter_reduce, scatter_reduce_ = _excluding(_scatter_reduce)


# ----- Slices along a dim -----
def _slices(name: str, input: Any, dim: Any, index: Any, dtypes: tuple[str, ...], error: Exception) -> tuple[int, np.ndarray]:
    """Return the dim and the places along it that a vector names."""
    checked_tensor(name, input)
    d = normalized_dim(dim, input.ndim)
    check_index(name, 3, index)
    if index.dtype.name not in dtypes:
        raise error
    return d, to_array(index).reshape(-1)


def _along(dim: int, places: np.ndarray) -> Any:
    return (slice(None),) * dim + (places,)


def index_select(input: Any, dim: int, index: Any, *, out: Any = None) -> Any:
    """Slices of `input` along `dim` that the vector `index` (int32 or int64) names.

    >>> import cygrad
    >>> cygrad.index_select(cygrad.arange(6).reshape(3, 2), 0, cygrad.tensor([2, 0]))
    tensor([[4, 5],
            [0, 1]])
    """
    error = RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    d, places = _slices("index_select", input, dim, index, ("int64", "int32"), error)
    if index.ndim > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but it has {index.ndim} dims")
    if input.ndim == 0 and len(places) != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {len(places)} value(s)")
    if ((places < 0) | (places >= (input.shape[d] if input.ndim else 1))).any():
        raise IndexError(f"index out of range in self: dimension {d} of {list(input.shape)}")
    array = vector(to_array(input)).take(places, d)       # row-major, unlike what an index gives
    result = from_array(array if input.ndim else array.reshape(()))
    return delivered(record_by_name("index_select", (input, index), result, (shape_of(input), d)), out)


def _slices_to_fold(name: str, input: Any, dim: Any, index: Any, source: Any) -> tuple[int, np.ndarray]:
    """Return the dim and the places along it that slices of the source are folded into."""
    error = RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {getattr(index, 'dtype', None)}")
    d, places = _slices(name, input, dim, index, ("int64", "int32"), error)
    checked_tensor(name, source)
    if index.ndim > 1:
        raise IndexError(f"{name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with size: {list(index.shape)}")
    if input.dtype != source.dtype:
        raise RuntimeError(f"{name}_(): self ({input.dtype}) and source ({source.dtype}) must have the same scalar type")
    if len(places) != (source.shape[d] if source.ndim > d else 1):
        raise RuntimeError(f"{name}_(): Number of indices ({len(places)}) should be equal to source.size(dim): "
                           f"({source.shape[d] if source.ndim > d else 1}), for dim: {d}")
    if source.ndim != input.ndim or any(a != b for k, (a, b) in enumerate(zip(source.shape, input.shape, strict=True)) if k != d):
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
                           f"{list(input.shape)} source.shape = {list(source.shape)}")
    return d, places


def _index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Plan:
    """Copy of `input` with `alpha` times the slices of `source` added at the places along `dim` that `index` names.

    >>> import cygrad
    >>> cygrad.index_add(cygrad.zeros(3), 0, cygrad.tensor([0, 2, 0]), cygrad.ones(3))
    tensor([2., 0., 1.])
    """
    d, places = _slices_to_fold("index_add", input, dim, index, source)
    if input.dtype.kind != "f" and isinstance(alpha, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    _check_bounds(places, input.shape[d] if input.ndim else 1, d)

    def write(array: np.ndarray) -> None:
        values = vector(to_array(source))
        scaled = values if alpha == 1 else values * np.asarray(alpha).astype(values.dtype)
        np.add.at(vector(array), _along(d, places), scaled)

    return "index_add", (source, index), (d, shape_of(source), alpha), write


def _index_copy(input: Any, dim: int, index: Any, source: Any) -> Plan:
    """Copy of `input` with the slices of `source` written at the places along `dim` that `index` names.

    >>> import cygrad
    >>> cygrad.index_copy(cygrad.zeros(3), 0, cygrad.tensor([2, 0]), cygrad.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    error = RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {getattr(index, 'dtype', None)}")
    d, places = _slices("index_copy", input, dim, index, ("int64",), error)
    checked_tensor("index_copy", source)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if source.ndim == 0 and len(places) != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {len(places)})")
    if source.ndim != input.ndim and source.ndim and input.ndim:
        raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must match. "
                         f"Source dimensionality ({source.ndim}), destination dimensionality ({input.ndim})")
    if input.dtype != source.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got "
                           f"(self) {input.dtype} and (source) {source.dtype}")
    ours, theirs = (shape[:d] + shape[d + 1:] for shape in (shape_of(input), shape_of(source)))
    if ours != theirs:
        raise RuntimeError("index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
                           f"{' '.join(map(str, ours))} at dimension {d} and source slice shape: {' '.join(map(str, theirs))} at dimension "
                           "0.")
    if source.ndim and len(places) != source.shape[d]:
        raise IndexError(f"index_copy_(): Number of indices ({len(places)}) should be equal to source.size(dim) ({source.shape[d]})")
    _check_bounds(places, input.shape[d] if input.ndim else 1, d, IndexError, "index_copy_(): ")

    def write(array: np.ndarray) -> None:
        vector(array)[_along(d, places)] = to_array(source)

    return "index_copy", (source, index), (d, shape_of(source)), write


def _index_fill(input: Any, dim: int, index: Any, value: Any) -> Plan:
    """Copy of `input` with `value`, a number or a 0-d tensor, in the slices along `dim` that `index` names; it may count from the end.

    >>> import cygrad
    >>> cygrad.index_fill(cygrad.zeros(3), 0, cygrad.tensor([0, -1]), 7)
    tensor([7., 0., 7.])
    """
    error = IndexError(f"index_fill_(): Expected dtype int64 for index, got {getattr(index, 'dtype', None)}")
    d, places = _slices("index_fill", input, dim, index, ("int64",), error)
    if index.ndim > 1:
        raise RuntimeError(f"Index has to be a vector/scalar, but it has {index.ndim} dims")
    filling = value_for("index_fill_", input, value)
    size = input.shape[d] if input.ndim else 1
    _check_bounds(places, size, d, IndexError, lowest=-size)
    return "index_fill", (filling, index), (d,), lambda array: vector(array).__setitem__(_along(d, places), to_array(filling))


index_add, index_add_ = scattering(_index_add)
index_copy, index_copy_ = scattering(_index_copy)
index_fill, index_fill_ = scattering(_index_fill)


def _check_index_reduce(input: Any, dim: Any, index: Any, source: Any, reduce: str) -> None:
    d, places = _slices_to_fold("index_reduce", input, dim, index, source)
    if reduce not in _FOLDS or reduce == "sum":
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _check_bounds(places, input.shape[d] if input.ndim else 1, d, IndexError, "index out of range in self: ")


def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True, out: Any = None) -> Any:
    """Copy of `input` with the slices of `source` folded in at the places along `dim` that `index` names; see `scatter_reduce`.

    `reduce` is "prod", "mean", "amax" or "amin"; for sums see `index_add`.

    >>> import cygrad
    >>> cygrad.index_reduce(cygrad.ones(3), 0, cygrad.tensor([0, 2, 0]), cygrad.tensor([2., 3., 4.]), "prod")
    tensor([8., 1., 3.])
    """
    _check_index_reduce(input, dim, index, source, reduce)
    return delivered(slices_reduced("scatter_reduce")(input, dim, index, source, reduce, include_self=include_self), out)


def index_reduce_(self: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """Do as `index_reduce` does, in place."""
    _check_index_reduce(self, dim, index, source, reduce)
    return slices_reduced("scatter_reduce_")(self, dim, index, source, reduce, include_self=include_self)


publish(__name__, globals())
