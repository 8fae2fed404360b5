"""Calls of public functions as data: the calls inside the samples of the rules, with all arguments, to be repeated with others."""

import contextlib
import functools
import inspect
import itertools

import numpy as np
import pytest

import cygrad as cg
import public
import samples
from cygrad._core.exchange.aliases import byte_offset, storage_bytes
from cygrad._core.memory.sizes import extent_of_strides

# Exceptions that a function may raise, with a message.
ERRORS = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, MemoryError, OverflowError, AssertionError)
# Messages of Python's and NumPy's own errors, which name neither the argument nor its place.
WORDLESS = ("Python int too large", "int too big", "int too large", "cannot fit", "cannot convert float infinity", "Result too large",
            "array is too big", "Maximum allowed size", "Unable to allocate")


def callables(owner):
    """Return the public functions of the package, or of a class, by name."""
    members = {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")}
    return {name: thing for name, thing in members.items() if callable(thing) and not isinstance(thing, type)}


def recorded_calls():
    """Return (owner, name, arguments, keywords) of the calls that the samples of the rules make, one for each kind of arguments.

    Calls with sparse tensors are left out: these have no memory of all elements, which tests of arguments look at.
    """
    return _recorded()[0]


def recorded_names():
    """Return (owner, name) of all calls that the samples make."""
    return _recorded()[1]


@functools.cache
def _recorded():
    calls, seen, inside = [], set(), []

    def recording(owner, name, function):
        def call(*arguments, **keywords):
            kind = (owner, name, tuple(map(type, arguments)), tuple(keywords))
            is_new = not inside and kind not in seen
            if is_new:
                seen.add(kind)
            inside.append(name)
            try:
                result = function(*arguments, **keywords)
            finally:
                inside.pop()
            if is_new and all(tensor.layout is cg.strided for tensor in tensors_in((arguments, keywords, result))):
                calls.append((owner, name, arguments, keywords))
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner in public.PLACES:
            for name, function in callables(owner).items():
                static = isinstance(inspect.getattr_static(owner, name), staticmethod)
                patch.setattr(owner, name, (staticmethod if static else lambda f: f)(recording(owner, name, function)))
        for sample in itertools.chain(*samples.SAMPLES.values(), *samples.PLAIN.values()):
            sample.call(*map(cg.tensor, samples.rule_operands(sample.shapes)))
    return calls, {(owner, name) for owner, name, *_ in seen}


def calls_with_out():
    """Yield (name, arguments, keywords) of the recorded calls with tensors to functions that take `out`."""
    for owner, attribute, arguments, keywords in recorded_calls():
        name = public.declared_name(owner, attribute)
        function = public.function(name)
        if function is None or "out" in keywords or not tensors_in(arguments):
            continue
        with contextlib.suppress(ValueError):       # of a function without a signature
            if "out" in inspect.signature(function).parameters:
                yield name, arguments, keywords


# ----- Arguments within arguments -----
def places(value, path=()):
    """Yield (path, value) of an argument and of all parts of it: items of sequences and dicts, ends of slices."""
    yield path, value
    if isinstance(value, tuple | list):
        for k, item in enumerate(value):
            yield from places(item, (*path, k))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, slice):
        for end in ("start", "stop", "step"):
            yield (*path, end), getattr(value, end)


def replaced(value, path, other):
    """Return an argument with the value at a path replaced."""
    if not path:
        return other
    first, *rest = path
    if isinstance(value, slice):
        return slice(*(other if end == first else getattr(value, end) for end in ("start", "stop", "step")))
    if isinstance(value, dict):
        return value | {first: replaced(value[first], rest, other)}
    return type(value)([replaced(item, rest, other) if k == first else item for k, item in enumerate(value)])


def mapped(value, change):
    """Return an argument with the tensors in it changed by a function."""
    if isinstance(value, cg.Tensor):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(mapped(item, change) for item in value)
    return {key: mapped(item, change) for key, item in value.items()} if isinstance(value, dict) else value


def copied(value):
    """Return an argument with fresh copies of the tensors in it."""
    return mapped(value, lambda tensor: tensor.detach().clone())


def transposed(value):
    """Return an argument with fresh copies of the tensors in it, whose dims lie in reverse order."""
    return mapped(value, lambda tensor: samples.LAYOUTS["transposed"](samples.array_of(tensor)))


def tensors_in(value):
    return [item for _, item in places(value) if isinstance(item, cg.Tensor)]


# ----- Where tensors lie -----
def lies_inside(tensor):
    """Return True if all elements lie in the tensor's memory, and numel is the product of the sizes."""
    if tensor.layout is not cg.strided:
        tensor = tensor._values()
    needed = extent_of_strides(tensor.itemsize, tuple(tensor.shape), tensor.stride())
    begin = byte_offset(tensor)
    product = int(np.prod([0] if 0 in tensor.shape else [1, *tensor.shape], dtype=object))
    return begin >= 0 and begin + needed <= storage_bytes(tensor).numel() and product == tensor.numel()
