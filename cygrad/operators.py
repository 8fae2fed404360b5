"""The public functions: made from the tables, and the composites written in terms of them.

What has a rule in `ops/structural` is computed unrecorded and recorded as one node; the others are recorded as their parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from cygrad._core import dispatch
from cygrad._core import indexing as _indexing
from cygrad._core import matmul as _matmul
from cygrad._core import operators as _factories
from cygrad._core import reductions as _reduction
from cygrad._core import strided as _strided
from cygrad._core import views as _views
from cygrad._core.node import _set_grad_enabled, is_grad_enabled
from cygrad._core.operands import checked_out
from cygrad._core.rules import record_rule
from cygrad._core.storage import get_default_dtype
from cygrad._core.tensor import TensorImpl
from cygrad.ops import ELEMENTWISE, REDUCTIONS, Elementwise

functions: dict[str, Callable[..., Any]] = {}
in_place_methods: dict[str, Callable[..., Any]] = {}


# ----- From the tables -----
def _documentation(row: Elementwise, arguments: tuple[str, ...]) -> str:
    """Return the docstring of a row: what it is, its formula, its gradient."""
    domain = row.domain if row.domain[0] > 0 else (0.5, 1.0)
    values = ", ".join("cygrad.tensor([True, False])" if operand in row.masks or set(row.kinds) == {"b", "i"} else
                       f"cygrad.tensor([{domain[0]}, {domain[1]}])" for operand in row.operands)
    gradients = "".join(f"    d({row.name})/d({argument}) = {row.partials[operand]}\n"
                        for operand, argument in zip(row.operands, arguments, strict=False) if operand in row.partials)
    lets = "".join(f" where {name} = {text}" for name, text in row.let.items())
    return (f"{row.doc}\n\n    y = {row.y}{lets}\n{gradients}\nOperands are tensors or numbers and broadcast; `out` takes the result.\n\n"
            f">>> import cygrad\n>>> cygrad.{row.name}({values}).shape\ncygrad.Size([2])\n")


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "cygrad"
    function.__doc__ = doc
    return function


def _general(op: Any) -> Callable[..., Any]:
    """Return the function of an operator with parameters or more than two operands."""

    def function(*arguments: Any, **keywords: Any) -> Any:
        return op(*arguments, **keywords)

    return function


def _general_in_place(op: Any) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return op.in_place(self, *arguments, **keywords)

    return method


def _selecting(name: str, plain: Callable[..., Any], rows: dict[Any, Callable[..., Any]], keyword: str) -> Callable[..., Any]:
    """Return a function whose keyword chooses the row; a row that has the keyword as a parameter gets it."""

    def function(*arguments: Any, **keywords: Any) -> Any:
        if keyword not in keywords:
            return plain(*arguments, **keywords)
        value = keywords.pop(keyword)
        if value in rows:
            return rows[value](*arguments, **keywords)
        if ... not in rows:
            *others, last = map(repr, rows)
            raise RuntimeError(f"{name} expected {keyword} to be one of {', '.join(others)}, or {last} but found {value!r}")
        return rows[...](*arguments, **{keyword: value}, **keywords)

    return function


def _from_rows() -> None:
    simple = {1: (_factories.make_unary, _factories.make_unary_in_place), 2: (_factories.make_binary, _factories.make_binary_in_place)}
    for name, row in ELEMENTWISE.items():
        op = dispatch.ops[name]
        make, make_in_place = simple.get(len(op.arguments), (_general, _general_in_place))
        functions[name] = make(op)
        if row.in_place:
            in_place_methods[name + "_"] = make_in_place(op)
    for name, row in ELEMENTWISE.items():
        if row.select:
            keyword, names = row.select
            # Kept where the keyword is absent: the plain function costs no Python frame there.
            functions[name] = _selecting(name, functions[name], {value: functions[chosen] for value, chosen in names.items()}, keyword)
            in_place_methods[name + "_"] = _selecting(name + "_", in_place_methods[name + "_"], {
                value: in_place_methods[chosen + "_"] for value, chosen in names.items()}, keyword)
    for name, row in ELEMENTWISE.items():
        documentation = _documentation(row, dispatch.ops[name].arguments)
        _named(functions[name], name, documentation)
        for alias in row.aliases:
            functions[alias] = functions[name]
        if row.in_place:
            method = in_place_methods[name + "_"]
            _named(method, name + "_", f"{row.doc} In place.")
            for alias in row.aliases:
                in_place_methods[alias + "_"] = method
    for name, reduction in REDUCTIONS.items():
        functions[name] = _named(_reduction.make_reduction(_reduction.ops[name]), name, (
            f"{reduction.doc}\n\nOver all dims, or those in `dim` (`axis`); `keepdim` (`keepdims`) keeps them as size 1. `dtype` converts\n"
            f"first, `out` takes the result.\n\n>>> import cygrad\n>>> cygrad.{name}(cygrad.ones(2, 3), dim=0).shape\ncygrad.Size([3])\n"))


_from_rows()
for _module, _names in ((_views, "reshape flatten squeeze unsqueeze permute transpose t cat clone"),
                        (_indexing, "narrow select unbind split split_with_sizes chunk"), (_strided, "as_strided as_strided_scatter"),
                        (_matmul, "matmul mm bmm mv dot")):
    for _name in _names.split():
        functions[_name] = getattr(_module, _name)
functions["concatenate"] = functions["concat"] = functions["cat"]


def _public(function: Callable[..., Any]) -> Callable[..., Any]:
    functions[function.__name__.strip("_")] = function
    return function


def _unrecorded(compute: Callable[[], Any]) -> Any:
    """Compute without recording."""
    before = is_grad_enabled()
    _set_grad_enabled(False)
    try:
        return compute()
    finally:
        _set_grad_enabled(before)


def _check_tensor(name: str, value: Any) -> None:
    if not isinstance(value, TensorImpl):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def _check_floating(name: str, value: Any) -> None:
    _check_tensor(name, value)
    if not value.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{value.dtype.name}': it takes floating-point tensors; convert it "
                                  "first, e.g. with .float()")


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return dims as a tuple of non-negative numbers; None means all."""
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return tuple(range(ndim))
    return tuple(_views.normalized_dim(d, ndim) for d in (dim if isinstance(dim, tuple | list) else (dim,)))


def _numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a reduction take NumPy's `axis` and `keepdims` for `dim` and `keepdim`."""
    parameters = function.__code__.co_varnames

    @functools.wraps(function)
    def renamed(*arguments: Any, **keywords: Any) -> Any:
        for theirs, ours in (("axis", "dim"), ("keepdims", "keepdim")):
            if theirs in keywords and ours in parameters:
                if ours in keywords or len(arguments) > parameters.index(ours):
                    raise TypeError(f"{renamed.__name__}() got both '{ours}' and '{theirs}': they mean the same")
                keywords[ours] = keywords.pop(theirs)
        return function(*arguments, **keywords)

    return renamed


def _delivered(result: Any, out: Any) -> Any:
    return result if out is None else checked_out(out, result)


# ----- Selection and comparison -----
_where = functions["where"]


@_public
def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elements of `input` where `condition` holds, of `other` elsewhere.

    `condition` is a bool tensor; all three broadcast. With the condition alone: the indices where it holds, one tensor a dim.

    >>> import cygrad
    >>> cygrad.where(cygrad.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is None and other is None:
        from cygrad.creation import from_numpy
        return tuple(from_numpy(indices) for indices in condition.detach().numpy().nonzero())
    if not isinstance(condition, TensorImpl):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.dtype.kind != "b" and condition.dtype.name != "uint8":
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}")
    return _where(condition, input, other, out=out)


def _clamp_row(minimum: Any, maximum: Any) -> tuple[Any, tuple[Any, ...]]:
    if minimum is None and maximum is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if maximum is None:
        return dispatch.ops["clamp_min"], (minimum,)
    if minimum is None:
        return dispatch.ops["clamp_max"], (maximum,)
    return dispatch.ops["clamp"], (minimum, maximum)


@_public
def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Elements limited to the range from `min` to `max`; either may be None, a number or a tensor.

    The gradient passes where an element is inside, bounds included.

    >>> import cygrad
    >>> cygrad.clamp(cygrad.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    _check_tensor("clamp", input)
    op, bounds = _clamp_row(min, max)
    return op(input, *bounds, out=out)


def clamp_(self: Any, min: Any = None, max: Any = None) -> Any:
    """Limit the elements to the range from `min` to `max`, in place."""
    op, bounds = _clamp_row(min, max)
    return op.in_place(self, *bounds)


in_place_methods["clamp_"] = in_place_methods["clip_"] = clamp_
functions["clip"] = clamp


@_public
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """`input` raised to the power `exponent`; one of them may be a number.

    Squares are exact products. Integers to negative powers are refused.

    >>> import cygrad
    >>> cygrad.pow(cygrad.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if out is None and isinstance(input, TensorImpl):
        return input**exponent
    return dispatch.ops["pow"](input, exponent, out=out)


@_public
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """A copy with `value` (a number or a 0-d tensor) where the bool tensor `mask` holds.

    >>> import cygrad
    >>> cygrad.masked_fill(cygrad.ones(2), cygrad.tensor([True, False]), 0)
    tensor([0., 1.])
    """
    if mask.dtype.kind != "b":
        raise RuntimeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}")
    if isinstance(value, TensorImpl) and value.ndim:
        raise RuntimeError(f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    if not isinstance(value, TensorImpl):
        from cygrad.creation import tensor
        value = tensor(value, dtype=input.dtype)
    return _where(mask, value, input)


@_public
def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Where `abs(input - other) <= atol + rtol * abs(other)`; infinities are close to themselves, NaN if `equal_nan`.

    >>> import cygrad
    >>> cygrad.isclose(cygrad.tensor([1., 2.]), cygrad.tensor([1., 2.1]))
    tensor([ True, False])
    """
    _check_tensor("isclose", input)
    if not isinstance(other, TensorImpl):
        raise TypeError(f"isclose(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if input.dtype != other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"rtol and atol must be greater than or equal to zero, but got {rtol} and {atol}")
    return dispatch.ops["isclose"](input, other, rtol, atol, equal_nan)


@_public
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close; see `isclose`.

    >>> import cygrad
    >>> cygrad.allclose(cygrad.ones(2), cygrad.ones(2) + 1e-7)
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@_public
def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and elements.

    >>> import cygrad
    >>> cygrad.equal(cygrad.ones(2), cygrad.ones(3))
    False
    """
    _check_tensor("equal", input)
    return input.shape == other.shape and bool((input == other).all())


# ----- Reductions -----
class _Extremum(NamedTuple):
    values: Any
    indices: Any


max_result = type("max", (_Extremum,), {"__slots__": ()})
min_result = type("min", (_Extremum,), {"__slots__": ()})


def _extremum(name: str, elementwise_name: str, result_type: Any) -> Callable[..., Any]:
    @_numpy_names
    def function(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
        _check_tensor(name, input)
        other = dim if isinstance(dim, TensorImpl) else other
        if other is not None:
            return functions[elementwise_name](input, other, out=out)
        if dim is None:
            if input.numel() == 0:
                raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                                   "Specify the reduction dim with the 'dim' argument.")
            if keepdim:
                raise TypeError(f"{name}() takes keepdim together with dim only; a{name}() reduces all dims with keepdim")
            return functions["a" + name](input, out=out)
        values, indices = _reduction.extremum("a" + name, input, dim, keepdim, name)
        dim, = _dims(dim, input.ndim)
        kept = indices if keepdim or not input.ndim else indices.unsqueeze(dim)
        record_rule(name, (input,), values, (kept, tuple(input.shape), dim), 2)
        if out is not None:
            return result_type(checked_out(out[0], values), checked_out(out[1], indices))
        return result_type(values, indices)

    adjective = {"max": "Largest", "min": "Smallest"}[name]
    return _named(function, name, (
        f"{adjective} element of all; (values, indices) along `dim`, of the first such; or the {elementwise_name} of two tensors.\n\n"
        f"The gradient goes to the element at the index; of all, it is shared at ties.\n\n>>> import cygrad\n"
        f">>> cygrad.{name}(cygrad.tensor([[2., 2.]]), dim=1).indices\ntensor([0])\n"))


functions["max"] = _extremum("max", "maximum", max_result)
functions["min"] = _extremum("min", "minimum", min_result)


def _place_of(name: str, fold: str) -> Callable[..., Any]:
    @_numpy_names
    def function(input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
        _check_tensor(name, input)
        if dim is None:
            if input.numel() == 0:
                raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            indices = _reduction.extremum(fold, input.detach().contiguous().view(-1), 0)[1]
            return _delivered(indices.reshape([1] * input.ndim) if keepdim else indices, out)
        return _delivered(_reduction.extremum(fold, input, dim, keepdim, name)[1], out)

    return _named(function, name, f"Index of the first {'largest' if fold == 'amax' else 'smallest'} element along `dim`, or in all.\n\n"
                  f">>> import cygrad\n>>> cygrad.{name}(cygrad.tensor([1., 3., 2.])).dtype\ncygrad.int64\n")


functions["argmax"] = _place_of("argmax", "amax")
functions["argmin"] = _place_of("argmin", "amin")


def _variance(name: str, input: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    """Compute var or std by two passes: the mean, then the squares of the differences from it."""
    _check_tensor(name, input)
    if not input.is_floating_point():
        raise RuntimeError(f"std and var only support floating point and complex dtypes, got {input.dtype}; convert it first, "
                           "e.g. with .float()")
    dims = _dims(dim, input.ndim)
    count = 1
    for d in dims:
        count *= input.shape[d] if input.ndim else 1
    degrees = max(count - correction, 0)

    def compute() -> Any:
        x = input.detach()
        difference = x - x.mean(dims, keepdim=True)
        total = difference.square_().sum(dims, keepdim=keepdim)
        variance = total / degrees if degrees else total / 0.0
        return variance.sqrt_() if name == "std" else variance

    return record_rule(name, (input,), _unrecorded(compute), (dims, 1 / degrees if degrees else float("nan")))


def _variance_function(name: str, root: str) -> Callable[..., Any]:
    @_numpy_names
    def function(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None,
                 out: Any = None, ddof: float | None = None) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        given = correction if ddof is None else ddof
        if given is None:
            given = 1 if unbiased is None else int(unbiased)
        return _delivered(_variance(name, input, dim, given, keepdim), out)

    return _named(function, name, f"{root} of the elements, over all dims or those in `dim`, divided by n - `correction` (default 1).\n\n"
                  f">>> import cygrad\n>>> cygrad.{name}(cygrad.tensor([1., 2., 3.]))\ntensor(1.)\n")


functions["var"] = _variance_function("var", "Variance")
functions["std"] = _variance_function("std", "Standard deviation")


@_public
@_numpy_names
def logsumexp(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Any:
    """log(sum(exp(x))) over dims, without overflow.

    >>> import cygrad
    >>> cygrad.logsumexp(cygrad.zeros(2), 0)
    tensor(0.6931)
    """
    _check_tensor("logsumexp", input)
    if not input.is_floating_point():
        input = input.to(get_default_dtype())
    dims = _dims(dim, input.ndim)

    def compute() -> Any:
        x = input.detach()
        if x.numel() == 0:
            return x.exp().sum(dims, keepdim=keepdim).log_()
        largest = x.amax(dims, keepdim=True)
        shift = largest.masked_fill(largest.abs() == float("inf"), 0)
        total = (x - shift).exp_().sum(dims, keepdim=True).log_() + shift
        return total if keepdim else total.squeeze(dims)

    return _delivered(record_rule("logsumexp", (input,), _unrecorded(compute), (dims,)), out)


def _softmax_function(name: str, sentence: str, finish: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @_numpy_names
    def function(input: Any, dim: int, dtype: Any = None, *, out: Any = None) -> Any:
        _check_tensor(name, input)
        if not hasattr(dim, "__index__"):
            raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
        x = input if dtype is None else input.to(dtype)
        _check_floating(name, x)
        d, = _dims(dim, x.ndim)

        def compute() -> Any:
            shifted = x.detach() - x.detach().amax(d, keepdim=True) if x.numel() else x.detach().clone()
            return finish(shifted, d)

        return _delivered(record_rule(name, (x,), _unrecorded(compute), (d,)), out)

    return _named(function, name, f"{sentence}\n\n>>> import cygrad\n>>> cygrad.{name}(cygrad.zeros(2), dim=0).shape\ncygrad.Size([2])\n")


def _normalized(shifted: Any, dim: int) -> Any:
    exponential = shifted.exp_()
    return exponential.div_(exponential.sum(dim, keepdim=True))


functions["softmax"] = _softmax_function("softmax", "exp(x) divided by its sum along `dim`, without overflow.", _normalized)
functions["log_softmax"] = _softmax_function("log_softmax", "Logarithm of softmax along `dim`, accurate also where softmax is tiny.",
                                             lambda shifted, d: shifted.sub_(shifted.exp().sum(d, keepdim=True).log_()))


def _cumsum(input: Any, dim: int, reverse: bool) -> Any:
    """Return the running sum along a dim, from its end if `reverse`; recorded."""
    return record_rule("cumsum", (input,), _reduction.cumulate("sum", input, dim, reverse), (dim, reverse))


@_public
@_numpy_names
def cumsum(input: Any, dim: int, *, dtype: Any = None, out: Any = None) -> Any:
    """Running sum along `dim`; integers become int64.

    >>> import cygrad
    >>> cygrad.cumsum(cygrad.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    _check_tensor("cumsum", input)
    result = _cumsum(input if dtype is None else input.to(dtype), dim, False)
    return _delivered(result if dtype is None else result.to(dtype), out)


# ----- Joining -----
@_public
@_numpy_names
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Join tensors of one shape along a new dim.

    >>> import cygrad
    >>> cygrad.stack([cygrad.zeros(2), cygrad.ones(2)]).shape
    cygrad.Size([2, 2])
    """
    parts = tuple(tensors)
    if not parts:
        raise RuntimeError("stack expects a non-empty TensorList")
    for number, part in enumerate(parts):
        _check_tensor("stack", part)
        if part.shape != parts[0].shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(parts[0].shape)} at entry 0 and "
                               f"{list(part.shape)} at entry {number}")
    place = _views.normalized_dim(dim, parts[0].ndim + 1)
    joined = _unrecorded(lambda: functions["cat"]([part.detach().unsqueeze(place) for part in parts], place))
    return _delivered(record_rule("stack", parts, joined, (place,)), out)


dispatch.functions.update(functions)
