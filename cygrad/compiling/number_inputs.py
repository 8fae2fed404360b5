"""Numbers as inputs of a program, so that other values need no other program: floats among the arguments of a captured function, and the
numbers of the steps of a loop.

Code of Python computes with numbers where no operator sees it. So a function is captured with a `FloatInput` or an `IntInput` in place of
each, a number that has a 0-d tensor of float64. It computes and decides by that tensor where this has the bits of the number. Powers and
remainders have a kernel of their own. Other operators of tensors, where nothing is recorded, are called again by the program. All else
reads the value of the tensor, which ends the capture: then floats are guarded by value, and loops run as Python's do.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.capture.number_pairs import number_of_pair
from cygrad._core.capture.signature import MOST_FUNCTIONS, is_local_function, is_plain_tuple
from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.noted_calls import call_again
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.formats import strided
from cygrad._core.memory.looks import look
from cygrad._core.memory.storage import dtype_by_name, get_default_dtype
from cygrad._core.operands.arrays import to_array
from cygrad.compiling.containers import items_of_function, mapped
from cygrad.data.limits import iinfo
from cygrad.pytree import tree_flatten

if TYPE_CHECKING:
    from collections.abc import Callable

# Operators with the same bits for a number and for a tensor of float64 in its place, and the dtype of numbers beside 0-d tensors.
SAME_BITS = {"add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_", "lt", "le", "gt", "ge", "eq", "ne"}
# Operators of several tensors and a number: its name, and the operator and operands with the same bits for a tensor in its place. Gradients
# of three factors go in another order: such operators are followed where nothing is recorded.
OF_SEVERAL: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("alpha", lambda number, a, b: ("add", a, b * number)),
    "sub": ("alpha", lambda number, a, b: ("sub", a, b * number)),
    "lerp": ("weight", lambda number, a, end: ("lerp", a, end, number)),
    "addcmul": ("value", lambda number, x, a, b: ("add", x, a * number * b)),
    "addcdiv": ("value", lambda number, x, a, b: ("add", x, a / b * number)),
}
# Operators of one tensor of floats and numbers.
BESIDE_ONE = {f"{name}{end}" for name in ("clamp", "clamp_min", "clamp_max", "clip") for end in ("", "_")} | {"where"}
NUMBER_DTYPES = {dtype_by_name[name]: dtype_by_name[number] for name, number in
                 (("float32", "float32"), ("float64", "float64"), ("complex64", "float32"), ("complex128", "float64"))}
INDEXING = {"__getitem__", "__setitem__"}
FLOATS = (float, np.float64)
FLOAT64, INT64 = dtype_by_name["float64"], dtype_by_name["int64"]
EXACT = 1 << 53     # integers up to here are floats


def number_dtype(dtype: Any) -> Any:
    """Return the dtype of a number beside a 0-d tensor of a dtype; None where a tensor in place of the number has other bits."""
    return get_default_dtype() if dtype.kind in "biu" else NUMBER_DTYPES.get(dtype)


class FloatInput:
    """A number in place of a float, while a function is captured: `isinstance(x, float)` holds, only `type(x)` is another one."""

    __slots__ = ("_tensor",)
    kind: type = float

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    @property           # type: ignore[misc]
    def __class__(self) -> type:
        return self.kind

    @property
    def number(self) -> Any:
        """The value, which is read."""
        look("it stands for a number, which Python reads")
        return self.kind(self._tensor)

    def like(self, tensor: Any) -> Any:
        """Return the number that another tensor has, of the same size at most."""
        return type(self)(tensor)

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        others = [value for value in args if isinstance(value, TensorImpl)]
        numbers = [value for value in (*args, *(kwargs or {}).values()) if issubclass(type(value), FloatInput)]
        if numbers and all(other.layout is strided and number.fits(other.dtype) for other in others for number in numbers):
            if func.__name__ in SAME_BITS and len(args) == 2 and len(others) == 1 and not kwargs:
                return func(*(value.beside(others[0]) if type(value) is cls else value for value in args))
            if len({other.dtype for other in others}) == 1 and others[0].is_floating_point():
                result = cls.of_several(func.__name__, others, args[len(others):], kwargs or {})
                if result is not None:
                    return result
            values = [other for other in others if other.is_floating_point()]
            if func.__name__ in BESIDE_ONE and len(values) == 1:
                change = functools.partial(operand_beside, values[0])
                return func(*map(change, args), **{name: change(value) for name, value in (kwargs or {}).items()})
        return called_again(func, args, kwargs or {})

    @classmethod
    def of_several(cls, name: str, tensors: list[Any], others: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Return the result of an operator of several tensors of one real dtype and a number; None for those that read the number."""
        in_place = "_" if name.endswith("_") else ""
        keyword, with_tensor = OF_SEVERAL.get(name.removesuffix("_"), ("", None))
        numbers = *others, *keywords.values()
        if with_tensor is None or len(numbers) != 1 or not keywords.keys() <= {keyword}:
            return None
        if len(tensors) == 3 and is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return None
        operator, first, *operands = with_tensor(numbers[0].beside(tensors[1]), *tensors)
        return getattr(first, operator + in_place)(*operands)

    def fits(self, dtype: Any) -> bool:
        """Return True if a tensor in place of the number gives the same bits beside tensors of a dtype, for all values that it may have."""
        return number_dtype(dtype) is not None

    def beside(self, other: Any) -> Any:
        """Return the tensor, as an operand beside another one: one of integers, or a 0-d one, would be promoted to float64."""
        return self._tensor if other.dim() and other.dtype in NUMBER_DTYPES else self._tensor.to(number_dtype(other.dtype))

    def __getattr__(self, name: str) -> Any:
        if name not in dir(self.kind):
            raise AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'")
        return getattr(self.number, name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(self.number).__array__(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.kind, (self.number,)

    @classmethod
    def of(cls, number: float) -> Any:
        """Return the input in place of a number."""
        return cls(scalar_tensor(number, FLOAT64))

    @classmethod
    def __of_tensors__(cls, tensors: list[Any]) -> Any:
        """Return the number that a program has computed."""
        return cls.kind(tensors[0])

    def __operand__(self) -> Any:
        """Return the tensor, to be written into one of float64."""
        return self._tensor

    def __float__(self) -> float:
        return float(self.number)

    def __bool__(self) -> bool:
        return bool(self._tensor)

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return self.like(-self._tensor)

    def __abs__(self) -> Any:
        return self.like(abs(self._tensor))


class NumpyFloatInput(FloatInput):
    """A number in place of a float64 of NumPy's."""

    __slots__ = ()
    kind = np.float64


class IntInput(FloatInput):
    """A number in place of an int; `bound` is the largest value that it or its negative may have. Sums and products are exact."""

    __slots__ = ("bound",)
    kind = int

    def __init__(self, tensor: Any, bound: int) -> None:
        super().__init__(tensor)
        self.bound = bound

    def like(self, tensor: Any) -> IntInput:
        """Return the number that another tensor has, of the same size at most."""
        return IntInput(tensor, self.bound)

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func.__name__ in INDEXING:
            return func(*replaced(args, cls, cls.__place__), **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def fits(self, dtype: Any) -> bool:
        return super().fits(dtype) and (dtype.kind in "bfc" or dtype.kind == "i" and self.bound <= iinfo(dtype).max)

    def beside(self, other: Any) -> Any:
        """Return the tensor as an operand, of integers beside integers."""
        kind = other.dtype.kind
        return super().beside(other) if kind in "fc" else self.__place__().to(INT64 if kind == "b" else other.dtype)

    def __index__(self) -> int:
        return operator.index(self.__place__())         # a decision

    def __place__(self) -> Any:
        """Return the number as an index."""
        return self._tensor.long()


def replaced(value: Any, kind: type, change: Callable[[Any], Any], containers: type = object, outer: tuple[Any, ...] = (),
             copies: dict[int, tuple[Any, Any]] | None = None) -> Any:
    """Return a value with other values in place of all values of a type, also in containers (of a type); of all, in functions, too.

    outer: functions that lead to the value. One that leads to itself is not changed there, nor are those behind too many. copies: gets each
    container, or function, and the one in its place, by id: the same one wherever it is met.
    """
    if type(value) is kind:
        return change(value)
    copies = {} if copies is None else copies
    items, again = items_of_function(value) if containers is object and kind is not np.ndarray else ([], None)
    if again is None:
        if not isinstance(value, containers):
            return value
        result = mapped(lambda item: replaced(item, kind, change, containers, outer, copies), value)
    elif any(value is each for each in outer) or sum(map(is_local_function, outer)) == MOST_FUNCTIONS:
        return value
    else:
        is_partial, outer = isinstance(value, functools.partial), (*outer, value)
        # Other objects that a local function names are compared by identity.
        results = [replaced(item, kind, change, object, outer, copies)
                   if type(item) is kind or is_partial or is_local_function(item) or is_plain_tuple(item) else item for item in items]
        result = value if all(map(operator.is_, results, items)) else again(results)
    return value if result is value else copies.setdefault(id(value), (value, result))[1]


def as_numbers(value: Any) -> Any:
    """Return a value with numbers in place of inputs, which are read."""
    for kind in (FloatInput, NumpyFloatInput, IntInput):
        value = replaced(value, kind, operator.attrgetter("number"))
    return value


def floats_as_tensors(value: Any, containers: type = object) -> Any:
    """Return a value with 0-d tensors of float64 in place of floats, also in containers (of a type), of which copies are made."""
    return replaced(value, float, lambda number: scalar_tensor(number, FLOAT64), containers)


def floats_as_inputs(value: Any) -> Any:
    """Return a value with inputs in place of floats, also in containers, of which copies are made."""
    return replaced(replaced(value, float, FloatInput.of), np.float64, NumpyFloatInput.of)


def operand_of(value: Any) -> Any:
    """Return a number as an operand beside a tensor of float64; None for values that are not the same number there."""
    if issubclass(type(value), FloatInput):
        return value._tensor
    return value if type(value) in FLOATS or type(value) is int and -EXACT <= value <= EXACT else None


def operand_beside(tensor: Any, value: Any) -> Any:
    """Return a number as an operand beside a tensor of floats; other values as they are."""
    if issubclass(type(value), FloatInput):
        return value.beside(tensor)
    return FloatInput.of(float(value)).beside(tensor) if type(value) in (int, *FLOATS) else value


def is_int(value: Any) -> bool:
    return type(value) is int or type(value) is IntInput


def bound_of(first: Any, second: Any, compute: Callable[[Any, Any], Any]) -> int | None:
    """Return the bound of a result that is an int; None: it is a float."""
    if compute is operator.truediv or not (is_int(first) and is_int(second)):
        return None
    bounds = [value.bound if type(value) is IntInput else abs(value) for value in (first, second)]
    return bounds[0] * bounds[1] if compute is operator.mul else bounds[0] + bounds[1]


def result_kind(*values: Any) -> type[FloatInput]:
    """Return the class of a float computed from numbers: NumPy's, if one of them is NumPy's."""
    return NumpyFloatInput if any(type(value) in (NumpyFloatInput, np.float64) for value in values) else FloatInput


def arithmetic(name: str, compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method of an operator of two numbers."""

    def method(self: FloatInput, other: Any) -> Any:
        operand = operand_of(other)
        if operand is None:
            return NotImplemented if isinstance(other, TensorImpl) else by_number(name, self.number, other)
        bound, kind = bound_of(self, other, compute), result_kind(self, other)
        if bound is not None and bound > EXACT:
            return by_number(name, self.number, as_numbers(other))
        a, b = (operand, self._tensor) if name.startswith("__r") else (self._tensor, operand)
        if compute is operator.truediv and b == 0:
            if kind is NumpyFloatInput:     # a warning
                return by_number(name, self.number, as_numbers(other))
            raise ZeroDivisionError("division by zero" if is_int(self) and is_int(other) else "float division by zero")
        return kind(compute(a, b)) if bound is None else IntInput(compute(a, b), bound)

    return method


class WithNumbers:
    """A function of tensors that take the place of some numbers among its arguments; `kinds`: their classes, by place or name."""

    def __init__(self, func: Callable[..., Any], kinds: dict[int | str, type]) -> None:
        self.func, self.kinds = func, kinds

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*(self.argument(place, value) for place, value in enumerate(args)),
                         **{name: self.argument(name, value) for name, value in kwargs.items()})

    def argument(self, key: int | str, value: Any) -> Any:
        kind = self.kinds.get(key)
        return value if kind is None else kind(to_array(value).item())     # part of a call, unlike `float(tensor)`


def number_tensor(kind: type[float], function: Callable[..., Any], *operands: Any) -> Any:
    """Return the tensor of a number that a function returns; TypeError if it is of another class."""
    result = function(*operands)
    if type(result) is not kind:
        raise TypeError(f"a {kind.__name__} became a {type(result).__name__}")
    return scalar_tensor(result, FLOAT64)


def computed_again(name: str, compute: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the method of an operator of two numbers that tensors compute otherwise: a kernel of its own; of NumPy's a call."""

    def method(self: FloatInput, other: Any, *modulus: Any) -> Any:
        if operand_of(other) is None or modulus or is_int(self) or type(other) is IntInput:
            is_tensor = isinstance(other, TensorImpl)
            return NotImplemented if is_tensor else by_number(name, self.number, *as_numbers((other, *modulus)))
        pair, kind = (other, self) if name.startswith("__r") else (self, other), result_kind(self, other)
        if kind is FloatInput:
            tensor = number_of_pair(compute.__name__, *(scalar_tensor(operand_of(each), FLOAT64) for each in pair))
            return by_number(name, self.number, as_numbers(other)) if tensor is None else FloatInput(tensor)
        function = functools.partial(number_tensor, kind.kind, WithNumbers(compute, kinds_of(dict(enumerate(pair)))))
        return kind(call_again(function, tuple(map(operand_of, pair)), {}))

    return method


def kinds_of(values: dict[Any, Any]) -> dict[Any, type]:
    """Return the classes of the numbers that inputs among some values stand for."""
    return {key: value.kind for key, value in values.items() if issubclass(type(value), FloatInput)}


def called_again(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an operator of floats, which a program calls again; with the values, if a gradient is to be computed."""
    values: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    items, kinds = tree_flatten([*values.values()])[0], kinds_of(values)
    is_recorded = is_grad_enabled() and any(isinstance(item, TensorImpl) and item.requires_grad for item in items)
    has_others = any(issubclass(type(item), FloatInput) and not any(item is value for value in values.values()) for item in items)
    if is_recorded or has_others or int in kinds.values():
        look(f"it stands for a number, which {func.__name__}() reads")
        return func(*as_numbers(args), **as_numbers(kwargs))
    operands = {key: value.__operand__() if key in kinds else value for key, value in values.items()}
    arguments = tuple(operands.pop(place) for place in range(len(args)))
    return call_again(WithNumbers(func, kinds), arguments, operands)


def comparison(name: str, compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method of a comparison with a number, which is a decision by values."""

    def method(self: FloatInput, other: Any) -> Any:
        operand = operand_of(other)
        if operand is not None:
            result = bool(compute(self._tensor, operand))
            return np.bool_(result) if result_kind(self, other) is NumpyFloatInput else result
        return NotImplemented if isinstance(other, (TensorImpl, str, type(None))) else getattr(self.number, name)(other)

    return method


def by_number(name: str, number: Any, *args: Any) -> Any:
    """Return the result of a method of a number; of an operator also with a number of another type, whose method computes it then."""
    result = getattr(number, name)(*args)
    if result is not NotImplemented or not args:
        return result
    is_reflected = name.startswith("__r")
    compute = getattr(operator, f"__{name[3:]}" if is_reflected else name, None)
    return result if compute is None else compute(args[0], number) if is_reflected else compute(number, args[0])


def of_number(name: str) -> Callable[..., Any]:
    """Return a method that reads the value, as a number's method does."""
    return lambda self, *args: by_number(name, self.number, *as_numbers(args))


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(FloatInput, f"__{_name}__", comparison(f"__{_name}__", getattr(operator, _name)))
for _name in ("add", "sub", "mul", "truediv"):
    for _method in f"__{_name}__", f"__r{_name}__":
        setattr(FloatInput, _method, arithmetic(_method, getattr(operator, _name)))
for _name in ("pow", "floordiv", "mod"):
    for _method in f"__{_name}__", f"__r{_name}__":
        setattr(FloatInput, _method, computed_again(_method, getattr(operator, _name)))
for _class in (FloatInput, NumpyFloatInput, IntInput):
    for _name in vars(_class.kind).keys() - vars(FloatInput).keys() - vars(_class).keys() - {"__getattribute__", "__new__"} | {"__hash__"}:
        if callable(getattr(_class.kind, _name)):
            setattr(_class, _name, of_number(_name))
